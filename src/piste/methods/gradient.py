"""Gradient: how strongly the answer reacts to the embedding of a unit (saliency)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from piste.classifiers.introspection.gradients import GradientAccess
from piste.methods.base import Task
from piste.methods.gradients import Forward, GradientMethod, PerToken


@dataclass(frozen=True)
class Gradient(GradientMethod):
    """‖∂f/∂e_t‖₂ for every token t, summed over the tokens of a unit: how much, not which way."""

    name: ClassVar[str] = "gradient"
    score: ClassVar[str] = "sensitivity"
    about: ClassVar[str] = "norm of the gradient at the unit's embedding (no direction)"
    paper: ClassVar[str] = "Simonyan et al., 2014"
    library: ClassVar[str] = "captum.attr"

    def attribute(
        self, forward: Forward, embeddings: torch.Tensor, access: GradientAccess, task: Task
    ) -> PerToken:
        from captum import attr

        found = attr.Saliency(forward).attribute(embeddings.clone().requires_grad_(), abs=False)
        return found[0].norm(dim=-1), {}
