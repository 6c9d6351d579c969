"""Occlusion: what the answer loses when one unit is removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.methods.additive import CheckedMethod
from piste.methods.base import Solution, Task
from piste.subject import Sequence1D


@dataclass(frozen=True)
class OcclusionMethod(CheckedMethod):
    """f(all) − f(all but i), also called leave-one-out: one question per unit."""

    name: ClassVar[str] = "occlusion"
    about: ClassVar[str] = "what the answer loses without the unit (leave-one-out)"
    paper: ClassVar[str] = "Li et al., 2016"

    def questions(self, task: Task) -> list[Sequence1D]:
        n = len(task.subject)
        if n == 1 and not task.subject.can_be_empty:
            return []
        return [np.delete(np.arange(n), unit) for unit in range(n)]

    def solve(self, task: Task) -> Solution:
        whole = task.target(task.whole[None, :])
        rest = task.logits[task.held_out or 0 :]
        # A single unit of a classifier that can't read nothing has nothing to be held against.
        scores = whole - task.target(rest) if len(rest) else 0 * whole
        return self.solution(task, self.around_whole_input(task, scores))
