"""What is checked of each architecture: the rules that hold for every classifier."""

from __future__ import annotations

import copy
import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

import piste
from benchmarks.architectures.models import TEXT, Architecture, photo, processor, tokenizer
from piste import PisteError

SAMPLES = 40
PROMPT, LABELS = "think {text} but", ["slow", "had"]
TOLERANCE = {False: 1e-4, True: 0.25}
"""Of a batch, as a share of the answers' spread; the second for models with few digits."""
INSIDE = {"gradients": "gradient_x_input", "attention": "attention_rollout", "AttnLRP": "attnlrp"}
"""Methods that look into a model: the name of their column, and one of them."""

Status = Literal["works", "refused", "fails"]


@dataclass(frozen=True)
class Outcome:
    """What became of one architecture."""

    name: str
    kind: str
    model_class: str
    status: Status
    words: str = ""
    """The sentence of a refusal, or what went wrong."""
    how: str = ""
    """Of a text how questions are batched, of an image what becomes of removed parts."""
    inside: tuple[tuple[str, str], ...] = ()
    """For each column of :data:`INSIDE` what became of it: ``works`` or a sentence."""
    trace: str = ""


class BrokenRuleError(AssertionError):
    """A rule that every classifier keeps does not hold."""


def check(architecture: Architecture, *, inside: bool = True) -> Outcome:
    """Make the model, load it, explain one input, and check the rules."""
    try:
        model = architecture.make()
    except Exception as problem:  # another version of transformers may want another config
        words = f"the model can't be made here ({type(problem).__name__}: {problem})"
        trace = traceback.format_exc()
        return Outcome(architecture.name, architecture.kind, "", "fails", words, trace=trace)
    about = (architecture.name, architecture.kind, type(model).__name__)
    try:
        how, found = _explain(architecture, model, inside)
    except PisteError as refusal:
        return Outcome(*about, "refused", str(refusal))
    except Exception as problem:  # whatever it is, the table says so and goes on
        words = f"{type(problem).__name__}: {problem}".splitlines()[0]
        return Outcome(*about, "fails", words, trace=traceback.format_exc())
    trace = "\n".join(words for _, words in found if words.startswith("Traceback"))
    status: Status = "fails" if trace else "works"
    words = "a method that looks inside ends in a traceback" if trace else ""
    return Outcome(*about, status, words, how, tuple(found), trace)


def _explain(
    architecture: Architecture, model: Any, inside: bool
) -> tuple[str, list[tuple[str, str]]]:
    given: Any = photo() if architecture.kind == "image" else TEXT
    reader = processor() if architecture.kind == "image" else tokenizer(architecture.frame)
    asked: dict[str, Any] = (
        {"prompt": PROMPT, "labels": LABELS} if architecture.kind == "prompt" else {}
    )
    before = _state(model)
    classifier: Any = piste.load(model, reader, **asked)
    explanation = piste.explain(classifier, given, samples=SAMPLES)
    if architecture.kind == "answer":
        classifier, given = classifier.answering(given)
    subject = classifier.subject(given)
    if architecture.kind != "answer":
        twin = copy.deepcopy(model)  # some models exchange their own parts
        _check_whole(subject, _own_answer(twin, reader, architecture), explanation, architecture)
    _check_batches(subject, architecture)
    found = [
        (column, _tried(lambda method=method: piste.explain(classifier, given, method=method)))  # type: ignore[misc]
        for column, method in (INSIDE.items() if inside else ())
    ]
    for name, value in _state(model).items():
        if value != before[name]:
            raise BrokenRuleError(f"the model's {name} did not come back as it was")
    if architecture.kind == "image":
        taken_out = explanation.settings["input"]["removal"] == "delete"
        return "taken out" if taken_out else "painted over", found
    return str(explanation.classifier["batching"]), found


def _tried(explain: Callable[[], Any]) -> str:
    try:
        explain()
    except PisteError as refusal:
        return str(refusal)
    except Exception:  # the column says so
        return traceback.format_exc()
    return "works"


def _own_answer(model: Any, reader: Any, architecture: Architecture) -> NDArray[np.float64]:
    """What the model says without Piste."""
    kind = architecture.kind
    given: Any = photo() if kind == "image" else PROMPT.format(text=TEXT)
    encoded = reader(TEXT if kind == "text" else given, return_tensors="pt")
    inner = model.get_base_model() if hasattr(model, "peft_config") else model
    accepted = inspect.signature(inner.forward).parameters
    tensors = {name: tensor for name, tensor in encoded.items() if name in accepted}
    with torch.no_grad():
        logits = model(**tensors).logits.double()
    if kind == "prompt":
        labels = reader(LABELS)["input_ids"]
        logits = torch.log_softmax(logits[:, -1], dim=-1)[:, [label for (label,) in labels]]
    return logits.numpy()


def _check_whole(
    subject: Any, own: NDArray[np.float64], explanation: Any, architecture: Architecture
) -> None:
    """All units are the model's own output.

    To rounding for an image, whose pixels are computed, and a prompt, whose answer is read.
    """
    most = 0.0 if architecture.kind == "text" else 1e-5
    for asked in (subject.ask([subject.whole])[0], np.array(explanation.output.logits)):
        difference = np.abs(asked - own[0]).max()
        if not difference <= most:
            raise BrokenRuleError(f"all units are not the model's own output: {difference:.2g}")


def _check_batches(subject: Any, architecture: Architecture) -> None:
    """A batch of one equals a batch of many, and order changes nothing."""
    some = [[3], [2, 4, 9], list(range(7)), [5, 6], [4]]
    sequences = [subject.whole, *some]
    alone = np.concatenate([subject.ask([sequence]) for sequence in sequences])
    spread = np.ptp(alone, axis=0).max()
    if spread == 0:
        raise BrokenRuleError("all questions have the same answer: the check says nothing")
    for together in (subject.ask(sequences), subject.ask(sequences[::-1])[::-1]):
        difference = np.abs(together - alone).max() / spread
        if not difference <= TOLERANCE[architecture.is_coarse]:
            raise BrokenRuleError(f"a batch differs by {difference:.2g} of the answers' spread")


def _state(model: Any) -> dict[str, Any]:
    """Everything that must come back as it was, in a form that can be compared."""
    weights = {
        name: tensor.detach().float().numpy().tobytes()
        if isinstance(tensor, torch.Tensor) and not tensor.is_quantized
        else str(tensor)
        for name, tensor in model.state_dict().items()
    }
    modules = list(model.named_modules())
    return {
        "weights": weights,
        "config": model.config.to_dict(),
        "modules": [(name, type(module)) for name, module in modules],
        "training modes": [module.training for _, module in modules],
        "hooks": [len(module._forward_hooks) for _, module in modules],
        "gradients": [parameter.grad is None for parameter in model.parameters()],
        "attention": getattr(model.config, "_attn_implementation", None),
    }
