"""Coarse to fine: which units are split, into what, and how many questions a level may ask."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from piste.explanation import Explanation
from piste.explanation_run import StagedRun
from piste.methods import Method
from piste.methods.base import default_samples
from piste.subject import Cut, Subject, Unit

SHARE = 0.8
"""How much of all |score| the units hold that are split."""
MOST = 100
"""Units that a level adds at most: what a long text costs must not grow with its length."""
_LEAST = 60
"""Questions of a coarse level at least, if no number was given."""
_PER_UNIT = 3

Place = tuple[int, int, int]
"""Segment, start and end."""
Part = tuple[Place, int]
"""A place in the text, and the number of the level whose unit it is."""


def standing_out(e: Explanation) -> list[int]:
    """The units that matter, the strongest first: the fewest that hold 80 % of all sizes.

    The size is the absolute value of the score that ranks. Units within one standard error of 0
    never matter.

    >>> import piste
    >>> e = piste.explain(lambda texts: [t.count("!") for t in texts], "a b ! c", samples=50)
    >>> standing_out(e)
    [2]
    """
    sizes = np.abs(np.nan_to_num(e.score()))
    order = np.argsort(-sizes, kind="stable")
    before = np.cumsum(sizes[order]) - sizes[order]
    errors = np.nan_to_num(e.error(), nan=0.0, posinf=np.inf)
    chosen = order[(before < SHARE * sizes.sum()) & (sizes > errors)[order]]
    return [int(unit) for unit in chosen]


def most_new(method: Method) -> int:
    """How many units a level may add: 100, or where questions are counted, a fifth of them."""
    samples = getattr(method, "samples", None)
    return max(samples // 5, 2) if isinstance(samples, int) else MOST


def split(
    parts: Sequence[Part],
    order: Sequence[int],
    finer: Sequence[Sequence[Unit]],
    most: int = MOST,
) -> list[Part]:
    """Some parts cut at the edges of units of the next level: in this order, the first always.

    ``finer[level]`` are the units of a level. Others follow the first as long as this adds at most
    so many parts. A part that is one unit of the next level too is cut at the level after it.
    """
    cut: dict[int, list[Part]] = {}
    added = 0
    for number in order:
        pieces = _next(parts[number], finer)
        added += len(pieces) - 1
        if cut and added > most:
            break
        if len(pieces) > 1:
            cut[number] = pieces
    return [piece for number, part in enumerate(parts) for piece in cut.get(number, [part])]


def _next(part: Part, finer: Sequence[Sequence[Unit]]) -> list[Part]:
    for level in range(part[1] + 1, len(finer)):
        pieces = _pieces(part[0], finer[level])
        if len(pieces) > 1:
            return [(piece, level) for piece in pieces]
    return [part]


def _pieces(whole: Place, finer: Sequence[Unit]) -> list[Place]:
    """What lies of the finer units in a span; pieces that overlap (parts of one sign) as one."""
    segment, first, last = whole
    pieces: list[Place] = []
    for unit in finer:
        start, end = max(unit.start, first), min(unit.end, last)
        if unit.segment != segment or start >= end:
            continue
        if pieces and start < pieces[-1][2]:
            pieces[-1] = segment, pieces[-1][1], max(end, pieces[-1][2])
        else:
            pieces.append((segment, start, end))
    return pieces


def as_parts(subject: Subject) -> list[Part]:
    """The units of the first level."""
    return [((unit.segment, unit.start, unit.end), 0) for unit in subject.units]


def as_spans(parts: Sequence[Part], subject: Subject) -> list[tuple[int, ...]]:
    """Spans as a user gives them."""
    pair = isinstance(subject.input, tuple)
    return [place if pair else place[1:] for place, _ in parts]


def asked_by(method: Method, e: Explanation) -> int:
    """How many questions a level asked; its calls count every window of a long text."""
    samples = getattr(method, "samples", None)
    return min(samples, e.calls) if isinstance(samples, int) else e.calls


def coarse_method(method: Method, distinct: int, levels: int) -> Method:
    """The method for a coarse level: half of all questions is shared by these levels.

    Where no number was given, three questions for every distinct unit, at least 60.
    """
    if not hasattr(method, "samples"):
        return method
    own = _PER_UNIT * distinct
    asked = min(max(own, _LEAST), default_samples(distinct))
    if isinstance(method.samples, int):
        asked = max(method.samples // (2 * (levels - 1)), 1)
    more = {"seconds": None} if hasattr(method, "seconds") else {}
    return replace(method, samples=asked, **more)  # type: ignore[type-var]  # methods are dataclasses


def last_method(method: Method, distinct: int, asked: int, seconds: float) -> Method:
    """The method for the last level, which has what is left of the questions, or of the time.

    Where no number was given, these are the questions the last partition would have been asked
    alone, less those of the coarse levels, and at least half of them.
    """
    if not hasattr(method, "samples"):
        return method
    more: dict[str, object] = {}
    if getattr(method, "seconds", None) is not None:
        more["seconds"] = max(method.seconds - seconds, 0.1)  # type: ignore[attr-defined]  # it has
    elif isinstance(method.samples, int):
        more["samples"] = max(method.samples - asked, 1)
    elif method.samples is None:
        usual = default_samples(distinct)
        more["samples"] = max(usual - asked, usual // 2)
    return replace(method, **more)  # type: ignore[type-var]  # methods are dataclasses


class LevelRun(StagedRun):
    """One input, from coarse to fine: every level splits the units that matter on the last one."""

    def explain(self, subject: Subject) -> Explanation:
        cuts, asked = self.cuts, 0
        finer = [subject.units, *(self.bind(subject, cut).units for cut in cuts[1:])]
        parts = as_parts(subject)
        for _ in cuts[1:]:
            order, most = [0], sys.maxsize
            if len(subject) > 1:  # what is one piece is split in any case
                if not self.subjects or self.subjects[-1] is not subject:
                    method = coarse_method(self.method, _distinct(subject), len(cuts))
                    asked += asked_by(method, self.stage(method, subject))
                order, most = standing_out(self.found[-1]), most_new(self.method)
            finest = split(parts, order, finer, most)
            if len(finest) > len(parts):
                parts = finest
                subject = self.bind(subject, as_spans(parts, subject))
        levels = tuple(self.found)
        seconds = sum(one.seconds for one in levels)
        method = last_method(self.method, _distinct(subject), asked, seconds)
        last = self.stage(method, subject)
        return replace(self.in_all(last, levels=[_name(cut) for cut in cuts]), levels=levels)


def _name(cut: Cut) -> str:
    return cut if isinstance(cut, str) else str(getattr(cut, "__name__", "function"))


def _distinct(subject: Subject) -> int:
    return len(np.unique(subject.types))
