"""What answers in the model's place: the model itself, its pruned copy, or another runtime."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, TypeAlias

import torch

from piste.classifiers.backends.pruned import pruned_copy
from piste.classifiers.base import state_of
from piste.errors import PisteError, install_command
from piste.subject import Question
from piste.types import Ints
from piste.validation import choose

Ask: TypeAlias = Callable[[Sequence[Question]], torch.Tensor]
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
    "torch": "piste.classifiers.backends.backend:TorchRuntime",
    "torch-bf16": "piste.classifiers.backends.backend:Bfloat16Runtime",
    "torch-int8": "piste.classifiers.backends.int8:Int8Runtime",
    "onnx": "piste.classifiers.backends.exported:OnnxRuntime",
    "openvino": "piste.classifiers.backends.exported:OpenVinoRuntime",
    "openvino-bf16": "piste.classifiers.backends.exported:OpenVinoBfloat16Runtime",
}


def start(name: str, model: Any, example: Inputs) -> Runtime:
    """Make the runtime of that name run a model, or say in one sentence why it can't."""
    choose("runtime", name, tuple(RUNTIMES))
    module, class_name = RUNTIMES[name].split(":")
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


class Backend:
    """Runs batches, and holds whatever stands in for the model against the model's own answers.

    ``difference`` is the largest found so far, in units of the logits.
    """

    def __init__(self, model: Any, name: str, tolerance: float | None, pruned: bool) -> None:
        choose("runtime", name, tuple(RUNTIMES))
        self.name = name
        self.difference = 0.0
        self._model = model
        self._tolerance = tolerance
        self._pruned = pruned
        self._plain = TorchRuntime(model)
        self._runtime: Runtime = self._plain
        self._built: object = None
        self._checked_length = 0
        self._truth: torch.Tensor | None = None
        self._example: Inputs = {}
        self._unabridged: Runtime | None = None

    @property
    def is_replaced(self) -> bool:
        """Whether something else than the model itself answers."""
        return self._runtime is not self._plain

    @property
    def module(self) -> Any:
        """The torch module that answers, or None if it is none."""
        if self.name != "torch" or not isinstance(self._runtime, TorchRuntime):
            return None
        return self._runtime.model

    @property
    def receives_padding(self) -> bool:
        return self._runtime.pads

    def found(self) -> dict[str, float]:
        """What the result should say of a runtime: the largest difference from torch's answers."""
        return {} if self.name == "torch" else {"runtime_difference": self.difference}

    def plain(self, pad: int | None) -> Any:
        """The model itself, told what padding is."""
        return self._plain.with_padding(pad)

    def run(self, inputs: Inputs, pad: int | None, own: bool = False) -> torch.Tensor:
        """Answer a batch; ``own``: not by a pruned copy, which takes hidden tokens for padding."""
        # A single question goes to the model itself: its output is the one to be explained.
        if self.name == "torch" and (own or len(inputs["input_ids"]) == 1):
            return self._plain.run(inputs, pad)
        ready = self.is_replaced and self._built is not None  # not while a pruned copy is checked
        return (self._complete() if own and ready else self._runtime).run(inputs, pad)

    def _complete(self) -> Runtime:
        """The chosen runtime with the model itself in it, made when it is first needed."""
        if self._unabridged is None:
            self._unabridged = start(self.name, self._model, self._example)
        return self._unabridged

    # -- beginning -----------------------------------------------------------------------------

    def is_current(self) -> bool:
        """Whether the model is still the one that what answers was made from."""
        return self._built is not None and self._built == self._state()

    def reset(self) -> None:
        """Back to the model itself."""
        self._runtime, self._built = self._plain, None
        self._unabridged = None
        self._checked_length, self._truth, self.difference = 0, None, 0.0

    def begin(self, probes: Sequence[Question], ask: Ask, example: Inputs) -> None:
        """Make the pruned copy and the chosen runtime; ``ask`` answers through this backend."""
        self.reset()
        model = self._make_pruned(probes, ask) if "attention_mask" in example else None
        self._example = example
        if self.name != "torch":
            self._runtime = start(self.name, model or self._model, example)
            self._unabridged = self._runtime if model is None else None
        elif model is not None:
            self._runtime = TorchRuntime(model)
        self._built = self._state()

    def _make_pruned(self, probes: Sequence[Question], ask: Ask) -> Any:
        hooked = any(m._forward_hooks or m._forward_pre_hooks for m in self._model.modules())
        if not self._pruned or hooked or len(probes) < 2:
            return None
        truth = self._alone(probes, ask)
        scale = float(truth.abs().max().clamp_min(1e-6))

        def agrees(twin: Any) -> bool:
            self._runtime = TorchRuntime(twin)
            try:
                return float((ask(probes).double() - truth).abs().max()) <= 2e-5 * scale
            finally:
                self._runtime = self._plain

        if not agrees(self._model):  # not even the model agrees with itself to that precision
            return None
        try:
            return pruned_copy(self._model, agrees)
        except Exception:  # a model that can't be copied runs as it is
            return None

    # -- checking ------------------------------------------------------------------------------

    def is_unchecked(self, questions: Sequence[Question]) -> bool:
        """Whether some questions are much longer than those on which answers were compared."""
        longest = max(question.length for question in questions)
        return self.is_replaced and longest > 4 * self._checked_length

    def check(self, questions: Sequence[Question], ask: Ask) -> None:
        """Compare answers on questions much longer than those compared before.

        A pruned copy that fails is dropped; a runtime that was asked for is refused.
        """
        if not self.is_unchecked(questions):
            return
        longest = max(questions, key=lambda question: question.length)
        some = list({question.key: question for question in (longest, *questions[:8])}.values())
        answers, truth = ask(some).double(), self._alone(some, ask)
        self._checked_length = longest.length
        self._truth = truth if self._truth is None else torch.cat([self._truth, truth])
        difference = float((answers - truth).abs().max())
        # Against the spread of the answers: that is what explanations are made of.
        spread = float((self._truth.max(dim=0).values - self._truth.min(dim=0).values).max())
        scale = max(spread, 1e-2 * float(self._truth.abs().max()), 1e-12)
        if self.name == "torch":
            if not difference <= self._runtime.allowed * scale:
                self._runtime = self._plain
            return
        self.difference = max(self.difference, difference)
        allowed = self._runtime.allowed if self._tolerance is None else self._tolerance
        if not difference <= allowed * scale:
            self.reset()
            raise PisteError(
                f"runtime={self.name!r} answers up to {difference:.2g} beside torch, "
                f"{difference / scale:.1%} of the answers' spread where {allowed:.1%} is allowed: "
                "use runtime='torch', or give a larger tolerance."
            )

    def _alone(self, questions: Sequence[Question], ask: Ask) -> torch.Tensor:
        """The model's own answers, one by one."""
        chosen, self._runtime = self._runtime, self._plain
        try:
            return torch.cat([ask([question]) for question in questions]).double()
        finally:
            self._runtime = chosen

    def _state(self) -> object:
        # A pruned copy shares the tensors, other runtimes copy them.
        return state_of(self._model, versions=self.name != "torch")
