"""Kernel SHAP: Shapley values by weighted regression (Lundberg & Lee, 2017), by the library."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.errors import PisteError
from piste.methods.additive import AdditiveScores, CoalitionMethod
from piste.methods.base import Task
from piste.methods.conversation import Game


@dataclass(frozen=True)
class KernelShapMethod(CoalitionMethod):
    """Removals drawn by the Shapley kernel, regression constrained to f(all) − f(none).

    ``l1_reg`` is the library's selection of units before the regression: "bic", "aic",
    "num_features(10)" (its own default, which gives all but ten units a score of zero), a
    penalty, or False for none. The library draws removals with their complements, so without a
    selection n units need far more than 2n questions; "auto" selects by "bic" unless every
    removal there is could be asked.
    """

    l1_reg: str | float | bool = "auto"

    name: ClassVar[str] = "kernel_shap"
    compared: ClassVar[bool] = True
    evaluated: ClassVar[bool] = True
    about: ClassVar[str] = "Shapley values, estimated by weighted regression"
    paper: ClassVar[str] = "Lundberg & Lee, NeurIPS 2017"
    library: ClassVar[str] = "shap"

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.l1_reg
        named = isinstance(given, str) and re.fullmatch(r"auto|aic|bic|num_features\(\d+\)", given)
        if not named and (isinstance(given, str) or not given >= 0):
            raise PisteError(
                "l1_reg: expected auto, aic, bic, num_features(10), a number of at least 0, or "
                f"False, got {given!r}."
            )

    def explore(self, game: Game, task: Task, budget: int) -> AdditiveScores:
        import shap

        n = len(task.subject)
        chosen = self.l1_reg
        if chosen == "auto":
            chosen = "bic" if n > 12 else False
        explainer = shap.KernelExplainer(game, np.zeros((1, n)))
        values = explainer.shap_values(np.ones((1, n)), nsamples=budget, l1_reg=chosen, silent=True)
        scores = np.asarray(values, dtype=np.float64)[0]
        sampled = n > 12 or budget < 2**n - 2  # or else every removal there is was asked
        more = {"l1_reg_used": chosen, "underdetermined": not chosen and sampled and 2 * n > budget}
        return AdditiveScores(scores, np.asarray(explainer.expected_value, dtype=np.float64), more)
