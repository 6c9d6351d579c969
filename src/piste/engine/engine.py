"""Pools the questions of many subjects, asks each once, in batches that run at full speed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch

from piste.classifier import Classifier
from piste.engine.batching import batch_sizer, batches, release_memory
from piste.engine.cache import AnswerCache
from piste.engine.progress import Progress
from piste.errors import PisteError, is_out_of_memory, shorten
from piste.subject import Parts, Question, Sequence1D, Subject
from piste.types import Floats

Job: TypeAlias = tuple[Subject, Sequence[Sequence1D]]
Key: TypeAlias = bytes | str
Row: TypeAlias = Floats

CacheOption: TypeAlias = str | Path | AnswerCache | None
"""A folder, an open cache, or none."""

# Longer questions than this hardly ever come up in two different inputs.
_RECURS = 16
# Answers are handed to the persistent cache at least this often, so that a kill costs little.
_SAVE_EVERY = 2.0


def opened(cache: CacheOption) -> AbstractContextManager[AnswerCache | None]:
    """A cache of the user's stays open; one that is made here is closed again."""
    if cache is None or isinstance(cache, AnswerCache):
        return nullcontext(cache)
    if not isinstance(cache, (str, Path)):
        raise PisteError(
            f"cache: expected a folder, got {shorten(cache)} of type {type(cache).__name__}."
        )
    return AnswerCache(cache)


class Engine:
    """Answers sequences of any number of subjects of one classifier.

    An engine remembers what it asked: the same token ids are never sent twice, whichever
    subject or round they come from. With a ``cache`` it also knows what earlier runs asked.
    """

    def __init__(
        self,
        classifier: Classifier,
        progress: Progress | None = None,
        cache: AnswerCache | None = None,
    ) -> None:
        self.classifier = classifier
        self.progress = progress or Progress(False)
        self.asked = 0
        """How many questions went to the model."""
        self._answers: dict[Key, Row] = {}
        self._used: dict[int, dict[Key, int]] = {}
        self._sizer = batch_sizer(classifier)
        self._cache = cache
        if cache is not None:
            classifier.remember(cache.file.parent)
        self._unsaved: dict[Key, Row] = {}
        self._saved = time.perf_counter()

    def calls(self, subject: Subject) -> int:
        """How many distinct questions a subject needed so far, shared ones included."""
        return len(self._used.get(id(subject), ()))

    def spent(self, subject: Subject, *before: Subject) -> tuple[int, float]:
        """Distinct questions of a subject, and their tokens in passes over the whole input.

        ``before`` are other cuts of the same input, whose questions count too.
        """
        whole = sum(question.length for question, _ in subject.encode(subject.whole))
        used: dict[Key, int] = {}
        for one in (*before, subject):
            used |= self._used.get(id(one), {})
        return len(used), sum(used.values()) / max(whole, 1)

    def forget(self, subjects: Sequence[Subject]) -> None:
        """These subjects are done: keep only those answers that other inputs may need too."""
        for subject in subjects:
            for key in self._used.pop(id(subject), ()):
                if len(key) > _RECURS * 4:
                    self._answers.pop(key, None)

    def ask(self, jobs: Sequence[Job]) -> list[Floats]:
        """For every (subject, sequences) the logits, questions × outputs, in order."""
        for subject, _ in jobs:
            self.classifier.calibrate(subject)
        encoded = [subject.encode_all(sequences) for subject, sequences in jobs]
        fresh: dict[Key, Question] = {}
        for (subject, _), sequences in zip(jobs, encoded, strict=True):
            keys = {question.key: question for parts in sequences for question, _ in parts}
            self._used.setdefault(id(subject), {}).update(
                {key: question.length for key, question in keys.items()}
            )
            fresh |= {key: one for key, one in keys.items() if key not in self._answers}
        self._answer(self._not_in_cache(fresh))
        return [self._collect(sequences) for sequences in encoded]

    def _collect(self, sequences: list[Parts]) -> Floats:
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
        if not questions:
            return
        self.progress.plan(len(questions))
        try:
            with self.classifier.session():
                shared = self.classifier.share(questions, self._sizer.size(questions[0].length))
                if shared is not None:
                    for batch, rows in shared:
                        self._take(batch, rows)
                    return
                for size, batch in batches(questions, self._sizer):
                    start = time.perf_counter()
                    if self._answer_batch(batch):
                        tokens = len(batch) * batch[0].length
                        seconds = time.perf_counter() - start
                        self._sizer.learn(batch[0].length, size, tokens, seconds)
                    release_memory(1.0)
        finally:
            self._save()

    def _answer_batch(self, batch: list[Question]) -> bool:
        """Ask one batch, in halves if it does not fit into memory; True if it did at once."""
        try:
            rows = self.classifier.answer(batch)
        except (MemoryError, RuntimeError) as problem:
            if not is_out_of_memory(problem):
                raise
            for half in self._halves(batch):
                self._answer_batch(half)
            return False
        self._take(batch, rows)
        return True

    def _take(self, batch: Sequence[Question], rows: Floats) -> None:
        """Remember answers, if they are numbers and as many as before."""
        _check_finite(rows, batch)
        if len(rows[0]) != len(next(iter(self._answers.values()), rows[0])):
            raise PisteError(
                f"Expected the same number of outputs for every question, got {len(rows[0])} from "
                "the classifier now and another number before."
            )
        self.asked += len(batch)
        self._learn({question.key: row for question, row in zip(batch, rows, strict=True)})
        self.progress.advance(len(batch))

    def _halves(self, batch: list[Question]) -> list[list[Question]]:
        """Two halves of a batch that did not fit; later batches begin with the smaller size."""
        if len(batch) == 1:
            raise PisteError(
                f"One question of {batch[0].length} tokens does not fit into memory: use a "
                "shorter text, sampler='short', or a device with more memory."
            )
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        half = len(batch) // 2
        self._sizer.shrink(min(self._sizer.most, half * batch[0].length))
        return [batch[:half], batch[half:]]

    @cached_property
    def _fingerprint(self) -> str:
        """Read when it is needed: a calibrated function has another one."""
        return _fingerprint(self.classifier)

    # -- the persistent cache ------------------------------------------------------------------

    def _not_in_cache(self, questions: Mapping[Key, Question]) -> list[Question]:
        if self._cache is None or not questions:
            return list(questions.values())
        found = self._cache.read(self._fingerprint, list(questions))
        self._answers |= found
        return [question for key, question in questions.items() if key not in found]

    def _learn(self, answers: dict[Key, Row]) -> None:
        self._answers |= answers
        if self._cache is not None:
            self._unsaved |= answers
            if self.classifier.costly or time.perf_counter() - self._saved > _SAVE_EVERY:
                self._save()

    def _save(self) -> None:
        if self._cache is not None and self._unsaved:
            self._cache.write(self._fingerprint, self._unsaved)
            self._unsaved = {}
        self._saved = time.perf_counter()


def _fingerprint(classifier: Classifier) -> str:
    fingerprint = classifier.fingerprint()
    if fingerprint is None:
        raise PisteError(
            "A cache was given, but a function can't be recognised when it changes: name its "
            "version, piste.load(function, version='1'), and change it when the answers change."
        )
    return fingerprint


def _check_finite(rows: Floats, batch: Sequence[Question]) -> None:
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise PisteError(
            f"The model answered with NaN or infinity for {int(bad.sum())} of {len(batch)} "
            "questions: check its weights and its precision (half precision overflows easily)."
        )
