"""Integrated gradients along the way from a baseline to the input (Sundararajan et al., 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from piste.classifiers.introspection.gradients import GradientAccess
from piste.errors import PisteError
from piste.methods.base import Task
from piste.methods.gradients import Forward, GradientMethod, PerToken
from piste.validation import check_count, choose


@dataclass(frozen=True)
class IntegratedGradients(GradientMethod):
    """(e − e′) · ∫₀¹ ∂f/∂e (e′ + α(e − e′)) dα, approximated in ``steps`` steps.

    ``baseline`` e′ is the embedding of the padding or the mask token in place of every unit's
    tokens ("pad", "mask"), that of an image in the mean colour or of a blurred one ("mean",
    "blur"), or "zero"; "auto" takes the first of them that there is. The result's
    ``convergence_delta`` is by how much the sum of all tokens' scores (fixed ones included)
    misses f(e) − f(e′): far from zero it asks for more steps.
    """

    steps: int = 50
    baseline: str = "auto"

    name: ClassVar[str] = "integrated_gradients"
    compared: ClassVar[bool] = True
    about: ClassVar[str] = "gradients summed up on the way from a baseline to the input"
    paper: ClassVar[str] = "Sundararajan et al., ICML 2017"
    library: ClassVar[str] = "captum.attr"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("steps", self.steps)
        choose("baseline", self.baseline, ("auto", "pad", "mask", "mean", "blur", "zero"))

    def attribute(
        self, forward: Forward, embeddings: torch.Tensor, access: GradientAccess, task: Task
    ) -> PerToken:
        from captum import attr

        baseline, used = self._baseline(access)
        found, delta = attr.IntegratedGradients(forward).attribute(
            embeddings,
            baselines=baseline,
            n_steps=self.steps,
            internal_batch_size=max(2048 // embeddings.shape[1], 1),
            return_convergence_delta=True,
        )
        more = {"baseline_used": used, "convergence_delta": float(delta.reshape(-1)[0])}
        return found[0].sum(dim=-1), more

    def _baseline(self, access: GradientAccess) -> tuple[torch.Tensor, str]:
        for kind in access.baselines if self.baseline == "auto" else (self.baseline,):
            found = access.baseline(kind)
            if found is not None:
                return found, kind
        known = [kind for kind in access.baselines if access.baseline(kind) is not None]
        raise PisteError(
            f"baseline={self.baseline!r} is not there for this model: choose {', '.join(known)}."
        )
