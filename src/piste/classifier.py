"""What a classifier is: something that answers questions about inputs."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from piste.answer import Answer
from piste.errors import PisteError, shorten
from piste.explanation import Explanation, Output
from piste.subject import (
    UNIT_KINDS,
    Binding,
    LongChoice,
    Question,
    Removal,
    Sequence1D,
    Subject,
    UnitChoice,
    check_choices,
    levels_of,
)
from piste.target import OutputKind, Target, TargetChoice, probabilities, resolve
from piste.types import Floats
from piste.validation import MOST_UNITS, check_size

if TYPE_CHECKING:
    import torch

_FEWER = "choose coarser units, as 'sentences' or 'paragraphs' of a text, or give a part of it"


@dataclass
class Calibration:
    """What trying out a model has cost: batches that went through it beside the questions."""

    batches: int = 0
    seconds: float = 0.0


class Classifier(ABC):
    """An adapter around something that classifies."""

    name: str
    labels: tuple[str, ...]
    """One name per output; empty until the first answer if a function was loaded."""
    kind: OutputKind
    budget: int
    """The most tokens (rows × longest row) one batch should hold."""
    reads: Literal["texts", "images"] = "texts"
    """What its inputs are."""
    unit_kinds: tuple[str, ...] = UNIT_KINDS
    """What its inputs can be cut into, by name."""
    paced: bool = True
    """Whether the best size of a batch, up to the budget, is found by timing."""
    costly: bool = False
    """Whether every answer is kept at once, because asking again costs more than keeping it."""

    def subject(
        self,
        input: Any,
        *,
        units: UnitChoice = None,
        long: LongChoice = "error",
        removal: Removal = "delete",
    ) -> Subject:
        """Bind one input to this classifier and cut it into units.

        Levels are explained one after the other by :func:`piste.explain`: a subject has one.
        """
        self.check_choices(units, long, removal)
        cut, *finer = levels_of(units)
        if finer:
            raise PisteError(
                f"units: expected one kind of units here, got levels ({shorten(units)}): levels "
                "are for explaining."
            )
        subject = self.bind(input, Binding(cut, long, removal))
        check_size("The input", len(subject), MOST_UNITS, "units", _FEWER)
        return subject

    @abstractmethod
    def bind(self, input: Any, how: Binding) -> Subject:
        """What :meth:`subject` gives; ``how`` is checked already. The model is asked nothing."""

    @cached_property
    def calibration(self) -> Calibration:
        """What :meth:`calibrate` has cost so far."""
        return Calibration()

    def calibrate(self, subject: Subject) -> None:  # noqa: B027  # some need nothing
        """Try out, once, what answering has to know of the model: the one step that is no question.

        Which way of padding leaves the answers as they are, whether a twin without unread parts
        answers the same, whether nothing at all can be read, whether patches of an image can be
        left out (if not, the subject's ``removal`` changes), what a function's numbers mean. The
        engine takes this step before it asks about a subject; :attr:`calibration` counts it.
        """

    def remember(self, folder: Path) -> None:  # noqa: B027  # few have anything to keep
        """A folder of cached answers, in which it may keep what :meth:`calibrate` found out."""

    def expect(self, subjects: Sequence[Subject], questions: float, *, cached: bool = False) -> str:
        """What so many questions about such subjects will take, of a costly classifier.

        Refused where it is more than the user allowed; with a cache, ``questions`` is only the
        most there can be, and a cap is held when it is known what is left.
        """
        return f"{self.name}: about {questions:,.0f} questions."

    def check_choices(self, units: UnitChoice, long: str, removal: str) -> None:
        """Refuse early what :meth:`subject` would refuse of any input."""
        check_choices(units, long, removal, self.unit_kinds)

    @abstractmethod
    def answer(self, questions: Sequence[Question]) -> Floats:
        """Logits for one batch, questions × outputs. Called within :meth:`session`."""

    def share(
        self, questions: Sequence[Question], budget: int
    ) -> Iterator[tuple[list[Question], Floats]] | None:
        """Answer all questions with less work than one by one, or None where there is no way.

        A batch holds at most ``budget`` tokens. Called within :meth:`session`.
        """
        return None

    def session(self) -> AbstractContextManager[object]:
        """The state in which questions are answered; restores what it found."""
        return nullcontext()

    def gradient_access(self, subject: Subject, target: Target) -> Any:
        """A white box's embeddings and gradients for one input; a black box refuses."""
        raise PisteError(
            f"{self.name!r} only gives answers, and this method looks inside a model: choose one "
            "that needs answers only (see `piste methods`), or load the model itself."
        )

    def inside(self, subject: Subject, target: Target) -> Any:
        """The former name of :meth:`gradient_access`."""
        warnings.warn(
            "Classifier.inside is called gradient_access now.", DeprecationWarning, stacklevel=2
        )
        return self.gradient_access(subject, target)

    def tensors(self, subject: Subject) -> dict[str, torch.Tensor]:
        """A white box's own inputs for the whole of a subject, one row, by the model's names."""
        raise NotImplementedError

    def resolve(self, choice: TargetChoice, logits: Floats) -> Target:
        """The user's choice of a target for an input with these logits."""
        return resolve(choice, logits, self.labels, self.kind)

    def output(self, logits: Floats, value: Any) -> Output:
        """What the model says of the whole input; ``value`` is the explained number."""
        chances = probabilities(logits, self.kind)
        return Output(
            logits=tuple(map(float, logits)),
            probabilities=None if chances is None else tuple(map(float, chances)),
            labels=self.labels,
            value=float(value) if np.ndim(value) == 0 else tuple(map(float, value)),
        )

    def explained(self, explanation: Explanation) -> Classifier:
        """The classifier that gave the answers of an explanation; mostly this one."""
        return self

    def record(
        self, subject: Subject, sequences: Sequence[Sequence1D], logits: Floats
    ) -> Answer | None:
        """What was asked and answered, where a result keeps it: for answers in free text."""
        return None

    def fingerprint(self) -> str | None:
        """A text that is another one if answers might be; None if that can't be known."""
        return None

    def __repr__(self) -> str:
        made = self.calibration
        labels = ", ".join(self.labels[:4]) + (" …" if len(self.labels) > 4 else "")
        said = f"<{type(self).__name__} {self.name}: {labels or 'labels not known yet'}"
        tried = f"; calibrated by {made.batches} batches in {made.seconds:.2f} s"
        return said + (tried if made.batches else "") + ">"

    def describe(self) -> dict[str, object]:
        """What the result should remember of this classifier."""
        return {"name": self.name}
