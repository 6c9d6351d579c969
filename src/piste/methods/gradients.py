"""What gradient methods share: one backward pass per class, around the embeddings of one input."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch

from piste.classifiers.introspection.gradients import GradientAccess
from piste.methods.additive import AdditiveScores, WhiteBoxMethod
from piste.methods.base import Task
from piste.types import Floats

Forward: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""From embeddings (rows × tokens × features) to the explained number of every row."""
PerToken: TypeAlias = tuple[torch.Tensor, dict[str, Any]]


@dataclass(frozen=True)
class GradientMethod(WhiteBoxMethod):
    """Derivatives of the explained number with respect to the token embeddings."""

    needs: ClassVar[str] = "gradients"

    @abstractmethod
    def attribute(
        self, forward: Forward, embeddings: torch.Tensor, access: GradientAccess, task: Task
    ) -> PerToken:
        """One number per token, and what else the result should say."""

    def trace(self, task: Task) -> None:
        with torch.inference_mode(False):  # tensors made in that mode never get gradients
            super().trace(task)

    def compute_scores(self, access: GradientAccess, task: Task) -> AdditiveScores:
        embeddings = access.start
        every = task.target.kind == "all"
        seed = int(task.rng.integers(2**31))  # one for all classes: the same noise for each
        columns: list[Floats] = []
        notes: list[dict[str, Any]] = []
        for label in range(len(task.target.labels) if every else 1):

            def forward(given: torch.Tensor, label: int = label) -> torch.Tensor:
                numbers = access.numbers(given.to(embeddings))
                return numbers if numbers.ndim == 1 else numbers[:, label]

            with torch.random.fork_rng(devices=[]), torch.enable_grad():
                torch.default_generator.manual_seed(seed)
                tokens, note = self.attribute(forward, embeddings, access, task)
            columns.append(access.per_unit(tokens))
            notes.append(note)
        if every:
            more = {name: [note[name] for note in notes] for name in notes[0]}
            return self.around_whole_input(task, np.stack(columns, axis=1), **more)
        return self.around_whole_input(task, columns[0], **notes[0])
