"""What a metric is: it asks the model, or explains again, and turns what it gets into figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from scipy.special import expit

from piste.classifiers import Classifier
from piste.explanation import UNDIRECTED, Explanation
from piste.subject import Input, Sequence1D, Subject
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
    """One number a metric gives: what it is called, what it means, and which way is better."""

    name: str
    better: Literal["higher", "lower", "neither"]
    title: str
    """A heading: "deletion AOPC"."""
    skill: str
    """What the best method is best at: "finding the units that carry the answer"."""
    about: str
    """What the number is, as the start of a sentence."""
    average: Average = "mean"
    """How examples are put together: a few of them would rule the mean of errors and R²."""
    role: Literal["main", "other", "detail", "cost"] = "other"
    """Verdicts are made of main figures; a detail has no column in tables."""


RUNTIME = (
    Figure(
        "seconds",
        "lower",
        title="seconds",
        skill="speed",
        about="how long one explanation took",
        average="median",
        role="cost",
    ),
    Figure(
        "calls",
        "lower",
        title="calls",
        skill="few questions",
        about="how many questions one explanation asked",
        role="cost",
    ),
)
"""Figures every row has, whatever is measured."""


class BaseMetric(ABC):
    """What all metrics have in common: a name, figures, and options as fields of a dataclass.

    Derive from :class:`Metric` to ask the model, from :class:`ReexplainingMetric` to explain again.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    figures: tuple[Figure, ...]
    needs: ClassVar[Literal["model", "classes", "marks", "labels", "explanations"]] = "model"
    """What is needed besides the explanation: any model, one that chooses between classes, what
    people marked, labelled texts (see :meth:`fitted`), or further explanations."""

    @classmethod
    def fitted(cls, texts: Sequence[str], labels: Sequence[int], classes: int) -> BaseMetric:
        """The metric made from labelled texts, for those that need labels."""
        raise NotImplementedError(f"{cls.__name__} needs labels, but can't be fitted to them")


class Metric(BaseMetric):
    """A metric that asks the model about an explained input.

    ``plan`` returns sequences of unit indices about the case's subject; the questions of all
    metrics, methods and inputs are asked together. ``measure`` gets the answers in that order.
    """

    def plan(self, case: Case) -> list[Sequence1D]:
        """The questions; none by default."""
        return []

    @abstractmethod
    def measure(self, case: Case, answers: Answers) -> Measured:
        """Figures from the answers."""


class ExplainAgain(Protocol):
    """Explains once more by the same method; what is not given stays as it was."""

    def __call__(
        self,
        *,
        input: Input | None = None,
        seed: int | None = None,
        classifier: Classifier | None = None,
    ) -> Explanation: ...


@dataclass(frozen=True)
class RepeatableExplanation:
    """An explanation and the means to make another one like it."""

    explanation: Explanation
    classifier: Classifier
    seed: int
    again: ExplainAgain


class ReexplainingMetric(BaseMetric):
    """A metric that needs further explanations.

    ``reexplain`` makes them, once for all scores an explanation is judged by; ``compare`` turns
    them into figures, NaN where there was nothing to compare.
    """

    needs = "explanations"

    @abstractmethod
    def reexplain(self, first: RepeatableExplanation) -> list[Explanation]:
        """Further explanations; none if this input or model has no such thing."""

    @abstractmethod
    def compare(
        self, first: Explanation, others: Sequence[Explanation], score: str | None
    ) -> dict[str, float]:
        """Figures by name."""


def derive(seed: int, *parts: object) -> int:
    """A seed made of a seed and names.

    >>> derive(0, "17") == derive(0, "17") != derive(0, "18")
    True
    """
    text = repr((int(seed), *map(str, parts)))
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big")
