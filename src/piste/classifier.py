"""What a classifier is: something that answers questions about inputs."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from piste.errors import PisteError
from piste.subject import (
    Binding,
    LongChoice,
    Question,
    Removal,
    Subject,
    UnitChoice,
    check_choices,
)
from piste.target import OutputKind, Target
from piste.types import Floats

if TYPE_CHECKING:
    import torch


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
    paced: bool = True
    """Whether the best size of a batch, up to the budget, is found by timing."""

    def subject(
        self,
        input: Any,
        *,
        units: UnitChoice = None,
        long: LongChoice = "error",
        removal: Removal = "delete",
    ) -> Subject:
        """Bind one input to this classifier and cut it into units."""
        self.check_choices(units, long, removal)
        return self.bind(input, Binding(units, long, removal))

    @abstractmethod
    def bind(self, input: Any, how: Binding) -> Subject:
        """What :meth:`subject` gives; ``how`` is checked already. The model is asked nothing.

        Only a classifier that finds the patches of an image by trying calibrates here, at the
        first image of a size.
        """

    @cached_property
    def calibration(self) -> Calibration:
        """What :meth:`calibrate` has cost so far."""
        return Calibration()

    def calibrate(self, subject: Subject) -> None:  # noqa: B027  # some need nothing
        """Try out, once, what answering has to know of the model: the one step that is no question.

        Which way of padding leaves the answers as they are, whether a twin without unread parts
        answers the same, whether nothing at all can be read, what a function's numbers mean. The
        engine takes this step before it asks about a subject; :attr:`calibration` counts it.
        """

    def check_choices(self, units: UnitChoice, long: str, removal: str) -> None:
        """Refuse early what :meth:`subject` would refuse of any input."""
        check_choices(units, long, removal)

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
