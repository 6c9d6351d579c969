"""White-box access to an image classifier: gradients at the tokens of an image, or its pixels.

Where all of it stands in tokens they are what is looked at: behind patch embedding and position, in
front of the first layer. In all other models, and where units cut through patches, every pixel is
a token and its channels are the features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from piste.classifiers.image.token_dropping import TokenInput
from piste.classifiers.introspection.gradients import GradientAccess
from piste.types import Ints

if TYPE_CHECKING:
    from piste.target import Target


class ImageGradients(GradientAccess):
    """An image inside its model; ``images`` are the model's numbers of it and its baselines."""

    baselines = ("mean", "blur", "zero")

    def __init__(
        self,
        twin: torch.nn.Module,
        images: dict[str, torch.Tensor],
        token_units: Ints,
        units: int,
        target: Target,
    ) -> None:
        super().__init__(twin, {"pixel_values": images["own"]}, {}, token_units, units, target)
        self._images = images
        self._values = images["own"]

    def _embed(self, values: torch.Tensor) -> torch.Tensor:
        """One image's numbers as rows × tokens × features."""
        raise NotImplementedError

    @property
    def start(self) -> torch.Tensor:
        return self._embed(self._values)

    def baseline(self, kind: str) -> torch.Tensor | None:
        if kind == "zero":
            return self.without_units()
        return self._embed(self._images[kind]) if kind in self._images else None


class PatchGradients(ImageGradients):
    """The tokens of an image."""

    def __init__(self, twin: torch.nn.Module, path: str, *args: Any) -> None:
        super().__init__(twin, *args)
        self._given = TokenInput(twin, path)

    def _embed(self, values: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self._given.embed(values).detach()

    def logits(self, embeddings: torch.Tensor) -> torch.Tensor:
        self.calls += len(embeddings)
        return self._given.logits(embeddings, self._values, by=self.twin)


class PixelGradients(ImageGradients):
    """The pixels of an image."""

    def _embed(self, values: torch.Tensor) -> torch.Tensor:
        return values.detach().flatten(2).transpose(1, 2)

    def logits(self, embeddings: torch.Tensor) -> torch.Tensor:
        self.calls += len(embeddings)
        shape = (len(embeddings), *self._values.shape[1:])
        return self.twin(pixel_values=embeddings.transpose(1, 2).reshape(shape)).logits
