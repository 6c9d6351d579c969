"""ContextCite: a sparse linear model of random removals (Cohen-Wang et al., 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.errors import PisteError
from piste.methods.additive import AdditiveScores, CoalitionMethod
from piste.methods.base import Task
from piste.methods.conversation import Game
from piste.types import Flags, Floats


@dataclass(frozen=True)
class ContextCiteMethod(CoalitionMethod):
    """LASSO on removals that keep every unit with probability 1/2; 64 of them by default.

    With z_ij = (kept_ij − mean_j) / deviation_j the weights minimise

        Σ_i (f_i − b − w · z_i)² / (2m) + alpha ‖w‖₁

    and a score is w_j / deviation_j, the weight on the scale of the answers.

    >>> import piste
    >>> e = piste.explain("piste:reviews", "A wonderful film.", method="contextcite")
    >>> e.units[int(e.score().argmax())].text
    'wonderful'
    """

    alpha: float = 0.01

    name: ClassVar[str] = "contextcite"
    asks_nothing: ClassVar[bool] = False
    about: ClassVar[str] = "weights of a sparse linear model of random removals (LASSO)"
    paper: ClassVar[str] = "Cohen-Wang et al., NeurIPS 2024"
    library: ClassVar[str] = "sklearn"

    def __post_init__(self) -> None:
        super().__post_init__()
        alpha = self.alpha
        if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not alpha > 0:
            raise PisteError(f"alpha: expected a number above 0, got {alpha!r}.")

    def usual_questions(self, task: Task) -> int | None:
        return 64

    def explore(self, game: Game, task: Task, budget: int) -> AdditiveScores:
        masks = half_kept(len(task.subject), budget, task.rng, task.subject.can_be_empty)
        weights, base = lasso(masks.astype(np.float64), game(masks), self.alpha)
        return AdditiveScores(weights, base, {})


def half_kept(units: int, count: int, rng: np.random.Generator, empty: bool) -> Flags:
    """Masks that keep each unit with probability 1/2; without ``empty`` each keeps one at least.

    >>> half_kept(1, 2, np.random.default_rng(0), empty=False).tolist()
    [[True], [True]]
    """
    masks = rng.random((count, units)) < 0.5
    while not empty and (bare := ~masks.any(axis=1)).any():
        masks[bare] = rng.random((int(bare.sum()), units)) < 0.5
    return masks


def lasso(rows: Floats, numbers: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Weights and intercept on the scale of the answers, from standardised columns.

    >>> rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 4, dtype=float)
    >>> weights, base = lasso(rows, 1 + rows @ [2.0, 0.0], 0.01)
    >>> weights.round(2).tolist(), float(base.round(2))
    ([1.98, 0.0], 1.01)
    """
    from sklearn.linear_model import Lasso

    centre, width = rows.mean(axis=0), rows.std(axis=0)
    width[width == 0] = 1.0
    fitted = Lasso(alpha=alpha, random_state=0).fit((rows - centre) / width, numbers)
    weights = np.asarray(fitted.coef_, dtype=np.float64).T
    weights = weights / (width if weights.ndim == 1 else width[:, None])
    return weights, np.asarray(fitted.intercept_ - centre @ weights, dtype=np.float64)
