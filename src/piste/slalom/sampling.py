"""Which sequences of units to ask about. Indices in, index arrays out, no model.

All samplers keep the text's order, never repeat a question, and spread over the units as evenly
as they can: short sequences are cut from shuffled decks, subsets come with their complements.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import exp, log

import numpy as np

from piste.types import Ints as Indices

SeenKeys = set[bytes]

# Mostly three units, as in the paper; single ones say what a unit says alone, and different sizes
# tell the units' weight from the background's.
SHORT_SIZES = (1, 2, 3, 3, 3)
MOST_DELETIONS = 5


def draw(
    sampler: str,
    n: int,
    count: int,
    rng: np.random.Generator,
    seen: SeenKeys | None = None,
    types: Indices | None = None,
    largest: float = 1.0,
) -> list[Indices]:
    """``count`` new questions about n units (fewer if there are no more), none in ``seen``.

    ``log``: sizes from 2 to n − 1, small ones as often as large ones on a log scale; ``short``: a
    few units each; ``deletion``: all but 1 to 5; ``subsets``: every size between, equally often;
    ``mix``: half log, half subsets. ``seen`` learns what was drawn. ``largest`` is the part of the
    n units that a question of ``log`` may have.
    With ``types`` two questions are the same if the same kinds of units stand in the same order.

    >>> sorted(q.tolist() for q in draw("deletion", 3, 9, np.random.default_rng(0)))
    [[0], [0, 1], [0, 2], [1], [1, 2], [2]]
    """
    seen = set() if seen is None else seen
    types = np.arange(n) if types is None else types
    if sampler == "mix":
        few = draw("log", n, (count + 1) // 2, rng, seen, types)
        return few + draw("subsets", n, count - len(few), rng, seen, types)
    if n <= 14 and 2**n - 2 <= 4 * count:
        return _from_all(sampler, types, count, rng, seen)
    found: list[Indices] = []
    stream = _logarithmic(n, rng, largest) if sampler == "log" else _STREAMS[sampler](n, rng)
    # Long runs of repeats mean that this sampler has nothing new left to say.
    for question in islice(stream, 20 * count + 1000):
        if len(found) >= count:
            break
        if _new(types[question], seen):
            found.append(question)
    return found


def alone(types: Indices, most: int, rng: np.random.Generator) -> list[Indices]:
    """One question about every type of unit alone, or about ``most`` of them, fairly drawn.

    >>> [q.tolist() for q in alone(np.array([0, 1, 0]), 9, np.random.default_rng(0))]
    [[0], [1]]
    """
    first = np.unique(types, return_index=True)[1]
    if len(first) > most:
        first = np.sort(rng.choice(first, most, replace=False))
    return [np.array([unit]) for unit in first]


def key_of(kinds: Indices) -> bytes:
    """What makes two questions the same: the kinds of their units, in order."""
    return kinds.astype(np.int32).tobytes()


def _new(kinds: Indices, seen: SeenKeys) -> bool:
    key = key_of(kinds)
    if key in seen:
        return False
    seen.add(key)
    return True


def _from_all(
    sampler: str, types: Indices, count: int, rng: np.random.Generator, seen: SeenKeys
) -> list[Indices]:
    """Few units have few subsets: list those the sampler could give and take them in turn."""
    n = len(types)
    numbers = np.arange(1, 2**n - 1)[:, None]
    masks = (numbers >> np.arange(n)) & 1
    sizes = masks.sum(axis=1)
    if sampler == "short":
        masks = masks[sizes <= max(SHORT_SIZES)]
    elif sampler == "deletion":
        masks = masks[sizes >= n - MOST_DELETIONS]
    order = rng.permutation(len(masks))
    questions = (np.nonzero(masks[row])[0] for row in order)
    return list(islice((q for q in questions if _new(types[q], seen)), count))


def _orders(n: int, rng: np.random.Generator) -> Iterator[Indices]:
    """Random orders of the units, drawn many at a time."""
    block = max(min(200_000 // n, 256), 1)
    while True:
        yield from rng.permuted(np.tile(np.arange(n), (block, 1)), axis=1)


def _short(n: int, rng: np.random.Generator) -> Iterator[Indices]:
    """Hands of a few units from shuffled decks, so that all units come up equally often."""
    sizes = [size for size in SHORT_SIZES if size < n] or [1]
    asked_alone: set[int] = set()
    for deck in _orders(n, rng):
        start = 0
        for size in rng.choice(sizes, size=n).tolist():
            if size == 1 and len(sizes) > 1 and int(deck[start]) in asked_alone:
                size = 2  # alone it would be a question asked before
            hand = np.sort(deck[start : start + size])  # the last hand takes what is left
            if len(hand) == 1:
                asked_alone.add(int(hand[0]))
            yield hand
            start += size
            if start >= n:
                break


def _deletion(n: int, rng: np.random.Generator) -> Iterator[Indices]:
    most = max(min(MOST_DELETIONS, n - 1), 1)
    for order in _orders(n, rng):
        kept = np.ones(n, dtype=bool)
        kept[order[: int(rng.integers(1, most + 1))]] = False
        yield np.nonzero(kept)[0]


def _subsets(n: int, rng: np.random.Generator) -> Iterator[Indices]:
    """Subsets with sizes spread evenly over 1 … n − 1, each followed by its complement."""
    turn = float(rng.random())
    for order in _orders(n, rng):
        # A golden-ratio walk visits all sizes evenly at any number of questions.
        turn = (turn + 0.6180339887498949) % 1.0
        size = 1 + int(turn * (n - 1)) if n > 1 else 1
        kept = np.zeros(n, dtype=bool)
        kept[order[:size]] = True
        yield np.nonzero(kept)[0]
        if size < n:
            yield np.nonzero(~kept)[0]


def _logarithmic(n: int, rng: np.random.Generator, largest: float = 1.0) -> Iterator[Indices]:
    """Subsets whose sizes are spread evenly over log 2 … log (n − 1), or up to a part of n."""
    turn = float(rng.random())
    low, high = log(1.5), log(max(min(int(largest * n), n - 1) + 0.5, 1.6))
    for order in _orders(n, rng):
        turn = (turn + 0.6180339887498949) % 1.0
        size = min(max(round(exp(low + turn * (high - low))), 1), max(n - 1, 1))
        yield np.sort(order[:size])


_STREAMS = {"log": _logarithmic, "short": _short, "deletion": _deletion, "subsets": _subsets}
SAMPLERS = (*_STREAMS, "mix")
