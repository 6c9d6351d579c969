"""What methods that read attention share: one traced pass, tokens put together to units."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch

from piste.classifiers.introspection.gradients import GradientAccess
from piste.classifiers.introspection.tracing import Trace, traces
from piste.methods.additive import AdditiveScores, WhiteBoxMethod
from piste.methods.base import Task
from piste.types import Floats

PerUnit: TypeAlias = tuple[Floats, dict[str, Any]]


@dataclass(frozen=True)
class AttentionMethod(WhiteBoxMethod):
    """One score per unit from the attention weights of one pass, and their gradients perhaps.

    Without gradients nothing depends on the class: then explaining all of them gives one score
    per unit, not one for each class.
    """

    score: ClassVar[str] = "sensitivity"
    needs: ClassVar[str] = "attention"

    @property
    def by_class(self) -> bool:
        """Whether scores depend on the explained class."""
        return False

    @abstractmethod
    def weigh(self, trace: Trace) -> PerUnit:
        """One number per unit, and what else the result should say."""

    def trace(self, task: Task) -> None:
        with torch.inference_mode(False):  # tensors made in that mode never get gradients
            super().trace(task)

    def compute_scores(self, access: GradientAccess, task: Task) -> AdditiveScores:
        several = self.by_class and task.target.kind == "all"
        found = traces(access)
        columns, notes = zip(
            *(self.weigh(one) for one in (found if several else [next(found)])), strict=True
        )
        scores = np.stack(columns, axis=1) if several else columns[0]
        return self.around_whole_input(task, scores, **notes[0])
