"""From sets of examples to vectors: states are collected, then many vectors are fitted.

Random sets are treated exactly as concepts are, so that what a concept shows can be held against
what any set of examples would show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from piste.concepts.states import StateReader
from piste.concepts.vectors import Draw, Rows, fit
from piste.subject import Subject
from piste.types import Floats

Space: TypeAlias = Literal["tokens", "mean", "reader"]
"""What a vector is fitted to: all tokens of an example, their mean, or what the head reads."""
SPACES: tuple[Space, ...] = ("tokens", "mean", "reader")

RANDOM_FITS = 3
"""Vectors of every random set, of which the mean is taken as of a concept's."""

States: TypeAlias = Mapping[Space, Rows]
"""One set's states in one layer."""


@dataclass(frozen=True)
class FittedVectors:
    """All vectors of one layer and space, and how they tell held-out examples apart."""

    concepts: Mapping[str, Floats]
    """Repeats × features each."""
    accuracies: Mapping[str, Floats]
    random: Floats
    """Random sets × their vectors × features."""
    random_accuracies: Floats
    """One mean per random set."""


def collect(
    reader: StateReader,
    subjects: Iterable[Subject],
    layers: Sequence[int],
    *,
    tokens: int,
    seed: Sequence[int],
    done: Callable[[int], None],
) -> list[States]:
    """The states of a set of examples, by layer; of every example at most so many tokens.

    Which tokens depends on the seed and the example's number alone, and is the same in all layers.
    """
    kept: list[dict[Space, dict[int, Floats]]] = [{space: {} for space in SPACES} for _ in layers]
    for seen in reader.read(subjects, layers, gradients=False):
        for row, number in enumerate(seen.numbers):
            rng = np.random.default_rng([*seed, number])
            count = seen.readers.shape[1]
            chosen = np.sort(rng.permutation(count)[:tokens])
            read = seen.readers[row].cpu().numpy()
            for place, states in enumerate(seen.states):
                mine = states[row].cpu().numpy()
                kept[place]["tokens"][number] = mine[chosen]
                kept[place]["mean"][number] = mine.mean(axis=0, keepdims=True)
                kept[place]["reader"][number] = mine[read].mean(axis=0, keepdims=True)
        done(len(seen.numbers))
    return [{space: _rows(layer[space]) for space in SPACES} for layer in kept]


def _rows(by_example: Mapping[int, Floats]) -> Rows:
    parts = [by_example[number] for number in range(len(by_example))]
    owners = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return Rows(np.concatenate(parts), owners)


class Draws:
    """Which examples every vector is fitted to: the same in all layers and spaces.

    A concept is told from the negatives, or where there are none from all other concepts. Random
    sets are drawn from the negatives, or hold as much of every concept as what they are told from:
    what tells concepts apart must not be part of what is random.
    """

    def __init__(
        self, sizes: Mapping[str, int], negatives: int | None, repeats: int, seed: int
    ) -> None:
        self.names, self.repeats, self._seed = tuple(sizes), repeats, seed
        ends = np.cumsum([0, *sizes.values()])
        self._own = {
            name: np.arange(start, end)
            for name, start, end in zip(sizes, ends[:-1], ends[1:], strict=True)
        }
        total = int(ends[-1])
        if negatives is None:
            self._against = {
                name: np.setdiff1d(np.arange(total), own) for name, own in self._own.items()
            }
            self._pools = list(self._own.values())
        else:
            given = np.arange(total, total + negatives)
            self._against = dict.fromkeys(sizes, given)
            self._pools = [given]
        self.sets = max(repeats, 20)  # fewer would say little about what is usual
        fitted = (min(len(self._own[name]), len(self._against[name])) for name in sizes)
        # As large as the smallest concept, in equal parts; the other half is left to tell from.
        share = max(round(min(fitted) / len(self._pools)), 2)
        self._shares = [min(share, len(pool) // 2) for pool in self._pools]

    def of_concept(self, name: str) -> list[Draw]:
        """As many as there are repeats."""
        place = self.names.index(name)
        return [
            Draw.of(
                self._own[name],
                self._against[name],
                np.random.default_rng([self._seed, 1, place, repeat]),
            )
            for repeat in range(self.repeats)
        ]

    def of_random_sets(self) -> list[list[Draw]]:
        """A few for every random set, each told from others."""
        found = []
        for number in range(self.sets):
            rng = np.random.default_rng([self._seed, 2, number])
            orders = [rng.permutation(pool) for pool in self._pools]
            parts = [
                (order[:share], order[share:])
                for order, share in zip(orders, self._shares, strict=True)
            ]
            found.append(
                [
                    Draw.joined([Draw.of(own, against, rng) for own, against in parts])
                    for _ in range(RANDOM_FITS)
                ]
            )
        return found

    @property
    def fits(self) -> int:
        """How many vectors are fitted in each layer and space."""
        return len(self.names) * self.repeats + self.sets * RANDOM_FITS


def fit_all(sets: Sequence[Rows], draws: Draws, done: Callable[[int], None]) -> FittedVectors:
    """All vectors of one layer and space; ``sets`` are the concepts, then the negatives."""
    rows = Rows.joined(sets)
    directions, accuracies = {}, {}
    for name in draws.names:
        found = [fit(rows, rows, draw) for draw in draws.of_concept(name)]
        directions[name] = np.stack([vector.direction for vector in found])
        accuracies[name] = np.array([vector.accuracy for vector in found])
        done(len(found))
    random, random_accuracies = [], []
    for several in draws.of_random_sets():
        found = [fit(rows, rows, draw) for draw in several]
        random.append(np.stack([vector.direction for vector in found]))
        random_accuracies.append(np.mean([vector.accuracy for vector in found]))
        done(len(found))
    return FittedVectors(directions, accuracies, np.stack(random), np.array(random_accuracies))
