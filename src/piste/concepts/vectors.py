"""Concept activation vectors: the direction in which a concept's examples lie.

Logistic regression tells the states of a concept's examples from those of others; the unit normal
u of the plane between them is the concept's vector. One in three examples is held out with all its
tokens, so that the accuracy there says whether the vector knows the concept or only its examples.

Random sets are treated exactly as concepts are, so that what a concept shows can be held against
what any set of examples would show.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from piste.concepts.states import StateReader
from piste.errors import need
from piste.slalom.fitting import threads_for
from piste.subject import Subject
from piste.types import Floats, Ints

Singles = NDArray[np.float32]

HELD_OUT = 1 / 3
"""Share of the examples that a vector is not fitted to."""
RIDGE = 0.01
"""Weight of ½‖w‖² beside the mean loss, features standardised."""
_STEPS = 50
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Rows:
    """Vectors (rows × features) and the example each is of; several if an example has tokens."""

    vectors: Singles
    owners: Ints

    @property
    def examples(self) -> int:
        return int(self.owners.max()) + 1 if len(self.owners) else 0

    def of(self, examples: Ints) -> Rows:
        """The rows of some examples, which are numbered anew in this order."""
        place = np.full(self.examples, -1, dtype=np.int64)
        place[examples] = np.arange(len(examples))
        owners = place[self.owners]
        mine = owners >= 0
        return Rows(self.vectors[mine], owners[mine])

    @staticmethod
    def joined(parts: Sequence[Rows]) -> Rows:
        """All examples of several sets, in order."""
        shifts = np.cumsum([0, *(part.examples for part in parts[:-1])])
        return Rows(
            np.concatenate([part.vectors for part in parts]),
            np.concatenate(
                [part.owners + shift for part, shift in zip(parts, shifts, strict=True)]
            ),
        )

    def shares(self) -> Floats:
        """A weight for every row, so that each example counts the same."""
        return 1.0 / np.bincount(self.owners)[self.owners]


@dataclass(frozen=True)
class Draw:
    """Which examples of two sets are fitted to, and which are held out."""

    fitted: tuple[Ints, Ints]
    held_out: tuple[Ints, Ints]

    @staticmethod
    def of(first: Ints, second: Ints, rng: np.random.Generator) -> Draw:
        """As many of the one as of the other, at random; a third of each is held out.

        >>> draw = Draw.of(np.arange(9), np.arange(20), np.random.default_rng(0))
        >>> [len(part) for part in (*draw.fitted, *draw.held_out)]
        [6, 6, 3, 3]
        """
        count = min(len(first), len(second))
        rest = max(round(HELD_OUT * count), 1)
        one, other = (rng.permutation(part)[:count] for part in (first, second))
        return Draw((one[rest:], other[rest:]), (one[:rest], other[:rest]))

    @staticmethod
    def joined(draws: Sequence[Draw]) -> Draw:
        """Several draws as one."""

        def both(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
            one, other = zip(*parts, strict=True)
            return np.concatenate(one), np.concatenate(other)

        return Draw(both([draw.fitted for draw in draws]), both([draw.held_out for draw in draws]))


@dataclass(frozen=True)
class Vector:
    """A direction, and the share of held-out examples that lie on their side of its plane.

    An example lies where the mean of its rows does.
    """

    direction: Floats
    accuracy: float


def fit(first: Rows, second: Rows, draw: Draw) -> Vector:
    """The vector from the second set to the first.

    Minimises mean log(1 + exp(−y (w·z + b))) + RIDGE/2 · ‖w‖² over standardised rows z in which
    each example counts the same; u = (w / σ) / ‖w / σ‖.

    >>> rng = np.random.default_rng(0)
    >>> ones, others = (rng.normal(size=(30, 4)).astype(np.float32) for _ in range(2))
    >>> ones[:, 2] += 6
    >>> own = np.arange(30)
    >>> vector = fit(Rows(ones, own), Rows(others, own), Draw.of(own, own, rng))
    >>> int(np.argmax(vector.direction)), vector.accuracy
    (2, 1.0)
    """
    linear: Any = need("sklearn.linear_model", "concepts", "Concept activation vectors")
    parts = [rows.of(chosen) for rows, chosen in zip((first, second), draw.fitted, strict=True)]
    vectors = np.concatenate([part.vectors for part in parts]).astype(np.float64)
    shares = np.concatenate([part.shares() for part in parts])
    sides = np.repeat([1, 0], [len(part.owners) for part in parts])
    shares /= shares.sum()
    centre = shares @ vectors
    vectors -= centre
    spread = np.sqrt(shares @ vectors**2)
    spread[spread <= 1e-12 * max(spread.max(), 1e-300)] = np.inf  # a feature that never changes
    vectors /= spread
    model = linear.LogisticRegression(C=1 / RIDGE, max_iter=_STEPS, tol=_TOLERANCE)
    with warnings.catch_warnings(), threads_for(0):
        warnings.simplefilter("ignore")  # a few steps are enough, and sides may be separable
        model.fit(vectors, sides, sample_weight=shares)
    slope = model.coef_[0] / spread
    offset = float(model.intercept_[0]) - slope @ centre
    size = float(np.linalg.norm(slope))
    hits = np.concatenate(
        [
            np.heaviside(sign * _heights(rows.of(chosen), slope, offset), 0.5)
            for rows, chosen, sign in zip((first, second), draw.held_out, (1, -1), strict=True)
        ]
    )
    return Vector(slope / size if size > 0 else slope, float(hits.mean()))


def _heights(rows: Rows, slope: Floats, offset: float) -> Floats:
    """How far above the plane every example lies, on average over its rows."""
    above = rows.vectors @ slope + offset
    return np.bincount(rows.owners, above) / np.bincount(rows.owners)


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
