"""Concept activation vectors: the direction in which a concept's examples lie.

Logistic regression tells the states of a concept's examples from those of others; the unit normal
u of the plane between them is the concept's vector. One in three examples is held out with all its
tokens, so that the accuracy there says whether the vector knows the concept or only its examples.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from piste.errors import need
from piste.threads import threads_for
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
