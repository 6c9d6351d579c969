"""What classifiers share: subjects, checks of inputs and answers, a model's head and its state."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from piste.engine import Engine
from piste.errors import PisteError, shorten
from piste.subject import Sequence1D, Subject
from piste.target import OutputKind
from piste.types import Floats
from piste.validation import MOST_CHARACTERS, check_size

_COUNTED = threading.local()
"""The classifiers whose calibration is being counted in this thread."""
_LOCK = threading.Lock()


@contextmanager
def counting_calibration(classifier: Any) -> Iterator[None]:
    """Count the batches that this thread sends through a torch classifier's model, and the time.

    The hook it sets sees all modules of the process, so this belongs around what tries out a model,
    never around its questions.
    """
    counted: set[int] = _COUNTED.__dict__.setdefault("classifiers", set())
    if id(classifier) in counted:  # by an outer one
        yield
        return
    kind, thread, batches = type(classifier.model), threading.get_ident(), 0

    def count(module: nn.Module, given: Any) -> None:
        nonlocal batches
        batches += isinstance(module, kind) and threading.get_ident() == thread

    counted.add(id(classifier))
    handle = register_module_forward_pre_hook(count)
    begun = time.perf_counter()
    try:
        yield
    finally:
        handle.remove()
        counted.discard(id(classifier))
        with _LOCK:
            classifier.calibration.batches += batches
            classifier.calibration.seconds += time.perf_counter() - begun


class EngineSubject(Subject):
    """A subject whose questions go through the engine."""

    def ask(self, sequences: Sequence[Sequence1D]) -> Floats:
        return Engine(self.classifier).ask([(self, sequences)])[0]


def check_text(input: object) -> tuple[str, ...]:
    """The one or two texts of an input, or a clear refusal.

    >>> check_text(("a", "b"))
    ('a', 'b')
    """
    texts = (input,) if isinstance(input, str) else input
    if not isinstance(texts, tuple) or len(texts) not in (1, 2):
        raise PisteError(
            f"Expected a text or a pair of texts, got {shorten(input)} of type "
            f"{type(input).__name__}: convert it to str first."
        )
    for text in texts:
        if not isinstance(text, str):
            raise PisteError(
                f"Expected a text, got {shorten(text)} of type {type(text).__name__}: convert it "
                "to str first."
            )
        check_size("The text", len(text), MOST_CHARACTERS, "characters", "give a part of it")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise PisteError(
                f"The text {shorten(text)} holds half characters (surrogates): decode it as UTF-8."
            )
    if not any(text.strip() for text in texts):
        raise PisteError("The text is empty: there is nothing to explain, give at least one word.")
    return texts


_KINDS: dict[str | None, OutputKind] = {
    "regression": "regression",
    "multi_label_classification": "labels",
    "single_label_classification": "classes",
}


def read_head(config: Any) -> tuple[tuple[str, ...], OutputKind]:
    """Names of the outputs, and how they are read."""
    count = int(config.num_labels)
    named = dict(getattr(config, "id2label", None) or {})
    labels = tuple(str(named.get(k, named.get(str(k), k))) for k in range(count))
    stated = getattr(config, "problem_type", None)
    return labels, _KINDS.get(stated, "regression" if count == 1 else "classes")


# How the names of model classes end, what such a model does, and what to use instead.
_OTHER_HEADS = {
    "ForMultipleChoice": (
        "chooses between several texts",
        "to explain a choice, load a function of texts that returns its score",
    ),
    "ForDocumentQuestionAnswering": (
        "answers questions about images of documents",
        "load a function with inputs='pixels' that returns the answer's score",
    ),
    "ForTableQuestionAnswering": (
        "answers questions about tables",
        "load a function of texts that returns the answer's score",
    ),
    "ForConditionalGeneration": (
        "writes texts (sequence to sequence)",
        "load a causal language model with a prompt, or a function of texts that returns scores",
    ),
    "ForMaskedLM": ("fills in masked words", "train it for sequence classification first"),
    "ForPreTraining": ("is not trained for a task", "train it for sequence classification first"),
    "ForObjectDetection": (
        "finds objects in images",
        "load an image classifier, or a function with inputs='pixels'",
    ),
    "ForSemanticSegmentation": (
        "labels pixels of images",
        "load an image classifier, or a function with inputs='pixels'",
    ),
}

_OTHER_TASKS = {
    "document-question-answering": "ForDocumentQuestionAnswering",
    "table-question-answering": "ForTableQuestionAnswering",
    "summarization": "ForConditionalGeneration",
    "translation": "ForConditionalGeneration",
    "text2text-generation": "ForConditionalGeneration",
    "fill-mask": "ForMaskedLM",
    "object-detection": "ForObjectDetection",
    "image-segmentation": "ForSemanticSegmentation",
}


def check_head(name: str, source: str) -> None:
    """Refuse a model class that does something else than classify whole inputs."""
    for ending, (does, instead) in _OTHER_HEADS.items():
        if name.endswith(ending):
            raise PisteError(
                f"Expected a classifier of whole inputs, got {source} ({name}), which {does}: "
                f"{instead}."
            )


def check_task(task: str) -> None:
    """Refuse a pipeline that does something else than classify whole inputs."""
    if task in _OTHER_TASKS:
        does, instead = _OTHER_HEADS[_OTHER_TASKS[task]]
        raise PisteError(
            f"Expected a pipeline of text, image or zero-shot classification, got one of {task}, "
            f"which {does}: {instead}."
        )


def check_logits(logits: Any, rows: int, model: Any, inputs: str = "text") -> torch.Tensor:
    """One row of logits per input, or a clear refusal."""
    if not isinstance(logits, torch.Tensor) or logits.ndim != 2 or len(logits) != rows:
        shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else shorten(logits)
        kind = "Sequence" if inputs == "text" else "Image"
        raise PisteError(
            f"Expected one row of logits per {inputs} from {type(model).__name__}, got {shape} for "
            f"{rows} {inputs}s: load the model with AutoModelFor{kind}Classification."
        )
    return logits


# -- the state of a model ------------------------------------------------------------------


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; every module comes back as it was.

    Never in inference mode: some models keep tensors of a pass, and could not be trained with
    those afterwards.

    Not only its mode: some models exchange their own parts when they meet a short sequence, and
    draw random weights for that.
    """
    before = [
        (module, dict(module._modules), plain_attributes(module)) for module in model.modules()
    ]
    try:
        for module, *_ in before:
            module.training = False
        with torch.inference_mode(False), torch.no_grad(), torch.random.fork_rng(devices=[]):
            yield
    finally:
        for module, parts, plain in before:
            if dict(module._modules) != parts:
                module._modules.clear()
                module._modules.update(parts)
            module.__dict__.update(plain)


def state_of(model: nn.Module, *, versions: bool = False) -> object:
    """Everything by which a change of a model shows: modules, tensors, plain attributes.

    ``versions`` also counts changes of the numbers in a tensor; whatever shares the tensors need
    not know of those.
    """
    return [
        (
            id(module),
            plain_attributes(module) | {"training": None},
            [
                (id(tensor), _version(tensor) if versions else 0)
                for group in (module._parameters, module._buffers)
                for tensor in group.values()
                if tensor is not None
            ],
            len(module._forward_hooks) + len(module._forward_pre_hooks),
        )
        for module in model.modules()
    ]


def plain_attributes(module: nn.Module) -> dict[str, Any]:
    """A module's numbers, words and switches (training mode, attention type …)."""
    plain = (bool, int, float, str, type(None))
    return {name: value for name, value in vars(module).items() if isinstance(value, plain)}


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else int(tensor._version)


def twin_of(model: nn.Module, *, own_config: bool = False) -> nn.Module:
    """The same modules anew, in evaluation mode, around the same tensors and config."""
    shared: list[Any] = [*model.parameters(), *model.buffers()]
    if not own_config:
        shared += [module.config for module in model.modules() if hasattr(module, "config")]
    return copy.deepcopy(model, {id(one): one for one in shared}).eval()


def input_embeddings(model: Any) -> nn.Module | None:
    """The module that makes vectors of token ids; None if the model does not tell.

    >>> input_embeddings(nn.Linear(2, 2)) is None
    True
    """
    try:
        found = getattr(model, "get_input_embeddings", lambda: None)()
    except (NotImplementedError, AttributeError):  # CANINE hashes its ids: there is no one table
        return None
    return found if isinstance(found, nn.Module) else None  # Perceiver's is a bare parameter


def linear_weight(part: nn.Module) -> torch.Tensor | None:
    """Outputs × inputs of a linear layer, or of GPT-2's transposed kind of it; None of others.

    >>> linear_weight(nn.LayerNorm(3)) is None, tuple(linear_weight(nn.Linear(3, 2)).shape)
    (True, (2, 3))
    """
    weight = getattr(part, "weight", None)
    if not isinstance(weight, nn.Parameter):
        return None
    if isinstance(part, nn.Linear):
        return weight.detach()
    return weight.detach().T if type(part).__name__ == "Conv1D" else None
