"""Agreement of the scores with something else: single removals, people, a word model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from piste.classifiers.text.units import word_spans
from piste.data.rationales import rationale_units
from piste.errors import PisteError, shorten
from piste.evaluation.metrics.base import Answers, Case, Figure, Measured, Metric
from piste.evaluation.metrics.ranking import area_under_roc, average_precision, spearman, top_f1
from piste.subject import Sequence1D
from piste.validation import check_count

__all__ = [
    "NaiveBayes",
    "Rationale",
    "SingleRemoval",
    "naive_bayes_table",
    "rationale_units",
]

WordTable: TypeAlias = Mapping[str, float] | Mapping[str, Sequence[float]]
"""Evidence of lower-case words: for class 1 against 0, or for each class against the rest."""


@dataclass(frozen=True)
class SingleRemoval(Metric):
    """Spearman correlation of the scores with f(x) − f(x without i), f in log-odds.

    Of more than ``most`` units a random choice is asked, the same for every method. NaN for a
    single unit, and where all scores or all differences are equal.
    """

    most: int = 200

    name: ClassVar[str] = "single"
    about: ClassVar[str] = "whether the scores rank units as their single removal does"
    figures = (
        Figure(
            "spearman_single",
            "higher",
            title="single removals",
            skill="ranking the units as their single removal does",
            about="rank correlation of the scores with what removing each unit alone changes",
        ),
    )

    def __post_init__(self) -> None:
        check_count("most", self.most, least=2)

    def plan(self, case: Case) -> list[Sequence1D]:
        if case.n == 1:
            return []
        whole = case.subject.whole
        return [whole, *(np.delete(whole, unit) for unit in self._chosen(case))]

    def measure(self, case: Case, answers: Answers) -> Measured:
        if case.n == 1:
            return Measured({"spearman_single": math.nan})
        losses = answers.numbers[0] - answers.numbers[1:]
        return Measured({"spearman_single": spearman(case.scores[self._chosen(case)], losses)})

    def _chosen(self, case: Case) -> Sequence1D:
        if case.n <= self.most:
            return case.subject.whole
        return np.sort(case.rng().choice(case.n, self.most, replace=False))


@dataclass(frozen=True)
class Rationale(Metric):
    """Do the scores find the units that people marked?

    |score| (the score itself with ``signed``, and where it has no direction, as an importance)
    against the marks: the area under the ROC curve,
    the average precision, and the F1 of the k top units, k the number of marked ones (ERASER's
    discrete version; ties are broken in expectation). NaN without marks, and where every unit is
    marked or none is.
    """

    signed: bool = False

    name: ClassVar[str] = "rationale"
    about: ClassVar[str] = "whether the scores find what people marked"
    needs = "marks"
    figures = (
        Figure(
            "auroc",
            "higher",
            title="people's marks",
            skill="finding what people marked",
            about="chance that a unit people marked scores above one they didn't (0.5 is chance "
            "level)",
        ),
        Figure(
            "auprc",
            "higher",
            title="people's marks, precision",
            skill="finding what people marked, and little else",
            about="average precision at finding the units people marked",
        ),
        Figure(
            "token_f1",
            "higher",
            title="people's marks, F1",
            skill="choosing the units people marked",
            about="F1 of as many of the strongest units as people marked",
        ),
    )

    def measure(self, case: Case, answers: Answers) -> Measured:
        if case.rationale is None:
            return Measured({figure.name: math.nan for figure in self.figures})
        scores = case.scores if self.signed else case.sizes
        return Measured(
            {
                "auroc": area_under_roc(scores, case.rationale),
                "auprc": average_precision(scores, case.rationale),
                "token_f1": top_f1(scores, case.rationale),
            }
        )


@dataclass(frozen=True)
class NaiveBayes(Metric):
    """Spearman correlation of the scores with the evidence log p(w|1)/p(w|0) of their words.

    ``table`` is what :func:`naive_bayes_table` made of labelled texts: a number per word for
    class 1 against class 0 (its negative is taken where class 0 is explained), or one per class
    against the rest. A single output is read as class 1. Units that are no word of the table
    are left out; NaN for fewer than two others, and where what is explained is not a class.
    Scores without a direction (importances) are held against |evidence|.
    """

    table: WordTable | None = None

    name: ClassVar[str] = "naive_bayes"
    about: ClassVar[str] = "whether the scores rank words as a naive Bayes model does"
    needs = "labels"
    figures = (
        Figure(
            "spearman_nb",
            "higher",
            title="naive Bayes",
            skill="ranking words as a naive Bayes model does",
            about="rank correlation of the scores with the words' evidence in a naive Bayes model",
        ),
    )

    def __post_init__(self) -> None:
        if not isinstance(self.table, Mapping) or not self.table:
            raise PisteError(
                "The metric 'naive_bayes' needs a table of words: give "
                "NaiveBayes(naive_bayes_table(texts, labels)) instead of its name."
            )

    @classmethod
    def fitted(cls, texts: Sequence[str], labels: Sequence[int], classes: int) -> NaiveBayes:
        return cls(naive_bayes_table(texts, labels, classes=classes))

    def measure(self, case: Case, answers: Answers) -> Measured:
        own = _explained_class(case)
        if own is None:
            return Measured({"spearman_nb": math.nan})
        words = [_word(unit.text) for unit in case.subject.units]
        known = [unit for unit, word in enumerate(words) if word in (self.table or {})]
        evidence = np.array([self._evidence(words[unit], own) for unit in known])
        evidence = evidence if case.directed else np.abs(evidence)
        return Measured({"spearman_nb": spearman(case.scores[known], evidence)})

    def _evidence(self, word: str, own: int) -> float:
        entry = (self.table or {})[word]
        if isinstance(entry, (int, float)):
            if own > 1:
                raise PisteError(
                    f"Class {own} is explained, but the table of words only tells class 1 from "
                    "class 0: make it with naive_bayes_table(texts, labels, classes=…)."
                )
            return float(entry) if own == 1 else -float(entry)
        if own >= len(entry):
            raise PisteError(
                f"Class {own} is explained, but the table of words has {len(entry)} classes."
            )
        return float(entry[own])


def naive_bayes_table(
    texts: Sequence[str], labels: Sequence[int], alpha: float = 20.0, classes: int = 2
) -> dict[str, float] | dict[str, tuple[float, ...]]:
    """Evidence of every word, from counts N with Laplace's ``alpha`` and the vocabulary V.

    p(w|c) = (N_wc + α) / (Σ_v N_vc + α·|V|); for two classes log p(w|1)/p(w|0) of each word,
    for more one number per class, log p(w|c)/p(w|not c). Words are those that texts are cut
    into, in lower case.

    >>> table = naive_bayes_table(["good good film", "bad film"], [1, 0], alpha=1.0)
    >>> {word: round(evidence, 3) for word, evidence in table.items()}
    {'bad': -0.875, 'film': -0.182, 'good': 0.916}
    """
    if len(texts) != len(labels):
        raise PisteError(
            f"Expected a label for each of {len(texts)} texts, got {len(labels)} labels."
        )
    check_count("classes", classes, least=2)
    if not alpha > 0:
        raise PisteError(f"alpha: expected a number above 0, got {alpha!r}.")
    counters: list[Counter[str]] = [Counter() for _ in range(classes)]
    for text, label in zip(texts, labels, strict=True):
        if label not in range(classes):
            raise PisteError(f"Expected labels from 0 to {classes - 1}, got {shorten(label)}.")
        counters[int(label)].update(_word(text[a:b]) for a, b in word_spans(text))
    vocabulary = list(dict.fromkeys(word for counter in counters for word in counter))
    counts = np.array([[counter[word] for counter in counters] for word in vocabulary], dtype=float)
    counts = counts.reshape(len(vocabulary), classes)
    rest = counts.sum(axis=1, keepdims=True) - counts
    evidence = _log_chances(counts, alpha) - _log_chances(rest, alpha)
    if classes == 2:
        return dict(zip(vocabulary, evidence[:, 1].tolist(), strict=True))
    return dict(zip(vocabulary, map(tuple, evidence.tolist()), strict=True))


def _log_chances(counts: np.ndarray, alpha: float) -> np.ndarray:
    return np.log(counts + alpha) - np.log(counts.sum(axis=0) + alpha * len(counts))


def _word(text: str) -> str:
    return text.strip().lower()


def _explained_class(case: Case) -> int | None:
    """The class the scores speak for, None if it isn't one."""
    target = case.explanation.target
    outputs = len(case.explanation.output.logits)
    if target.kind == "all":
        return int(np.argmax(case.explanation.output.logits))
    if target.kind == "class" or (target.kind == "margin" and outputs == 2):
        return target.indices[0]
    return 1 if target.kind == "output" and outputs == 1 else None
