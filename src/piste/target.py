"""The number that is explained, chosen apart from the method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy.special import expit, logsumexp, softmax

from piste.errors import PisteError, one_line, shorten
from piste.types import Floats

if TYPE_CHECKING:
    import torch

TargetChoice: TypeAlias = (
    int | str | tuple[int | str, int | str] | Callable[[Floats], Floats] | None
)
"""None: the predicted class; a class or output by number or name; (a, b): the margin between two
classes; "all": every class at once; or a function of the logits (questions × outputs)."""

OutputKind: TypeAlias = Literal["classes", "labels", "regression"]
"""How outputs are read: exclusive classes (softmax), independent labels (sigmoid), or numbers."""
OUTPUT_KINDS: tuple[str, ...] = ("classes", "labels", "regression")


@dataclass(frozen=True)
class Target:
    """Maps logits (questions × outputs) to the explained number(s).

    ============  ==========================================================================
    kind          number
    ============  ==========================================================================
    ``class``     log-odds of a class against the rest: logit_k − logsumexp(other logits)
    ``margin``    logit_a − logit_b
    ``output``    one output of a multi-label model (its log-odds) or of a regression
    ``all``       all classes at once, centred: logit_c − mean(logits)
    ``answer``    log-probability of tokens of an answer, less that of those in ``minus``
    ``function``  a function of yours
    ============  ==========================================================================
    """

    kind: str
    name: str
    indices: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    function: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)
    minus: tuple[int, ...] = ()

    def __call__(self, logits: Floats) -> Floats:
        """Explained numbers, one per question (or questions × classes for ``all``).

        >>> Target("class", "yes", (1,))(np.array([[0.0, 2.0]])).tolist()
        [2.0]
        """
        if self.kind == "class":
            own = self.indices[0]
            rest = np.delete(logits, own, axis=1)
            return logits[:, own] - logsumexp(rest, axis=1)
        if self.kind == "margin":
            return logits[:, self.indices[0]] - logits[:, self.indices[1]]
        if self.kind == "output":
            return logits[:, self.indices[0]]
        if self.kind == "all":
            return logits - logits.mean(axis=1, keepdims=True)
        if self.kind == "answer":
            return logits[:, self.indices].sum(axis=1) - logits[:, self.minus].sum(axis=1)
        return self._by_function(logits)

    def of_tensor(self, logits: torch.Tensor) -> torch.Tensor:
        """The same for a tensor, differentiable."""
        if self.kind == "class":
            own = self.indices[0]
            others = [index for index in range(logits.shape[1]) if index != own]
            return logits[:, own] - logits[:, others].logsumexp(dim=1)
        if self.kind == "margin":
            return logits[:, self.indices[0]] - logits[:, self.indices[1]]
        if self.kind == "output":
            return logits[:, self.indices[0]]
        if self.kind == "all":
            return logits - logits.mean(dim=1, keepdim=True)
        if self.kind == "answer":
            taken = logits[:, list(self.minus)].sum(dim=1)
            return logits[:, list(self.indices)].sum(dim=1) - taken
        numbers = self.function(logits) if self.function else None
        if getattr(numbers, "grad_fn", None) is None:
            raise PisteError(
                f"The target {self.name!r} must be a function of torch tensors here, because "
                "this method needs its gradients: use torch operations only, or choose a class."
            )
        return numbers  # type: ignore[return-value]  # it has a grad_fn

    def _by_function(self, logits: Floats) -> Floats:
        if self.function is None:
            raise PisteError(
                f"The target {self.name!r} was a function, which a stored result can't keep: "
                "explain again with the function."
            )
        try:
            numbers = self.function(logits)
        except PisteError:
            raise
        except Exception as problem:  # it is not ours: anything may come
            raise PisteError(
                f"The target function {self.name!r} failed with {type(problem).__name__} "
                f"({one_line(problem)}): try it on a few rows of logits by itself."
            ) from problem
        if hasattr(numbers, "detach"):
            numbers = numbers.detach().cpu().numpy()
        try:
            numbers = np.asarray(numbers, dtype=np.float64)
        except (TypeError, ValueError) as problem:
            raise PisteError(
                f"The target function must return numbers, but returned {shorten(numbers)}."
            ) from problem
        if numbers.shape != (len(logits),):
            raise PisteError(
                f"The target function must return one number per row of logits, shape "
                f"({len(logits)},), but returned the shape {numbers.shape}."
            )
        if not np.isfinite(numbers).all():
            raise PisteError("The target function returned NaN or infinity.")
        return numbers


def probabilities(logits: Floats, kind: OutputKind) -> Floats | None:
    """The logits as probabilities, or None for a regression."""
    if kind == "regression":
        return None
    return softmax(logits, axis=-1) if kind == "classes" else expit(logits)


def resolve(
    choice: TargetChoice, logits: Floats, labels: Sequence[str], kind: OutputKind
) -> Target:
    """The user's choice as a target; None means the predicted class of this input.

    >>> resolve(None, np.array([0.1, 0.9]), ("no", "yes"), "classes").name
    "log-odds of 'yes'"
    """
    labels = tuple(labels)
    if callable(choice):
        called = getattr(choice, "__name__", "function")
        return Target("function", called, labels=labels, function=choice)
    if isinstance(choice, str) and choice not in labels:
        if choice == "all":
            return _all(labels, kind)
        if " vs " in choice:
            choice = tuple(choice.split(" vs ", 1))  # type: ignore[assignment]  # two parts
    if isinstance(choice, (tuple, list)):
        if len(choice) != 2:
            raise PisteError(
                f"Expected a pair (a, b) of classes for a margin, got {shorten(choice)}."
            )
        a, b = (_index(one, labels) for one in choice)
        if a == b:
            raise PisteError(f"Expected two different classes for a margin, got {shorten(choice)}.")
        return Target("margin", f"margin of {labels[a]!r} over {labels[b]!r}", (a, b), labels)
    index = int(np.argmax(logits)) if choice is None else _index(choice, labels)
    if kind == "regression":
        index = 0 if choice is None else index
        return Target("output", f"output {labels[index]!r}", (index,), labels)
    if kind == "labels" or len(labels) == 1:
        return Target("output", f"log-odds of {labels[index]!r}", (index,), labels)
    return Target("class", f"log-odds of {labels[index]!r}", (index,), labels)


_NEGLIGIBLE = 0.1
"""Of log-odds: it moves a probability by 2.5 points at most."""


def negligible_error(target: Target) -> float:
    """An error of the explained number that makes no difference to a reader; 0 if not known."""
    is_log_odds = target.kind in ("class", "margin", "all") or target.name.startswith("log-odds")
    return _NEGLIGIBLE if is_log_odds else 0.0


def _all(labels: tuple[str, ...], kind: OutputKind) -> Target:
    if kind != "classes" or len(labels) < 2:
        raise PisteError("target='all' needs a classifier with two or more exclusive classes.")
    return Target("all", "every class above their mean", tuple(range(len(labels))), labels)


def _index(choice: object, labels: tuple[str, ...]) -> int:
    listed = ", ".join(f"{number} {label!r}" for number, label in enumerate(labels[:20]))
    if isinstance(choice, str):
        if choice in labels:
            return labels.index(choice)
        lowered = [label.lower() for label in labels]
        if lowered.count(choice.lower()) == 1:
            return lowered.index(choice.lower())
        if choice.isascii() and choice.isdigit():
            choice = int(choice)
    if isinstance(choice, bool):
        raise PisteError(f"Expected a class, got {choice!r}: the model has {listed}.")
    if isinstance(choice, (int, np.integer)) and 0 <= choice < len(labels):
        return int(choice)
    raise PisteError(f"There is no class {choice!r}: the model has {listed}.")
