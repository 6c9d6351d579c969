"""Gradient × input: the first-order change if a unit's embedding were zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from piste.classifiers.introspection.gradients import GradientAccess
from piste.methods.base import Task
from piste.methods.gradients import Forward, GradientMethod, PerToken


@dataclass(frozen=True)
class GradientTimesInput(GradientMethod):
    """e_t · ∂f/∂e_t for every token t, summed over the tokens of a unit."""

    name: ClassVar[str] = "gradient_x_input"
    about: ClassVar[str] = "gradient times embedding"
    paper: ClassVar[str] = "Shrikumar et al., 2017"
    library: ClassVar[str] = "captum.attr"

    def attribute(
        self, forward: Forward, embeddings: torch.Tensor, access: GradientAccess, task: Task
    ) -> PerToken:
        from captum import attr

        found = attr.InputXGradient(forward).attribute(embeddings.clone().requires_grad_())
        return found[0].sum(dim=-1), {}
