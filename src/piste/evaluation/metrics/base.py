"""What a metric is: it asks about an explained input, and turns the answers into figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from scipy.special import expit

from piste.explanation import UNDIRECTED, Explanation
from piste.subject import Sequence1D, Subject
from piste.target import probabilities
from piste.types import Flags, Floats, Ints

Average: TypeAlias = Literal["mean", "median"]


@dataclass(frozen=True)
class Answers:
    """What the model said to a metric's questions, in their order."""

    logits: Floats
    """Questions × outputs."""
    numbers: Floats
    """The explained number of every question (log-odds of the class that is explained)."""
    chances: Floats
    """The same as a probability; the number itself for a regression or a function."""


@dataclass(frozen=True)
class Case:
    """One explanation of one input, as it is judged.

    ``score`` names what ranks the units: the explanation's own ranking unless told otherwise.
    Where every class is explained, the predicted one is judged.
    """

    explanation: Explanation
    subject: Subject
    score: str | None = None
    rationale: Flags | None = None
    """Which units people marked, if they were asked."""
    seed: int = 0

    @property
    def n(self) -> int:
        return len(self.subject)

    @property
    def scores(self) -> Floats:
        """One score per unit: above zero speaks for the explained number."""
        return self.explanation.score(self.score)

    @property
    def sizes(self) -> Floats:
        """How much each unit counts, whichever way."""
        return self.explanation.size(self.score)

    @property
    def directed(self) -> bool:
        """Whether scores speak for or against, and not only weigh."""
        return (self.score or self.explanation.ranking) not in UNDIRECTED

    @property
    def order(self) -> Ints:
        """Units from the one that speaks most for the answer to the one most against it.

        Ties keep the order of a fixed shuffle: the text's own order would not be neutral.
        """
        shuffled = self.rng().permutation(self.n)
        return shuffled[np.argsort(-self.scores[shuffled], kind="stable")]

    def rng(self) -> np.random.Generator:
        """The same numbers for every method, so that all are asked the same."""
        return np.random.default_rng(self.seed)

    def answers(self, logits: Floats) -> Answers:
        """Logits read as the explained number and as its probability."""
        target = self.explanation.target
        numbers = target(logits)
        if numbers.ndim == 2:
            own = int(np.argmax(self.explanation.output.logits))
            rest = np.delete(logits, own, axis=1)
            numbers = logits[:, own] - np.logaddexp.reduce(rest, axis=1)
            return Answers(logits, numbers, expit(numbers))
        if target.kind == "function" or probabilities(logits, self.subject.classifier.kind) is None:
            return Answers(logits, numbers, numbers)
        return Answers(logits, numbers, expit(numbers))

    def predict(self, kept: Floats | Flags) -> Floats:
        """What the explanation expects for masks of kept units (questions × units)."""
        expected = np.asarray(self.explanation.predict(np.asarray(kept, dtype=bool)))
        if expected.ndim == 2:  # centred numbers of all classes: one against the rest
            own = int(np.argmax(self.explanation.output.logits))
            rest = np.delete(expected, own, axis=1)
            return expected[:, own] - np.logaddexp.reduce(rest, axis=1)
        return expected


@dataclass(frozen=True)
class Measured:
    """Figures by name, NaN where undefined, and curves by name (fraction removed → number)."""

    figures: Mapping[str, float]
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """What one figure of a metric is called, means, and which way is good."""

    name: str
    about: str
    better: Literal["higher", "lower", "neither"]
    average: Average = "mean"
    """How examples are put together: a few of them would rule the mean of errors and R²."""


class Metric(ABC):
    """A frozen set of options with two abilities: to ask, and to turn answers into figures.

    ``plan`` returns sequences of unit indices about the case's subject; the questions of all
    metrics, methods and inputs are asked together. ``measure`` gets the answers in that order.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    figures: tuple[Figure, ...]

    def plan(self, case: Case) -> list[Sequence1D]:
        """The questions; none by default."""
        return []

    @abstractmethod
    def measure(self, case: Case, answers: Answers) -> Measured:
        """Figures from the answers."""
