"""Seconds, memory and faithfulness of one run."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.special import expit

import piste
from benchmarks.speed.cases import Case, Floats, Masks
from piste.classifiers.padding import RIGHT, pad_rows
from piste.classifiers.text import TextClassifier
from piste.engine.batching import Pace, batches
from piste.methods.slalom import SlalomMethod
from piste.subject import Question

SIZES = (512, 1024, 2048, 4096)


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


def measure(name: str, run: Callable[[], Answer], case: Case | None = None) -> Row:
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


def judge(row: Row, answer: Answer, case: Case) -> None:
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
def peak_memory() -> Iterator[list[float]]:
    """Megabytes above what was in use before, sampled every few milliseconds."""
    before, highest, stop = _resident(), [0.0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.01):
            highest[0] = max(highest[0], _resident() - before)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield highest
    finally:
        stop.set()
        watcher.join()


def _resident() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


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


@contextmanager
def recorded() -> Iterator[list[Question]]:
    """Every question that goes to the model while the block runs."""
    heard: list[Question] = []
    answer = TextClassifier.answer

    def listen(self: TextClassifier, questions: Any) -> Any:
        heard.extend(questions)
        return answer(self, questions)

    try:
        TextClassifier.answer = listen  # type: ignore[method-assign]  # put back below
        yield heard
    finally:
        TextClassifier.answer = answer  # type: ignore[method-assign]


class Bare:
    """The limit: nothing but the model, on batches padded beforehand, at its best batch size."""

    def __init__(self, case: Case) -> None:
        self.model = case.model
        self._pad = case.model.config.pad_token_id
        self._typed = "token_type_ids" in case.tokenizer.model_input_names
        self._best: dict[int, int] = {}
        self._costs: dict[int, float] = {}

    def estimate(self, lengths: list[int]) -> float:
        """What sequences of these lengths would take, from the cost per token at the best size."""
        for length in sorted(set(lengths)):
            self._calibrate(Question("", length, (np.full(length, 1000), np.zeros(length, int))))
        return sum(length * self._costs[_class(length)] for length in lengths)

    def seconds(self, questions: list[Question]) -> float:
        """Time of all questions, longest first, each length class at its quickest size."""
        ordered = sorted(questions, key=lambda question: -question.length)
        for question in ordered[:: max(len(ordered) // 40, 1)]:
            self._calibrate(question)  # a class that is rarer than that hardly counts
        known = _Known(self._best)
        return self._run([self._padded(batch) for _, batch in batches(ordered, known)])

    def _calibrate(self, question: Question) -> None:
        key = _class(question.length)
        if key in self._best:
            return
        costs = {}
        for size in SIZES:
            rows = max(size // question.length, 1)
            batch = self._padded([question] * rows)
            costs[size] = min(self._run([batch]) for _ in range(2)) / rows
        self._best[key] = min(costs, key=lambda size: costs[size])
        self._costs[key] = min(costs.values()) / question.length

    def _padded(self, questions: list[Question]) -> dict[str, torch.Tensor]:
        batch = pad_rows(questions, RIGHT, self._pad)
        arrays = {"input_ids": batch.ids, "attention_mask": batch.mask}
        if self._typed:
            arrays["token_type_ids"] = batch.types
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def _run(self, batches: list[dict[str, torch.Tensor]]) -> float:
        start = time.perf_counter()
        with torch.inference_mode():
            for batch in batches:
                self.model(**batch)
        return time.perf_counter() - start


class _Known(Pace):
    """Batch sizes that were found beforehand."""

    def __init__(self, best: dict[int, int]) -> None:
        super().__init__(max(SIZES))
        self._known = best

    def size(self, length: int, trying: bool = False) -> int:
        nearest = min(self._known, key=lambda key: abs(key - _class(length)))
        return self._known[nearest]


def _class(length: int) -> int:
    return max(length - 1, 0).bit_length()


def by_explanation(e: piste.Explanation) -> Answer:
    """Piste's own kind of answer."""
    return Answer(lambda masks: np.asarray(e.predict(masks)), e.scores["linear"], e.calls)
