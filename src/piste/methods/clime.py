"""C-LIME: a linear model of removals of few units (Monteiro Paes et al., 2024)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.methods.additive import AdditiveScores, CoalitionMethod
from piste.methods.base import Task
from piste.methods.conversation import Game
from piste.types import Flags, Floats
from piste.validation import check_count

_PER_UNIT = 10


@dataclass(frozen=True)
class CLimeMethod(CoalitionMethod):
    """Least squares on removals of at most ``most_removed`` units, ten questions per unit.

    This is the attribution of MExGen. Every number k of removed units, 0 to ``most_removed``, has
    the same total weight, shared equally by the m removals of k units that were drawn:

        min Σ_R (f(all without R) − b + Σ_{i∈R} score_i)² / m(R)

    >>> import piste
    >>> e = piste.explain("piste:reviews", "A wonderful film.", method="clime")
    >>> e.units[int(e.score().argmax())].text
    'wonderful'
    """

    most_removed: int = 2

    name: ClassVar[str] = "clime"
    asks_nothing: ClassVar[bool] = False
    about: ClassVar[str] = "weights of a linear model of removals of at most two units (MExGen)"
    paper: ClassVar[str] = "Monteiro Paes et al., ACL 2025"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("most_removed", self.most_removed)

    def usual_questions(self, task: Task) -> int | None:
        return _PER_UNIT * len(task.subject)

    def explore(self, game: Game, task: Task, budget: int) -> AdditiveScores:
        n = len(task.subject)
        most = min(self.most_removed, n if task.subject.can_be_empty else n - 1)
        gone, weights = few_removed(n, most, budget, task.rng)
        scores, base = weighted_least_squares(gone.astype(np.float64), game(~gone), weights)
        # The sum counts what is kept, the regression what is removed.
        return AdditiveScores(-scores, base + scores.sum(axis=0), {})


def few_removed(
    units: int, most: int, count: int, rng: np.random.Generator
) -> tuple[Flags, Floats]:
    """Which units are removed (about ``count`` removals, and none at all first), and weights.

    Sizes are gone through from one up; each takes its share of what is left, or all there are.

    >>> gone, weights = few_removed(3, 2, 100, np.random.default_rng(0))
    >>> gone.sum(axis=1).tolist(), weights.round(2).tolist()
    ([0, 1, 1, 1, 2, 2, 2], [1.0, 0.33, 0.33, 0.33, 0.33, 0.33, 0.33])
    """
    rows, weights, left = [np.zeros((1, units), dtype=bool)], [np.ones(1)], count
    for size in range(1, most + 1):
        share = min(round(left / (most + 1 - size)), math.comb(units, size))
        if share <= 0:
            continue
        drawn = _subsets(units, size, share, rng)
        block = np.zeros((share, units), dtype=bool)
        np.put_along_axis(block, drawn, True, axis=1)
        rows.append(block)
        weights.append(np.full(share, 1.0 / share))
        left -= share
    return np.concatenate(rows), np.concatenate(weights)


def _subsets(units: int, size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Different subsets of a size, in random order unless all are wanted."""
    if count == math.comb(units, size):
        return np.array(list(itertools.combinations(range(units), size)), dtype=np.int64)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < count:
        found[tuple(sorted(rng.choice(units, size, replace=False).tolist()))] = None
    return np.array(list(found), dtype=np.int64)


def weighted_least_squares(rows: Floats, numbers: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Slopes and intercept; the shortest slopes where the rows do not determine them.

    >>> rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    >>> slopes, base = weighted_least_squares(rows, 1 + rows @ [2.0, 3.0], np.ones(4))
    >>> slopes.round(6).tolist(), float(base.round(6))
    ([2.0, 3.0], 1.0)
    """
    centre = np.average(rows, axis=0, weights=weights)
    level = np.average(numbers, axis=0, weights=weights)
    root = np.sqrt(weights)
    apart = numbers - level
    apart = apart * (root if apart.ndim == 1 else root[:, None])
    slopes: Floats = np.linalg.lstsq((rows - centre) * root[:, None], apart, rcond=None)[0].astype(
        np.float64
    )
    return slopes, level - centre @ slopes
