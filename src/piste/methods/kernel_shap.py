"""Kernel SHAP: Shapley values by weighted regression (Lundberg & Lee, 2017), by the library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.errors import need
from piste.methods.additive import CoalitionMethod, Found
from piste.methods.base import Task
from piste.methods.conversation import Game


@dataclass(frozen=True)
class KernelShapMethod(CoalitionMethod):
    """Removals drawn by the Shapley kernel, regression constrained to f(all) − f(none).

    ``l1_reg`` is the library's selection of units before the regression; its own default,
    "num_features(10)", gives all but ten units a score of zero. Here every unit gets one unless
    you ask for it.
    """

    l1_reg: str | float | bool = False

    name: ClassVar[str] = "kernel_shap"
    about: ClassVar[str] = "Shapley values, estimated by weighted regression"
    paper: ClassVar[str] = "Lundberg & Lee, NeurIPS 2017"

    def explore(self, game: Game, task: Task, budget: int) -> Found:
        shap = need("shap", "peers", "The method 'kernel_shap'")
        n = len(task.subject)
        explainer = shap.KernelExplainer(game, np.zeros((1, n)))
        values = explainer.shap_values(
            np.ones((1, n)), nsamples=budget, l1_reg=self.l1_reg, silent=True
        )
        scores = np.asarray(values, dtype=np.float64)[0]
        return Found(scores, np.asarray(explainer.expected_value, dtype=np.float64), {})
