"""Explanations with chosen scores of functions with known answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import piste
from piste.evaluation.metrics import Answers, Case, Measured, Metric
from piste.explanation import Explanation
from piste.surrogates import AdditiveSurrogate

REVIEWS = [
    "A slow start, but a wonderful ending and great acting all the way.",
    "The plot is dull, the jokes are awful and I want my two hours back.",
    "I loved every minute of this film: funny, warm and beautifully played.",
    "What a waste of a good cast; the script is terrible and far too long.",
]


def yes_or_no(log_odds: Callable[[str], float]) -> Any:
    """A classifier of two classes whose log-odds for "yes" a function of the text gives."""
    return piste.load(
        lambda texts: [[0.0, log_odds(text)] for text in texts],
        outputs="logits",
        kind="classes",
        labels=("no", "yes"),
    )


def adding(weights: Mapping[str, float], base: float = 0.0) -> Callable[[str], float]:
    """The log-odds of a bag of words."""
    return lambda text: base + sum(weights.get(word, 0.0) for word in text.split())


def explained(
    classifier: Any, text: str, scores: Sequence[float], base: float = 0.0, **options: Any
) -> Explanation:
    """An additive explanation with these scores."""
    e = piste.explain(classifier, text, method="zero", **options)
    return replace(
        e,
        scores={"attribution": np.array(scores, dtype=float)},
        surrogate=AdditiveSurrogate(base, "attribution"),
    )


def case_of(classifier: Any, explanation: Explanation, **options: Any) -> Case:
    return Case(explanation, classifier.subject(explanation.input), **options)


def measure(metric: Metric, case: Case) -> Measured:
    """What the metric finds, asked apart from everything else."""
    plan = metric.plan(case)
    logits = case.subject.ask(plan)
    nothing = np.empty(0)
    return metric.measure(case, case.answers(logits) if plan else Answers(logits, nothing, nothing))
