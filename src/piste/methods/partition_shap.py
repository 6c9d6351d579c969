"""Partition SHAP: Owen values along a tree of neighbouring units, by the library shap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.methods.additive import AdditiveScores, CoalitionMethod
from piste.methods.base import Task
from piste.methods.conversation import Game
from piste.types import Floats


@dataclass(frozen=True)
class PartitionShapMethod(CoalitionMethod):
    """Groups of neighbouring units are split where it changes most, until the budget is spent.

    The tree joins neighbours by the library's own rules for text (word pieces, punctuation,
    brackets); those of an image by their distance.
    """

    name: ClassVar[str] = "partition_shap"
    compared: ClassVar[bool] = True
    about: ClassVar[str] = "Owen values: Shapley values along a tree of neighbouring units"
    paper: ClassVar[str] = "Lundberg et al., shap; Owen, 1977"
    library: ClassVar[str] = "shap"

    def explore(self, game: Game, task: Task, budget: int) -> AdditiveScores:
        import shap

        n = len(task.subject)
        if n == 1:  # a tree needs two leaves
            both = game(np.array([[False], [True]]))
            return AdditiveScores(both[1:] - both[0], both[0], {})
        masker = shap.maskers.Partition(np.zeros((1, n)), clustering=_tree(task))
        explainer = shap.explainers.Partition(game, masker)
        found = explainer(np.ones((1, n)), max_evals=max(budget, 4), silent=True)
        return AdditiveScores(
            np.asarray(found.values, dtype=np.float64)[0],
            np.asarray(found.base_values, dtype=np.float64)[0],
            {},
        )


def _tree(task: Task) -> Floats:
    """The subject's own tree, or the library's over the texts of its units; a linkage matrix."""
    own = task.subject.tree()
    if own is not None:
        return own
    from shap.maskers._text import partition_tree

    words = [unit.text + " " for unit in task.subject.units]  # a blank ends a word
    return np.asarray(partition_tree(words, []), dtype=np.float64)
