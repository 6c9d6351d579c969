"""SmoothGrad: gradients averaged over noisy copies of the input (Smilkov et al., 2017)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from piste.classifiers.inside import Inside
from piste.errors import PisteError
from piste.methods.base import Task, check_count
from piste.methods.gradients import GradientMethod


@dataclass(frozen=True)
class SmoothGrad(GradientMethod):
    """Gradient × input, averaged over ``copies`` with normal noise.

    ``noise`` is its deviation in units of the embeddings' own.
    """

    copies: int = 25
    noise: float = 0.15

    name: ClassVar[str] = "smoothgrad"
    about: ClassVar[str] = "gradient times embedding, averaged over noisy copies"
    paper: ClassVar[str] = "Smilkov et al., 2017"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("copies", self.copies)
        if not isinstance(self.noise, (int, float)) or not self.noise >= 0:
            raise PisteError(f"noise={self.noise!r} is wrong: a number from 0 on is wanted.")

    def attribute(
        self,
        captum: Any,
        forward: Callable[[torch.Tensor], torch.Tensor],
        embeddings: torch.Tensor,
        inside: Inside,
        task: Task,
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        tunnel = captum.NoiseTunnel(captum.InputXGradient(forward))
        found = tunnel.attribute(
            embeddings.clone().requires_grad_(),
            nt_type="smoothgrad",
            nt_samples=self.copies,
            nt_samples_batch_size=max(min(2048 // embeddings.shape[1], self.copies), 1),
            stdevs=float(self.noise * embeddings.std()),
        )
        return found[0].sum(dim=-1), {}
