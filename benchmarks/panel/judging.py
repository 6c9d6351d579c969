"""What an explanation is held against: the model's answers to questions of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from piste.engine import Engine
from piste.explanation import Explanation, r_squared
from piste.subject import Subject
from piste.target import Target, resolve
from piste.types import Flags, Floats

ALL, FEW = 150, 120
STEPS = np.linspace(0.05, 0.5, 10)
"""Shares of the units that are removed for the deletion curve."""


@dataclass
class Trial:
    """One input with its test questions, asked once and used for every method."""

    subject: Subject
    engine: Engine
    target: Target
    whole: float
    questions: dict[str, list[Any]]
    answers: dict[str, Floats]
    drawn: Floats

    @staticmethod
    def of(subject: Subject) -> Trial:
        """Ask all test questions; they are drawn apart from those of any method."""
        engine, rng, n = Engine(subject.classifier), np.random.default_rng(987_654), len(subject)
        logits = engine.ask([(subject, [subject.whole])])[0]
        classifier = subject.classifier
        target = resolve(None, logits[0], classifier.labels, classifier.kind)
        sizes = {
            "all": rng.integers(1, max(n, 2), ALL),
            "log": np.round(np.exp(rng.uniform(0, np.log(max(n - 1, 1)), ALL))).astype(int),
            "few": np.minimum(rng.integers(2, 7, FEW), max(n - 1, 1)),
        }
        questions: dict[str, list[Any]] = {
            kind: [np.sort(rng.choice(n, min(size, n), replace=False)) for size in some]
            for kind, some in sizes.items()
        }
        questions["one"] = [[int(unit)] for unit in np.unique(subject.types, return_index=True)[1]]
        answers = {
            kind: target(engine.ask([(subject, some)])[0]) for kind, some in questions.items()
        }
        everything = np.concatenate(list(answers.values()))
        return Trial(
            subject, engine, target, float(target(logits)[0]), questions, answers, everything
        )

    def judge(self, e: Explanation) -> dict[str, float]:
        """Fidelity by kind of question, deletion, and what is said of the scores."""
        found = self.fidelity(lambda masks: np.asarray(e.predict(masks)))
        found |= self.deletion(e.score())
        if "value" in e.scores:
            found |= self._values(e)
        low, high = float(self.drawn.min()), float(self.drawn.max())
        strongest = float(np.abs(e.scores.get("value", e.score())).max())
        return found | {
            "largest": strongest,
            "range": max(abs(low), abs(high), abs(self.whole)),
            "seconds": e.seconds,
            "calls": float(e.calls),
            "cost": e.cost,
            "mixing": e.mixing.value if e.mixing else float("nan"),
        }

    def fidelity(self, predict: Callable[[Flags], Floats]) -> dict[str, float]:
        """R² of what is predicted for the units that are kept, by kind of question."""
        found = {}
        for kind, questions in self.questions.items():
            masks = np.zeros((len(questions), len(self.subject)), dtype=bool)
            for row, question in zip(masks, questions, strict=True):
                row[question] = True
            found[f"r2 {kind}"] = r_squared(predict(masks), self.answers[kind])
        return found

    def deletion(self, score: Floats) -> dict[str, float]:
        """How far log-odds and probability fall on average as the highest scores go first."""
        n, order = len(self.subject), np.argsort(-score, kind="stable")
        gone = np.unique(np.clip(np.round(STEPS * n).astype(int), 1, max(n - 1, 1)))
        left = [np.sort(order[count:]) for count in gone]
        answers = self.target(self.engine.ask([(self.subject, left)])[0])
        chance = 1 / (1 + np.exp(-np.append(answers, self.whole)))
        return {
            "deletion": float((self.whole - answers).mean()),
            "deletion p": float((chance[-1] - chance[:-1]).mean()),
        }

    def _values(self, e: Explanation) -> dict[str, float]:
        first = [question[0] for question in self.questions["one"]]
        value, error = e.scores["value"][first], e.errors["value"][first]
        content = np.array([_is_content(self.subject.units[unit].text) for unit in first])
        sure = np.abs(value) > 2 * error
        return {
            "r2 value": r_squared(value, self.answers["one"]),
            "sure": float(sure[content].mean()) if content.any() else float("nan"),
        }


_FUNCTION_WORDS = frozenset(
    [
        "a",
        "an",
        "the",
        "and",
        "or",
        "but",
        "of",
        "in",
        "on",
        "at",
        "to",
        "for",
        "with",
        "from",
        "by",
        "as",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "he",
        "she",
        "they",
        "his",
        "her",
        "their",
        "i",
        "you",
        "we",
        "my",
        "your",
        "our",
        "not",
        "no",
        "so",
        "if",
        "than",
        "then",
        "there",
        "have",
        "has",
        "had",
        "do",
        "does",
        "did",
        "will",
        "would",
        "can",
        "could",
        "should",
        "may",
        "might",
        "just",
        "very",
        "too",
        "also",
    ]
)


def _is_content(text: str) -> bool:
    word = text.strip().lower()
    return any(letter.isalpha() for letter in word) and word not in _FUNCTION_WORDS
