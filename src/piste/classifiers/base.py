"""What every classifier offers to the rest of the house."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from piste.errors import PisteError, shorten
from piste.subject import (
    LONG_CHOICES,
    REMOVALS,
    UNIT_KINDS,
    LongChoice,
    Question,
    Removal,
    Subject,
    UnitChoice,
    UnitKind,
)

if TYPE_CHECKING:
    import torch

    from piste.classifiers.introspection.gradients import Inside
    from piste.target import Target

OutputKind: TypeAlias = Literal["classes", "labels", "regression"]
"""How outputs are read: exclusive classes (softmax), independent labels (sigmoid), or numbers."""


class Classifier(ABC):
    """An adapter around something that classifies."""

    name: str
    labels: tuple[str, ...]
    """One name per output; empty until the first answer if a function was loaded."""
    kind: OutputKind
    budget: int
    """The most tokens (rows × longest row) one batch should hold."""
    reads: Literal["texts", "pictures"] = "texts"
    """What its inputs are."""
    calibrated: bool = True
    """Whether the best size of a batch, up to the budget, is found by timing."""

    @abstractmethod
    def subject(
        self,
        input: Any,
        *,
        units: UnitChoice = None,
        long: LongChoice = "error",
        removal: Removal = "delete",
    ) -> Subject:
        """Bind one input to this classifier and cut it into units."""

    def check_choices(self, units: UnitChoice, long: str, removal: str) -> None:
        """Refuse early what :meth:`subject` would refuse of any input."""
        check_choices(units, long, removal)

    @abstractmethod
    def answer(self, questions: Sequence[Question]) -> NDArray[np.float64]:
        """Logits for one batch, questions × outputs. Called within :meth:`session`."""

    def share(
        self, questions: Sequence[Question], budget: int
    ) -> Iterator[tuple[list[Question], NDArray[np.float64]]] | None:
        """Answer all questions with less work than one by one, or None where there is no way.

        A batch holds at most ``budget`` tokens. Called within :meth:`session`.
        """
        return None

    def session(self) -> AbstractContextManager[object]:
        """The state in which questions are answered; restores what it found."""
        return nullcontext()

    def inside(self, subject: Subject, target: Target) -> Inside:
        """A white box's embeddings and gradients for one input; a black box refuses."""
        raise PisteError(
            f"{self.name!r} only gives answers, and this method looks inside a model: choose one "
            "that needs answers only (see `piste methods`), or load the model itself."
        )

    def tensors(self, subject: Subject) -> dict[str, torch.Tensor]:
        """A white box's own inputs for the whole of a subject, one row, by the model's names."""
        raise NotImplementedError

    def fingerprint(self) -> str | None:
        """A text that is another one if answers might be; None if that can't be known."""
        return None

    def describe(self) -> dict[str, object]:
        """What the result should remember of this classifier."""
        return {"name": self.name}


def check_text(input: object) -> tuple[str, ...]:
    """The one or two texts of an input, or a clear refusal.

    >>> check_text(("a", "b"))
    ('a', 'b')
    """
    texts = (input,) if isinstance(input, str) else input
    if not isinstance(texts, tuple) or len(texts) not in (1, 2):
        raise PisteError(
            f"A text or a pair (text, text) is wanted, but {shorten(input)} of type "
            f"{type(input).__name__} came."
        )
    for text in texts:
        if not isinstance(text, str):
            raise PisteError(
                f"A text is wanted, but {shorten(text)} of type {type(text).__name__} came: "
                "convert it to str first."
            )
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise PisteError(
                f"The text {shorten(text)} holds half characters (surrogates): decode it as UTF-8."
            )
    if not any(text.strip() for text in texts):
        raise PisteError("The text is empty: there is nothing to explain, give at least one word.")
    return texts


def check_choices(units: UnitChoice, long: str, removal: str) -> UnitKind:
    """What a text is to be cut into; unknown names are refused early.

    >>> check_choices(None, "error", "delete")
    'words'
    """
    chosen: Any = "words" if units is None else units
    for name, choice, known in (
        ("units", chosen, UNIT_KINDS),
        ("long", long, LONG_CHOICES),
        ("removal", removal, REMOVALS),
    ):
        if choice not in known:
            raise PisteError(f"{name}={choice!r} is unknown: choose {', '.join(known)}.")
    kind: UnitKind = chosen
    return kind
