"""Rows that begin alike share the work of their beginning, where the model reads left to right.

A causal decoder's keys and values of a token depend only on what stands before it. Questions
about one text often begin alike, so a row can continue from the keys and values that another row
left behind: of all rows in a pool every distinct beginning is computed about once.

Rows run in generations. The first generation is computed whole; every later row takes the
longest beginning it has in common with a row of an earlier generation and runs only the rest.
The larger side of every fork of beginnings goes first, so there are at most log₂(rows)
generations, and each holds enough rows for large batches (unlike a walk from fork to fork).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import torch

from piste.types import Ints

Ids: TypeAlias = Ints

_FEWEST = 2
"""A shorter common beginning is not worth looking up."""
_SHORT = 8
"""Rows shorter than this on average run about as fast as they are planned."""
_CACHED_PER_COMPUTED = 4
"""Cached tokens are cheap to compute but take memory in the layer that reads them."""
_WIDEST = 1.25
"""The longest start and the longest rest in a group may come from different rows: together they
are at most so much longer than the longest row, and probes are as wide (see ``_objection``)."""


@dataclass(slots=True)
class Store:
    """Keys and values of shared tokens, one slot each, for every layer; filled as groups run."""

    slots: int
    tensors: dict[tuple[int, str], torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that go through the model together, each from its own start.

    Groups run in the order they come in: later ones read what earlier ones left in the store.
    """

    rows: Ids
    """Numbers of the rows in the pool."""
    starts: Ids
    """For every row how many tokens come from the store; at least one is left to run."""
    ends: Ids
    """The length of every row."""
    paths: Ids
    """rows × longest start: the slots of those tokens, right-aligned; what is left over is 0."""
    kept: Ids
    """What later groups need: for every token its row here, its position after start, its slot."""
    store: Store
    last: bool = False
    """No group after this one reads the store."""

    @property
    def tokens(self) -> int:
        """Tokens that run through the model, padding included."""
        return len(self.rows) * int((self.ends - self.starts).max())

    def halves(self) -> list[Group]:
        """Two smaller groups instead of one that does not fit into memory.

        >>> [len(half.rows) for half in share([np.array([1, 2])] * 3, budget=6)[0].halves()]
        [1, 2]
        """
        middle = len(self.rows) // 2
        first = self.kept[0] < middle
        shift = np.array([[middle], [0], [0]])
        parts = (slice(None, middle), slice(middle, None))
        kept = (self.kept[:, first], self.kept[:, ~first] - shift)
        return [
            replace(
                self,
                rows=self.rows[part],
                starts=self.starts[part],
                ends=self.ends[part],
                paths=self.paths[part],
                kept=own,
                last=self.last and part.stop is None,
            )
            for part, own in zip(parts, kept, strict=True)
        ]


def share(
    rows: Sequence[Ids],
    budget: int,
    *,
    pad: int | None = None,
    least: float = 0.12,
    call: int = 128,
    slots: int = 8192,
    tail: int = 0,
) -> list[Group]:
    """Groups of rows of token ids (none empty) that reuse each other's beginnings.

    A group runs at most ``budget`` tokens, padding included, and a row is always left with a
    token that is not ``pad``, the one a classification head looks for. Where less than ``least``
    of all tokens would be saved the groups are plain batches, longest rows first. ``call`` is
    what one more call of the model costs, in tokens; a store never holds more than ``slots``.
    The last ``tail`` tokens of every row, and the one before them, are always run.

    >>> text = np.arange(9)
    >>> groups = share([np.delete(text, k) for k in range(9)], budget=40, call=4)
    >>> [(group.rows.tolist(), group.starts.tolist()) for group in groups]
    [([8, 1, 0], [0, 0, 0]), ([2, 3, 4], [2, 3, 4]), ([5, 6, 7], [5, 6, 7])]
    """
    if not rows:
        return []
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    nothing = np.zeros_like(lengths)
    plain = _groups(np.arange(len(rows)), lengths, nothing, nothing - 1, nothing, budget, call)
    if lengths.mean() < _SHORT:
        return plain
    keys = [row.astype(">u4").tobytes() for row in rows]
    order = np.array(sorted(range(len(rows)), key=keys.__getitem__), dtype=np.int64)
    common = _common(rows, order)
    if tail:
        bodies = lengths[order] - tail - 1
        common = np.minimum(common, np.minimum(bodies[:-1], bodies[1:]))
    if common.sum() < least * lengths.sum():
        return plain
    limits = (
        lengths - 1 if pad is None or tail else np.array([_last_clear(row, pad) for row in rows])
    )
    shared = _parts(order, common, lengths, limits, budget, call, slots)
    saved = 1 - _cost(shared, call) / _cost(plain, call)
    return shared if saved >= least else plain


def _cost(groups: Sequence[Group], call: int) -> int:
    return sum(group.tokens + call for group in groups)


def _common(rows: Sequence[Ids], order: Ids) -> Ids:
    """How many tokens every row but the last, in order, shares with the next."""
    found = np.zeros(len(order) - 1, dtype=np.int64)
    for number in range(len(found)):
        one, other = rows[order[number]], rows[order[number + 1]]
        shorter = min(len(one), len(other))
        differs = one[:shorter] != other[:shorter]
        first = int(differs.argmax()) if shorter else 0
        found[number] = first if shorter and differs[first] else shorter
    return found


def _last_clear(row: Ids, pad: int) -> int:
    clear = np.flatnonzero(row != pad)
    return int(clear[-1]) if len(clear) else 0


def _parts(
    order: Ids, common: Ids, lengths: Ids, limits: Ids, budget: int, call: int, slots: int
) -> list[Group]:
    """One plan, or several with a store each if one would keep too many tokens."""
    donors, starts, levels = _family(order, common, limits)
    _merge_small_generations(donors, starts, levels, lengths[order], budget, call)
    kept = _until(donors, starts) - starts
    if kept.sum() <= slots:
        return _groups(order, lengths[order], starts, donors, levels, budget, call)
    # Cut where neighbours have least in common, but leave both sides a fair share of the rows.
    quarter = len(common) // 4
    cut = quarter + int(common[quarter : len(common) - quarter].argmin()) + 1
    halves = ((order[:cut], common[: cut - 1]), (order[cut:], common[cut:]))
    return [
        group
        for part, own in halves
        for group in _parts(part, own, lengths, limits, budget, call, slots)
    ]


def _family(order: Ids, common: Ids, limits: Ids) -> tuple[Ids, Ids, Ids]:
    """For every row, in order: whom it continues (−1: nobody), from which token, its generation.

    Neighbours that share most join first; the head of the smaller family continues the head of
    the larger one.
    """
    count = len(order)
    donors, starts = [-1] * count, [0] * count
    heads, sizes = list(range(count)), [1] * count
    joined = []
    for left in np.argsort(-common, kind="stable").tolist():
        tokens = int(common[left])
        if tokens < _FEWEST:
            break
        larger, smaller = _head(heads, left), _head(heads, left + 1)
        if sizes[larger] < sizes[smaller]:
            larger, smaller = smaller, larger
        heads[smaller] = larger
        sizes[larger] += sizes[smaller]
        tokens = min(tokens, int(limits[order[smaller]]))
        if tokens >= _FEWEST:
            donors[smaller], starts[smaller] = larger, tokens
            joined.append(smaller)
    levels = [0] * count
    for row in reversed(joined):  # who was joined last stands above who was joined before
        while starts[donors[row]] >= starts[row]:
            donors[row] = donors[donors[row]]  # the donor has that beginning from its own donor
        levels[row] = levels[donors[row]] + 1
    return np.array(donors), np.array(starts), np.array(levels)


def _head(heads: list[int], row: int) -> int:
    while heads[row] != row:
        heads[row] = row = heads[heads[row]]
    return row


def _merge_small_generations(
    donors: Ids, starts: Ids, levels: Ids, lengths: Ids, budget: int, call: int
) -> None:
    """Rows whose generation saves less than its calls cost start where their donor starts."""
    for level in range(int(levels.max()), 0, -1):
        members = np.flatnonzero(levels == level)
        above = donors[members]
        saved = int((starts[members] - starts[above]).sum())
        calls = -(-int((lengths[members] - starts[members]).sum()) // budget)
        if saved < calls * call:
            starts[members], donors[members], levels[members] = (
                starts[above],
                donors[above],
                levels[above],
            )


def _until(donors: Ids, starts: Ids) -> Ids:
    """For every row up to which token others continue it; its own start if nobody does."""
    until = starts.copy()
    has = donors >= 0
    np.maximum.at(until, donors[has], starts[has])
    return until


def _groups(
    order: Ids, lengths: Ids, starts: Ids, donors: Ids, levels: Ids, budget: int, call: int
) -> list[Group]:
    """Generation by generation, longest rest first; all arrays but ``order`` follow the order."""
    until = _until(donors, starts)
    ends = np.cumsum(until - starts)
    firsts = ends - (until - starts)
    store = Store(int(ends[-1]))
    paths: dict[int, Ids] = {-1: np.empty(0, dtype=np.int64)}
    groups = []
    rest = lengths - starts
    widest = _WIDEST * int(lengths.max())
    for level in np.unique(levels):
        members = np.flatnonzero(levels == level)
        members = members[np.lexsort((-starts[members], -rest[members]))]
        for batch in _cut(members, rest, starts, budget, call, widest):
            for row in batch[until[batch] > starts[batch]].tolist():
                own = np.arange(firsts[row], ends[row])
                paths[row] = np.concatenate([paths[int(donors[row])][: starts[row]], own])
            groups.append(
                Group(
                    rows=order[batch],
                    starts=starts[batch],
                    ends=lengths[batch],
                    paths=_right_aligned(
                        [paths[int(donors[row])][: starts[row]] for row in batch.tolist()]
                    ),
                    kept=_kept(batch, starts, until, firsts),
                    store=store,
                )
            )
    groups[-1] = replace(groups[-1], last=True)
    return groups


def _cut(members: Ids, rest: Ids, starts: Ids, budget: int, call: int, widest: float) -> list[Ids]:
    """Batches of sorted members that fit the budget and are at most so wide, cache included.

    A batch also ends when its padding costs more than a call: where lengths fall evenly the two
    together are smallest when they are equal.
    """
    batches, begin, cached, padding = [], 0, 0, 0
    computed = int(rest[members[0]])
    for place, (own, start) in enumerate(
        zip(rest[members].tolist(), starts[members].tolist(), strict=True)
    ):
        rows, wider = place - begin + 1, max(cached, start)
        padding += computed - own
        if rows > 1 and (
            rows * computed > budget
            or rows * (computed + wider) > _CACHED_PER_COMPUTED * budget
            or computed + wider > widest
            or padding > call
        ):
            batches.append(members[begin:place])
            begin, computed, wider, padding = place, own, start, 0
        cached = wider
    return [*batches, members[begin:]]


def _right_aligned(paths: Sequence[Ids]) -> Ids:
    table = np.zeros((len(paths), max(len(path) for path in paths)), dtype=np.int64)
    for row, path in zip(table, paths, strict=True):
        row[len(row) - len(path) :] = path
    return table


def _kept(batch: Ids, starts: Ids, until: Ids, firsts: Ids) -> Ids:
    counts = (until - starts)[batch]
    rows = np.repeat(np.arange(len(batch)), counts)
    places = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.stack([rows, places, firsts[batch][rows] + places])
