"""SmoothGrad: gradients averaged over noisy copies of the input (Smilkov et al., 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from piste.classifiers.introspection.gradients import GradientAccess
from piste.errors import PisteError
from piste.methods.base import Task
from piste.methods.gradients import Forward, GradientMethod, PerToken
from piste.validation import check_count


@dataclass(frozen=True)
class SmoothGrad(GradientMethod):
    """e_t · mean over noisy copies of ∂f/∂e_t, summed over the tokens of a unit.

    Every one of ``copies`` has normal noise on all embeddings; ``noise`` is its deviation in units
    of the embeddings' own. Only the gradient is averaged: the noise itself is no input.
    """

    copies: int = 25
    noise: float = 0.15

    name: ClassVar[str] = "smoothgrad"
    about: ClassVar[str] = "embedding times the gradient's mean over noisy copies"
    paper: ClassVar[str] = "Smilkov et al., 2017"
    library: ClassVar[str] = "captum.attr"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("copies", self.copies)
        if not isinstance(self.noise, (int, float)) or not self.noise >= 0:
            raise PisteError(f"noise: expected a number of at least 0, got {self.noise!r}.")

    def attribute(
        self, forward: Forward, embeddings: torch.Tensor, access: GradientAccess, task: Task
    ) -> PerToken:
        from captum import attr

        still = embeddings.cpu()  # where the noise is drawn too, so it is the same on any device
        slopes = attr.NoiseTunnel(attr.Saliency(forward)).attribute(
            still.clone().requires_grad_(),
            abs=False,
            nt_type="smoothgrad",
            nt_samples=self.copies,
            nt_samples_batch_size=max(min(2048 // embeddings.shape[1], self.copies), 1),
            stdevs=float(self.noise * embeddings.std()),
        )
        return (slopes * still)[0].sum(dim=-1), {}
