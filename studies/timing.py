"""What is timed against what: questions that were asked, the bare model on them, and memory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch

from piste.classifiers.text.batching import RIGHT, pad_rows
from piste.classifiers.text.classifier import TextClassifier
from piste.engine.engine import BatchSizer, batches
from piste.subject import Question
from studies.cases import Case

SIZES = (512, 1024, 2048, 4096)
"""Tokens in a batch that the bare model is tried with."""
Clock: TypeAlias = Callable[[], float]


def processor_seconds(run: Callable[[], Any]) -> float:
    """What something costs on all cores together; other work on the machine hardly changes it."""
    start = time.process_time()
    run()
    return time.process_time() - start


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """Megabytes above what was in use before, sampled every few milliseconds.

    NaN where the system does not tell.
    """
    before, stop = _resident(), threading.Event()
    highest = [_resident() - before]

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
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return float("nan")


@contextmanager
def recorded() -> Iterator[list[Question]]:
    """Every question that goes to the model while the block runs."""
    heard: list[Question] = []
    names = ("answer", "share")
    before = {name: getattr(TextClassifier, name) for name in names}

    def listening(name: str) -> Any:
        def listen(self: TextClassifier, questions: Any, *others: Any) -> Any:
            found = before[name](self, questions, *others)
            if found is not None:  # or beginnings are not shared, and all of them are asked again
                heard.extend(questions)
            return found

        return listen

    try:
        for name in names:
            setattr(TextClassifier, name, listening(name))
        yield heard
    finally:
        for name, own in before.items():
            setattr(TextClassifier, name, own)


class Bare:
    """The limit: nothing but the model, on batches padded beforehand, at its best batch size."""

    def __init__(
        self, case: Case, sizes: Sequence[int] = SIZES, clock: Clock = time.perf_counter
    ) -> None:
        self.model = case.model
        self._sizes = sizes
        self._clock = clock
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
        for size in self._sizes:
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
        start = self._clock()
        with torch.inference_mode():
            for batch in batches:
                self.model(**batch)
        return self._clock() - start


class _Known(BatchSizer):
    """Batch sizes that were found beforehand."""

    def __init__(self, best: dict[int, int]) -> None:
        super().__init__(max(best.values()))
        self._known = best

    def size(self, length: int, trying: bool = False) -> int:
        nearest = min(self._known, key=lambda key: abs(key - _class(length)))
        return self._known[nearest]


def _class(length: int) -> int:
    return max(length - 1, 0).bit_length()
