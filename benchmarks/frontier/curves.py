"""From rows to curves: medians over inputs, who leads at which second, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.frontier.contenders import OURS, PAPER

Row = dict[str, Any]
DISTURBED = 0.2
"""How far clock and processor may differ before the processor counts."""
EQUAL = 0.02
"""Figures that differ by less are alike."""


@dataclass(frozen=True)
class Point:
    """Medians of one contender with one budget."""

    family: str
    way: str
    budget: int | None
    seconds: float
    figures: dict[str, float]
    inputs: int = 1


@dataclass(frozen=True)
class Lead:
    """A peer is ahead of Piste between two seconds."""

    family: str
    start: float
    end: float
    first: float
    """By how much when the lead begins."""
    last: float
    """By how much just before it ends."""


@dataclass(frozen=True)
class Ratio:
    """How much longer the quickest peer takes than Piste for what peers reach at best."""

    peer: Point
    reached: float
    ours: float
    """Seconds of the quickest budget of Piste that is as good; infinite if none is."""

    @property
    def times(self) -> float:
        return self.peer.seconds / self.ours


def seconds(row: Row) -> float:
    """Of the clock, or of the processor if something else ran.

    >>> seconds({"clock": 2.0, "processor": 1.9}), seconds({"clock": 2.0, "processor": 1.0})
    (2.0, 1.0)
    """
    clock, processor = float(row["clock"]), float(row["processor"])
    return clock if abs(clock - processor) <= DISTURBED * clock else processor


def points(rows: Sequence[Row], metrics: Iterable[str]) -> list[Point]:
    """Medians over the inputs that a contender was measured on, the quickest first."""
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        if "refused" not in row:
            by_method.setdefault(row["method"], []).append(row)
    found = []
    for some in by_method.values():
        figures = {name: float(np.median([row[name] for row in some])) for name in metrics}
        spent = float(np.median([seconds(row) for row in some]))
        one = some[0]
        found.append(Point(one["family"], one["way"], one["budget"], spent, figures, len(some)))
    return sorted(found, key=lambda point: point.seconds)


def complete(some: Sequence[Point]) -> list[Point]:
    """Those that were measured on as many inputs as anyone: only they can be compared."""
    most = max((point.inputs for point in some), default=0)
    return [point for point in some if point.inputs == most]


def is_ours(point: Point) -> bool:
    """Of Piste's default."""
    return point.family == OURS


def is_peer(point: Point) -> bool:
    """Neither Piste's default nor its paper's form."""
    return point.family not in (OURS, PAPER)


def frontier(some: Iterable[Point], metric: str) -> list[Point]:
    """Those that nobody quicker equals."""
    best, found = -math.inf, []
    for point in sorted(some, key=lambda point: point.seconds):
        if point.figures[metric] > best:
            best = point.figures[metric]
            found.append(point)
    return found


def leads(some: Sequence[Point], metric: str) -> list[Lead]:
    """Seconds at which a peer is ahead.

    Below 0 nobody is ahead: a constant, which costs nothing, is as good.
    """
    ours = frontier(filter(is_ours, some), metric)
    peers = frontier(filter(is_peer, some), metric)
    times = sorted({point.seconds for point in (*ours, *peers)})
    found: list[Lead] = []
    for start, end in zip(times, [*times[1:], math.inf], strict=True):
        peer = [point for point in peers if point.seconds <= start]
        own = max((p.figures[metric] for p in ours if p.seconds <= start), default=0.0)
        if not peer or peer[-1].figures[metric] <= max(own, 0.0) + EQUAL:
            continue
        family, ahead = peer[-1].family, peer[-1].figures[metric] - max(own, 0.0)
        if found and found[-1].family == family and found[-1].end == start:
            found[-1] = Lead(family, found[-1].start, end, found[-1].first, ahead)
        else:
            found.append(Lead(family, start, end, ahead, ahead))
    return found


def ratio(some: Sequence[Point], metric: str) -> Ratio | None:
    """Of the quickest peer that is as good as any peer gets; None if none is above 0."""
    best = max((p.figures[metric] for p in some if is_peer(p)), default=0.0)
    if best <= 0:
        return None
    as_good = [point for point in some if point.figures[metric] >= best - EQUAL]
    peer = min(filter(is_peer, as_good), key=lambda point: point.seconds)
    ours = min((point.seconds for point in as_good if is_ours(point)), default=math.inf)
    return Ratio(peer, best, ours)
