"""Seconds, memory and faithfulness of one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

import piste
from benchmarks.speed.cases import JudgedCase, Masks
from piste.classifiers.text.classifier import TextClassifier
from piste.methods.slalom import SlalomMethod
from piste.types import Floats
from studies.timing import peak_memory


@dataclass
class Answer:
    """What an explainer found: a prediction for any removal, and scores to rank units by."""

    predict: Callable[[Masks], Floats] | None
    ranking: Floats | None
    calls: int | None = None


@dataclass
class Row:
    """One line of the table."""

    name: str
    calls: int | None = None
    seconds: float = float("nan")
    limit: float = float("nan")
    shares: dict[str, float] = field(default_factory=dict)
    megabytes: float = float("nan")
    r2: float = float("nan")
    r2_short: float = float("nan")
    aopc: float = float("nan")
    note: str = ""


def measure(name: str, run: Callable[[], Answer], case: JudgedCase | None = None) -> Row:
    """Run once and judge the outcome; an explainer that fails gets a row that says so."""
    row = Row(name)
    with peak_memory() as peak:
        start = time.perf_counter()
        try:
            answer = run()
        except Exception as problem:  # a peer's failure is a result, not the end of the run
            row.note = f"{type(problem).__name__}: {str(problem).splitlines()[0][:80]}"
            return row
        row.seconds = time.perf_counter() - start
    row.megabytes, row.calls = peak[0], answer.calls
    if case is not None:
        judge(row, answer, case)
    return row


def judge(row: Row, answer: Answer, case: JudgedCase) -> None:
    """R² over removals of all sizes, and how far the output falls as top units are deleted."""
    if answer.predict is not None:
        row.r2 = _r2(answer.predict, *case.removals)
        row.r2_short = _r2(answer.predict, *case.few)
    if answer.ranking is not None:
        n = len(answer.ranking)
        order = np.argsort(-answer.ranking)
        steps = np.unique(np.linspace(0, n - 1, 20).astype(int))
        left = np.ones((len(steps), n), dtype=bool)
        for number, step in enumerate(steps):
            left[number, order[:step]] = False
        chances = expit(case.log_odds(left))
        row.aopc = float((chances[0] - chances[1:]).mean())


def _r2(predict: Callable[[Masks], Floats], masks: Masks, truth: Floats) -> float:
    return float(1 - ((predict(masks) - truth) ** 2).mean() / truth.var())


@contextmanager
def clocks() -> Iterator[dict[str, float]]:
    """Seconds spent in planning, solving and asking the model while the block runs."""
    spent = {"forward": 0.0, "plan": 0.0, "solve": 0.0}

    def timed(part: str, function: Any) -> Any:
        def wrapped(*args: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                spent[part] += time.perf_counter() - start

        return wrapped

    places = [
        (TextClassifier, "answer", "forward"),
        (SlalomMethod, "plan", "plan"),
        (SlalomMethod, "solve", "solve"),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    try:
        for owner, name, part in places:
            setattr(owner, name, timed(part, getattr(owner, name)))
        yield spent
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def by_explanation(e: piste.Explanation) -> Answer:
    """Piste's own kind of answer."""
    return Answer(lambda masks: np.asarray(e.predict(masks)), e.score(), e.calls)
