"""Controls: what a faithful method must beat."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.methods.additive import AdditiveMethod
from piste.methods.base import Floats, Solution, Task, check_count, held_out_share
from piste.subject import Sequence1D


@dataclass(frozen=True)
class ControlMethod(AdditiveMethod):
    """Scores that know nothing of the model; ``held_out`` questions show how little that is."""

    held_out: int = 32

    def __post_init__(self) -> None:
        check_count("held_out", self.held_out, least=0)

    @abstractmethod
    def invent(self, task: Task, shape: tuple[int, ...]) -> Floats:
        """Scores out of thin air."""

    def plan(self, task: Task) -> list[Sequence1D]:
        if "held_out" in task.memory:
            return []
        count = held_out_share(10 * self.held_out, 2 * self.held_out, len(task.subject))
        return self.ask_held_out(task, min(self.held_out, count))

    def solve(self, task: Task) -> Solution:
        whole = task.target(task.whole[None, :])[0]
        scores = self.invent(task, (len(task.subject), *np.shape(whole)))
        return self.solution(task, self.around_the_whole(task, scores))


@dataclass(frozen=True)
class RandomMethod(ControlMethod):
    """Normal random numbers, as large as the answer divided by the root of the units."""

    name: ClassVar[str] = "random"
    about: ClassVar[str] = "control: random scores"

    def invent(self, task: Task, shape: tuple[int, ...]) -> Floats:
        size = float(np.abs(task.target(task.whole[None, :])).max()) or 1.0
        return task.rng.normal(size=shape) * size / np.sqrt(shape[0])


@dataclass(frozen=True)
class ZeroMethod(ControlMethod):
    """Every unit scores zero, so the answer is foretold to stay as it is."""

    name: ClassVar[str] = "zero"
    about: ClassVar[str] = "control: every score is zero"

    def invent(self, task: Task, shape: tuple[int, ...]) -> Floats:
        return np.zeros(shape)
