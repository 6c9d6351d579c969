"""Linear regression: the best additive model of random removals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.methods.additive import AdditiveScores, CoalitionMethod
from piste.methods.base import Task
from piste.methods.conversation import Game
from piste.slalom import sampling
from piste.types import Floats
from piste.validation import choose

_RIDGES = np.logspace(-6, 4, 31)


@dataclass(frozen=True)
class LinearMethod(CoalitionMethod):
    """Least squares on which units are kept, with the ridge that leave-one-out prefers.

    The questions are those of SLALOM (``sampler``: subsets, deletion, short or mix), so this is
    what an additive model makes of the same answers.
    """

    sampler: str = "subsets"

    name: ClassVar[str] = "linear"
    asks_nothing: ClassVar[bool] = False
    about: ClassVar[str] = "linear regression on random removals"

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("sampler", self.sampler, sampling.SAMPLERS)

    def explore(self, game: Game, task: Task, budget: int) -> AdditiveScores:
        n = len(task.subject)
        seen = {sampling.key_of(np.asarray(one)) for one in task.sequences}
        drawn = sampling.draw(self.sampler, n, budget, task.rng, seen)
        if task.subject.can_be_empty:
            drawn = [*drawn, np.empty(0, dtype=np.int64)]
        masks = np.zeros((len(drawn) + 1, n), dtype=bool)
        for row, kept in zip(masks, drawn, strict=False):
            row[kept] = True
        masks[-1] = True
        numbers = game(masks)
        weights, base, ridge = ridge_regression(masks.astype(np.float64), numbers)
        return AdditiveScores(weights, base, {"ridge": ridge})


def ridge_regression(rows: Floats, numbers: Floats) -> tuple[Floats, Floats, float]:
    """Weights, intercept and the ridge with the least leave-one-out error.

    From one singular value decomposition: e_i = (y_i − ŷ_i) / (1 − h_ii), the intercept
    unpenalised.

    >>> rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 2, dtype=float)
    >>> weights, base, _ = ridge_regression(rows, 1 + rows @ [2.0, 1.0])
    >>> weights.round(3).tolist(), round(float(base), 3)
    ([2.0, 1.0], 1.0)
    """
    columns = numbers if numbers.ndim == 2 else numbers[:, None]
    centre, level = rows.mean(axis=0), columns.mean(axis=0)
    left, sizes, right = np.linalg.svd(rows - centre, full_matrices=False)
    along = left.T @ (columns - level)
    best: tuple[float, float] | None = None
    for ridge in _RIDGES:
        shrink = sizes**2 / (sizes**2 + ridge)
        leverage = np.minimum((left**2) @ shrink + 1 / len(rows), 1 - 1e-9)
        residual = (columns - level - left @ (shrink[:, None] * along)) / (1 - leverage)[:, None]
        error = float((residual**2).mean())
        if best is None or error < best[0]:
            best = error, float(ridge)
    assert best is not None
    ridge = best[1]
    weights = right.T @ ((sizes / (sizes**2 + ridge))[:, None] * along)
    base = level - centre @ weights
    if numbers.ndim == 1:
        return weights[:, 0], base[0], ridge
    return weights, base, ridge
