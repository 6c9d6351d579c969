"""Pools the questions of many subjects, asks each once, in batches that fit the memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from piste.classifiers.base import Classifier
from piste.engine.batching import batches
from piste.engine.progress import Progress
from piste.errors import PisteError
from piste.subject import Question, Sequence1D, Subject

Job = tuple[Subject, Sequence[Sequence1D]]


class Engine:
    """Answers sequences of any number of subjects of one classifier.

    An engine remembers what it asked: the same token ids are never sent twice, whichever
    subject or round they come from.
    """

    def __init__(self, classifier: Classifier, progress: Progress | None = None) -> None:
        self.classifier = classifier
        self.progress = progress or Progress(False)
        self._answers: dict[bytes | str, NDArray[np.float64]] = {}
        self._budget = classifier.budget
        self._used: dict[int, set[bytes | str]] = {}

    def calls(self, subject: Subject) -> int:
        """How many distinct questions a subject needed so far, shared ones included."""
        return len(self._used.get(id(subject), ()))

    def ask(self, jobs: Sequence[Job]) -> list[NDArray[np.float64]]:
        """For every (subject, sequences) the logits, questions × outputs, in order."""
        encoded = [[subject.encode(one) for one in sequences] for subject, sequences in jobs]
        fresh: dict[bytes | str, Question] = {}
        for (subject, _), sequences in zip(jobs, encoded, strict=True):
            used = self._used.setdefault(id(subject), set())
            for question in (question for parts in sequences for question, _ in parts):
                used.add(question.key)
                if question.key not in self._answers:
                    fresh[question.key] = question
        self._answer(list(fresh.values()))
        return [self._collect(sequences) for sequences in encoded]

    def _collect(self, sequences: list[list[tuple[Question, float]]]) -> NDArray[np.float64]:
        rows = []
        for parts in sequences:
            if len(parts) == 1:
                rows.append(self._answers[parts[0][0].key])
            else:
                rows.append(np.sum([weight * self._answers[q.key] for q, weight in parts], axis=0))
        if not rows:
            return np.empty((0, max(len(self.classifier.labels), 1)))
        return np.array(rows, dtype=np.float64)

    def _answer(self, questions: Sequence[Question]) -> None:
        self.progress.plan(len(questions))
        waiting = batches(questions, self._budget)[::-1]
        with self.classifier.session():
            while waiting:
                batch = waiting.pop()
                try:
                    rows = self.classifier.answer(batch)
                except (MemoryError, RuntimeError) as problem:
                    if not _is_out_of_memory(problem):
                        raise
                    waiting += self._smaller(batch)
                    continue
                _check_finite(rows, batch)
                if len(rows[0]) != len(next(iter(self._answers.values()), rows[0])):
                    raise PisteError(
                        f"The classifier gave {len(rows[0])} outputs now and another number "
                        "before: one row per question with always the same columns is wanted."
                    )
                for question, row in zip(batch, rows, strict=True):
                    self._answers[question.key] = row
                self.progress.advance(len(batch))

    def _smaller(self, batch: list[Question]) -> list[list[Question]]:
        """Two halves of a batch that did not fit; later rounds begin with the smaller budget."""
        if len(batch) == 1:
            raise PisteError(
                f"One question of {batch[0].length} tokens does not fit into memory: use a "
                "shorter text, sampler='short', or a device with more memory."
            )
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        half = len(batch) // 2
        self._budget = min(self._budget, max(half * batch[0].length, 1))
        return [batch[half:], batch[:half]]


def _is_out_of_memory(problem: Exception) -> bool:
    words = str(problem).lower()
    return (
        isinstance(problem, (MemoryError, torch.OutOfMemoryError))
        or "out of memory" in words
        or "can't allocate memory" in words
    )


def _check_finite(rows: NDArray[np.float64], batch: Sequence[Question]) -> None:
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise PisteError(
            f"The model answered with NaN or infinity for {int(bad.sum())} of {len(batch)} "
            "questions: check its weights and its precision (half precision overflows easily)."
        )
