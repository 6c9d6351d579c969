"""What a runtime must be able to do, how one is chosen, and torch's own: as it is, in bfloat16."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, TypeAlias

import torch

from piste.errors import PisteError, install_command
from piste.types import Ints

Inputs: TypeAlias = Mapping[str, Ints]
"""The model's own input names (input_ids, attention_mask …), each rows × tokens."""


class Runtime(ABC):
    """Runs one model; made from it and an example of its inputs, and never changes it."""

    name: ClassVar[str]
    allowed: ClassVar[float]
    """The largest difference from torch's answers that is accepted, relative to their spread."""
    pads: ClassVar[bool] = False
    """Whether it can be told at every call which token id is padding."""

    @abstractmethod
    def __init__(self, model: Any, example: Inputs) -> None:
        """Prepare the model for batches of any size and length."""

    @abstractmethod
    def run(self, inputs: Inputs, pad: int | None = None) -> torch.Tensor:
        """The logits, rows × outputs. ``pad`` is only given to those that can be told."""


# Where each runtime lives: only the one that is asked for is imported.
RUNTIMES = {
    "torch": "piste.classifiers.backends.runtime:TorchRuntime",
    "torch-bf16": "piste.classifiers.backends.runtime:Bfloat16Runtime",
    "torch-int8": "piste.classifiers.backends.int8:Int8Runtime",
    "onnx": "piste.classifiers.backends.exported:OnnxRuntime",
    "openvino": "piste.classifiers.backends.exported:OpenVinoRuntime",
    "openvino-bf16": "piste.classifiers.backends.exported:OpenVinoBfloat16Runtime",
}


def check_name(name: object) -> str:
    """A known runtime's name, or a clear refusal.

    >>> check_name("openvino")
    'openvino'
    """
    if name not in RUNTIMES:
        raise PisteError(f"runtime: expected one of {', '.join(RUNTIMES)}, got {name!r}.")
    return str(name)


def start(name: str, model: Any, example: Inputs) -> Runtime:
    """Make the runtime of that name run a model, or say in one sentence why it can't."""
    module, class_name = RUNTIMES[check_name(name)].split(":")
    kind: type[Runtime] = getattr(import_module(module), class_name)
    try:
        return kind(model, example)
    except PisteError:
        raise
    except ImportError as problem:
        extra = name.split("-")[0]
        raise PisteError(
            f"runtime={name!r} needs a package that is not installed ({problem.name}): run "
            f"`{install_command(extra)}`, or use runtime='torch'."
        ) from problem
    except Exception as problem:  # converters fail in as many ways as there are models
        first = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise PisteError(
            f"runtime={name!r} can't run {type(model).__name__} ({first[:200]}): use "
            "runtime='torch'."
        ) from problem


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
