"""White-box access to a classifier: embeddings and gradients of one input.

All of it happens in a twin that shares the model's tensors and has modules of its own, so hooks
and exchanged parts never touch the user's model.

Where all of an image stands in tokens they are what is looked at: behind patch embedding and
position, in front of the first layer. In all other image models, and where units cut through
patches, every pixel is a token and its channels are the features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from piste.classifiers.base import input_embeddings
from piste.classifiers.image.token_dropping import TokenInput
from piste.errors import PisteError
from piste.types import Floats, Ints

if TYPE_CHECKING:
    from piste.target import Target


_ELSE = "choose a method that needs answers only (see `piste methods`)."


class GradientAccess(ABC):
    """One input inside its model: what it looks like there, and what would come of it otherwise.

    ``twin`` is a copy of the model around the same tensors, in evaluation mode; ``inputs`` are its
    tensors for the whole input, one row, and ``options`` what else its forward is told;
    ``token_units`` tells the unit of every token (−1 for fixed ones).
    """

    baselines: ClassVar[tuple[str, ...]]
    """What :meth:`baseline` may know, the usual first."""

    def __init__(
        self,
        twin: torch.nn.Module,
        inputs: dict[str, torch.Tensor],
        options: dict[str, Any],
        token_units: Ints,
        units: int,
        target: Target,
    ) -> None:
        self.twin, self.inputs, self.token_units, self.target = twin, inputs, token_units, target
        self.options = options
        self.calls = 0
        """Forward passes so far, each row of a batch counted."""
        self._units = units
        self._name = type(twin).__name__

    @property
    @abstractmethod
    def start(self) -> torch.Tensor:
        """The input's own embeddings, 1 × tokens × features, detached from everything."""

    @abstractmethod
    def logits(self, embeddings: torch.Tensor) -> torch.Tensor:
        """The model's logits if its tokens had these embeddings; differentiable."""

    @abstractmethod
    def baseline(self, kind: str) -> torch.Tensor | None:
        """The embeddings of an input that says nothing, like :attr:`start`; None if it has none.

        Fixed tokens stay, so that only the units make the difference.
        """

    def without_units(self) -> torch.Tensor:
        """The baseline "zero": the embeddings of all units are zero."""
        start = self.start
        units = torch.from_numpy(self.token_units >= 0).to(start.device)
        return torch.where(units[None, :, None], torch.zeros(()).to(start), start)

    def numbers(self, embeddings: torch.Tensor) -> torch.Tensor:
        """The explained number (questions) or numbers (questions × classes); differentiable."""
        logits = self.logits(embeddings)
        if not logits.requires_grad:  # then any function of the user's will do
            numbers = self.target(logits.cpu().double().numpy())
            return torch.from_numpy(numbers).to(logits)
        try:
            return self.target.of_tensor(logits)
        except (RuntimeError, TypeError, AttributeError) as problem:
            if self.target.kind != "function":
                raise
            raise PisteError(
                f"The target {self.target.name!r} failed on a torch tensor ({problem}), and "
                "this method needs its gradients: use what numpy and torch have in common, or "
                "choose a class."
            ) from problem

    def per_unit(self, per_token: torch.Tensor | NDArray[Any]) -> Floats:
        """Sums over the tokens of every unit; fixed tokens are left out."""
        if isinstance(per_token, torch.Tensor):
            per_token = per_token.detach().cpu().double().numpy()  # numpy has no bfloat16
        numbers = np.asarray(per_token, dtype=np.float64)
        real = self.token_units >= 0
        return np.bincount(
            self.token_units[real], weights=numbers[real], minlength=self._units
        ).astype(np.float64)


class TextGradients(GradientAccess):
    """A text inside its model.

    ``replacements`` are ids of tokens that say nothing, by the name of the baseline they make.
    """

    baselines = ("pad", "mask", "zero")

    def __init__(
        self,
        twin: torch.nn.Module,
        inputs: dict[str, torch.Tensor],
        options: dict[str, Any],
        token_units: Ints,
        units: int,
        target: Target,
        replacements: Mapping[str, int],
    ) -> None:
        super().__init__(twin, inputs, options, token_units, units, target)
        self._replacements = replacements
        layer = input_embeddings(twin)
        if layer is None:
            raise PisteError(f"{self._name} has no input embeddings to look at: {_ELSE}")
        if any(hasattr(part, "_packed_params") for part in twin.modules()):
            raise PisteError(
                f"{self._name} computes with quantised layers, which have no gradients: {_ELSE}"
            )
        if any(hasattr(part, "backward_pass") for part in twin.modules()):
            raise PisteError(
                f"{self._name} has reversible layers, which give gradients only in training: "
                f"{_ELSE}"
            )
        self.embedding: torch.nn.Module = layer

    @property
    def ids(self) -> torch.Tensor:
        return self.inputs["input_ids"]

    @property
    def start(self) -> torch.Tensor:
        return self.embed(self.ids)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Embeddings of token ids, rows × tokens × features, detached from everything."""
        with torch.no_grad():
            embeddings = self.embedding(ids)
        if not isinstance(embeddings, torch.Tensor):  # I-BERT's come with a scale
            raise PisteError(
                f"The input embeddings of {self._name} are no plain vectors, but "
                f"{type(embeddings).__name__}: {_ELSE}"
            )
        return embeddings.detach()

    def logits(self, embeddings: torch.Tensor) -> torch.Tensor:
        """The model's logits if its tokens had these embeddings; differentiable."""
        rows = len(embeddings)
        self.calls += rows
        embeddings = embeddings.clone()  # some models write into them
        inputs = {name: tensor.expand(rows, -1) for name, tensor in self.inputs.items()}
        readings = []

        def give(layer: torch.nn.Module, args: tuple[Any, ...], own: torch.Tensor) -> torch.Tensor:
            tokens, ids = args[0] if args else own, inputs["input_ids"]
            if torch.equal(tokens, ids.T):  # tokens × rows, like XLNet
                readings.append(True)
                return embeddings.transpose(0, 1)
            length = ids.shape[1]
            readings.append(tokens.ndim == 2 and torch.equal(tokens[:, :length], ids))
            if not readings[-1]:
                return own
            return torch.cat([embeddings, own[:, length:]], dim=1)  # Longformer pads the text

        hook = self.embedding.register_forward_hook(give)
        try:
            output = self.twin(**inputs, **self.options)
        finally:
            hook.remove()
        if readings != [True]:  # shared by an encoder and a decoder, or not used at all
            raise PisteError(
                f"{self._name} reads its input embeddings {len(readings)} times in a pass, "
                f"{sum(readings)} of them for the text, and this method needs a model that reads "
                f"those of the text once and no others: {_ELSE}"
            )
        return output.logits

    def baseline(self, kind: str) -> torch.Tensor | None:
        if kind == "zero":
            return self.without_units()
        if kind not in self._replacements:
            return None
        units = torch.from_numpy(self.token_units >= 0).to(self.ids.device)
        token = torch.tensor(self._replacements[kind]).to(self.ids)
        return self.embed(torch.where(units, token, self.ids))


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
