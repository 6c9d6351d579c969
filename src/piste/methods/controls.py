"""Controls: what a faithful method must beat."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.methods.additive import CheckedMethod
from piste.methods.base import Solution, Task
from piste.types import Floats


@dataclass(frozen=True)
class ControlMethod(CheckedMethod):
    """Scores that know nothing of the model."""

    @abstractmethod
    def make_scores(self, task: Task, shape: tuple[int, ...]) -> Floats:
        """Scores out of thin air."""

    def solve(self, task: Task) -> Solution:
        whole = task.target(task.whole[None, :])[0]
        scores = self.make_scores(task, (len(task.subject), *np.shape(whole)))
        return self.solution(task, self.around_whole_input(task, scores))


@dataclass(frozen=True)
class RandomMethod(ControlMethod):
    """Normal random numbers, as large as the answer divided by the root of the units."""

    name: ClassVar[str] = "random"
    evaluated: ClassVar[bool] = True
    about: ClassVar[str] = "control: random scores"

    def make_scores(self, task: Task, shape: tuple[int, ...]) -> Floats:
        size = float(np.abs(task.target(task.whole[None, :])).max()) or 1.0
        return task.rng.normal(size=shape) * size / np.sqrt(shape[0])


@dataclass(frozen=True)
class CentreMethod(ControlMethod):
    """The nearer a unit lies to the middle of the image (or the text), the higher it scores.

    Photographers put things there, so this finds objects without a look at the image.
    """

    name: ClassVar[str] = "centre"
    about: ClassVar[str] = "control: the middle scores highest"

    def make_scores(self, task: Task, shape: tuple[int, ...]) -> Floats:
        boxes = [unit.box for unit in task.subject.units]
        if None in boxes:
            boxes = [(k, 0, k + 1, 1) for k in range(len(boxes))]
        edges = np.array(boxes, dtype=np.float64)
        middles = (edges[:, :2] + edges[:, 2:]) / 2
        middle = (edges[:, :2].min(axis=0) + edges[:, 2:].max(axis=0)) / 2
        away = np.linalg.norm(middles - middle, axis=1)
        scores = 1.0 - away / max(float(away.max()), 1.0)
        return scores if len(shape) == 1 else np.repeat(scores[:, None], shape[1], axis=1)


@dataclass(frozen=True)
class ZeroMethod(ControlMethod):
    """Every unit scores zero, so the answer is predicted to stay as it is."""

    name: ClassVar[str] = "zero"
    about: ClassVar[str] = "control: every score is zero"

    def make_scores(self, task: Task, shape: tuple[int, ...]) -> Floats:
        return np.zeros(shape)
