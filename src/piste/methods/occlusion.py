"""Occlusion: what the answer loses when one unit is removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.methods.additive import AdditiveMethod
from piste.methods.base import Solution, Task, check_count, held_out_share
from piste.subject import Sequence1D


@dataclass(frozen=True)
class OcclusionMethod(AdditiveMethod):
    """f(all) − f(all but i), also called leave-one-out: one question per unit.

    ``held_out`` further questions are asked for the verdict only.
    """

    held_out: int = 32

    name: ClassVar[str] = "occlusion"
    about: ClassVar[str] = "what the answer loses without the unit (leave-one-out)"
    paper: ClassVar[str] = "Li et al., 2016"

    def __post_init__(self) -> None:
        check_count("held_out", self.held_out, least=0)

    def plan(self, task: Task) -> list[Sequence1D]:
        if "held_out" in task.memory:
            return []
        n = len(task.subject)
        count = held_out_share(10 * self.held_out, 2 * self.held_out, n)
        first = self.ask_held_out(task, min(self.held_out, count))
        if n == 1 and not task.subject.can_be_empty:
            return first
        return [*first, *(np.delete(np.arange(n), unit) for unit in range(n))]

    def solve(self, task: Task) -> Solution:
        whole = task.target(task.whole[None, :])
        rest = task.logits[task.memory["held_out"] :]
        # A single unit of a classifier that can't read nothing has nothing to be held against.
        scores = whole - task.target(rest) if len(rest) else 0 * whole
        return self.solution(task, self.around_the_whole(task, scores))
