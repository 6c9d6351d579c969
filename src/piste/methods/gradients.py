"""What gradient methods share: captum around the embeddings of one input."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from piste.classifiers.inside import Inside
from piste.errors import need
from piste.methods.additive import Found, InsideMethod
from piste.methods.base import Floats, Task


@dataclass(frozen=True)
class GradientMethod(InsideMethod):
    """Gradients of the explained number with respect to the token embeddings."""

    needs: ClassVar[str] = "gradients"

    @abstractmethod
    def attribute(
        self,
        captum: Any,
        forward: Callable[[torch.Tensor], torch.Tensor],
        embeddings: torch.Tensor,
        inside: Inside,
        task: Task,
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        """One number per token (by captum's means), and what else the result should say."""

    def look(self, inside: Inside, task: Task) -> Found:
        captum = need("captum.attr", "peers", f"The method {self.name!r}")
        embeddings = inside.embed(inside.ids)
        classes = len(task.target.labels) if task.target.kind == "all" else 1
        columns: list[Floats] = []
        notes: list[dict[str, Any]] = []
        for label in range(classes):

            def forward(given: torch.Tensor, label: int = label) -> torch.Tensor:
                numbers = inside.numbers(given)
                return numbers if numbers.ndim == 1 else numbers[:, label]

            with torch.random.fork_rng(devices=[]), torch.enable_grad():
                torch.manual_seed(int(task.rng.integers(2**31)))
                tokens, note = self.attribute(captum, forward, embeddings, inside, task)
            columns.append(inside.per_unit(tokens))
            notes.append(note)
        more = {name: [note[name] for note in notes] for name in notes[0]}
        if task.target.kind == "all":
            return self.around_the_whole(task, np.stack(columns, axis=1), **more)
        return self.around_the_whole(
            task, columns[0], **{name: values[0] for name, values in more.items()}
        )
