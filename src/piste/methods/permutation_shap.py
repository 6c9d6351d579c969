"""Permutation SHAP: Shapley values from walks through random orders, by the library shap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.methods.additive import AdditiveScores, CoalitionMethod
from piste.methods.base import Task
from piste.methods.conversation import Game


@dataclass(frozen=True)
class PermutationShapMethod(CoalitionMethod):
    """Units are added in a random order and taken away again; the mean of what each changes.

    One walk asks 2n − 2 questions, the least it can do; as many walks are made as ``samples``
    allows.
    """

    name: ClassVar[str] = "permutation_shap"
    about: ClassVar[str] = "Shapley values, from walks through random orders of the units"
    paper: ClassVar[str] = "Lundberg et al., shap; Castro et al., 2009"
    library: ClassVar[str] = "shap"

    def explore(self, game: Game, task: Task, budget: int) -> AdditiveScores:
        import shap

        n = len(task.subject)
        walk = 2 * n + 1
        walks = max(budget // max(walk - 3, 1), 1)  # all and nothing, twice, are known
        masker = shap.maskers.Independent(np.zeros((1, n)))
        explainer = shap.explainers.Permutation(game, masker, seed=np.random.randint(2**31))
        # A batch as large as the walk: the library would cut it into tens.
        found = explainer(np.ones((1, n)), max_evals=walks * walk, batch_size=walk, silent=True)
        return AdditiveScores(
            np.asarray(found.values, dtype=np.float64)[0],
            np.asarray(found.base_values, dtype=np.float64)[0],
            {"walks": walks},
        )
