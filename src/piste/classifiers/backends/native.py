"""torch as it is, and torch in half precision."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch

from piste.classifiers.backends.base import Inputs, Runtime
from piste.errors import PisteError


class TorchRuntime(Runtime):
    """The model itself. Answers of all other runtimes are held against this one's."""

    name = "torch"
    allowed = 1e-4  # the same arithmetic in another order: what differs is rounding
    pads = True

    def __init__(self, model: Any, example: Inputs | None = None) -> None:
        self.model = model
        self._own_config: Any = None
        # Decoders would keep what they computed for a next token that never comes.
        self._caches = "use_cache" in inspect.signature(model.forward).parameters

    def run(self, inputs: Inputs, pad: int | None = None) -> torch.Tensor:
        place = next(self.model.parameters()).device
        tensors: dict[str, Any] = {
            name: torch.from_numpy(array).to(place) for name, array in inputs.items()
        }
        if self._caches:
            tensors["use_cache"] = False
        output = self.with_padding(pad)(**tensors)
        return getattr(output, "logits", None)  # type: ignore[return-value]  # checked by the caller

    def with_padding(self, pad: int | None) -> Any:
        """The model, told what padding is.

        A shallow copy shares all weights but has a config of its own, so the user's stays as is.
        """
        if pad is None:
            return self.model
        if self._own_config is None:
            self._own_config = copy.deepcopy(self.model.config)
        twin = copy.copy(self.model)
        twin.config = self._own_config
        twin.config.get_text_config().pad_token_id = pad
        return twin


class Bfloat16Runtime(TorchRuntime):
    """Matrix products in bfloat16 (autocast): twice as fast where the CPU has the instructions."""

    name = "torch-bf16"
    allowed = 0.1

    def __init__(self, model: Any, example: Inputs | None = None) -> None:
        super().__init__(model)
        self._device = next(model.parameters()).device.type
        if not torch.amp.is_autocast_available(self._device):
            raise PisteError(
                f"runtime='torch-bf16' is not possible on {self._device}: use runtime='torch'."
            )

    def run(self, inputs: Inputs, pad: int | None = None) -> torch.Tensor:
        with torch.autocast(self._device, torch.bfloat16):
            return super().run(inputs, pad)
