"""Pools the questions of many subjects, asks each once, in batches that run at full speed."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, cached_property
from pathlib import Path
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import torch

from piste.classifier import Classifier
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

SMALLEST = 256
_FIRST = 2048
_TRIALS = 2
_AS_GOOD = 0.97
_CALL = 128  # what one more call of a model costs, in tokens
# Trying sizes pays only in front of this many tokens; with fewer, every run uses the same batches
# and gives the same answers to the last bit.
_WORTH_TRYING = 2**16


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


# -- batches, and the memory that is free again after them ---------------------------------------


class BatchSizer:
    """How many tokens a batch should hold, found on the questions themselves.

    Too small a batch leaves the processor idle between layers, too large a one falls out of its
    caches; where the best lies depends on model, machine and length. So the first batches of each
    length class are of different sizes (half and double of the best so far), and the quickest per
    token is kept. Nothing is asked only to be measured, and small pieces of work try nothing.

    >>> pace = BatchSizer(most=8192)
    >>> for seconds, size in ((1.0, 2048), (0.9, 4096), (1.2, 8192), (1.1, 1024)):
    ...     for _ in range(2):
    ...         pace.learn(50, size, tokens=size, seconds=seconds * size)
    >>> pace.size(50)
    4096
    """

    def __init__(self, most: int, calibrate: bool = True) -> None:
        self.most = most
        self._calibrate = calibrate
        self._costs: dict[int, dict[int, list[float]]] = {}

    def size(self, length: int, calibrates: bool = False) -> int:
        """The size to use next for questions of this length: the best known, or one to try."""
        if not self._calibrate:
            return self.most
        costs = self._costs.get(_class(length), {})
        best = self._best(length)
        if not calibrates:
            return best
        for candidate in (best, best * 2, best // 2):
            if self._allowed(candidate) and len(costs.get(candidate, ())) < _TRIALS:
                return candidate
        return best

    def _best(self, length: int) -> int:
        own = _class(length)
        for known in sorted(self._costs, key=lambda other: abs(other - own)):
            tried = {
                size: min(times)
                for size, times in self._costs[known].items()
                if len(times) >= _TRIALS and size <= self.most
            }
            if tried:  # what is best for a similar length is a good beginning
                quickest = min(tried.values())
                # The smallest that is as good as the quickest: it needs less memory.
                return min(size for size, cost in tried.items() if cost * _AS_GOOD <= quickest)
        return min(_FIRST, self.most)

    def _allowed(self, size: int) -> bool:
        return min(SMALLEST, self.most) <= size <= self.most

    def learn(self, length: int, size: int, tokens: int, seconds: float) -> None:
        """A batch planned for ``size`` held so many tokens and took so long."""
        times = self._costs.get(_class(length), {}).get(size, ())
        # A last, small batch says nothing about its size.
        if tokens > size // 2 and len(times) < _TRIALS:
            self._costs.setdefault(_class(length), {}).setdefault(size, []).append(seconds / tokens)

    def shrink(self, most: int) -> None:
        """Never again more than this: it did not fit into memory."""
        self.most = max(most, 1)


def _class(length: int) -> int:
    """Lengths within a factor of two cost about the same per token."""
    return max(length - 1, 0).bit_length()


_SIZERS: WeakKeyDictionary[Classifier, BatchSizer] = WeakKeyDictionary()


def batch_sizer(classifier: Classifier) -> BatchSizer:
    """What is known about a classifier's best batch sizes: learned once, kept as long as it."""
    sizer = _SIZERS.get(classifier)
    if sizer is None:
        sizer = _SIZERS[classifier] = BatchSizer(classifier.budget, classifier.paced)
    return sizer


def fix_batch_sizer(classifier: Classifier) -> None:
    """From now on the same questions make the same batches, whatever the clock says.

    Sums of other batches are rounded otherwise, so this is what makes a run that was stopped and
    taken up again equal to one that was not, to the last bit.
    """
    _SIZERS[classifier] = BatchSizer(min(classifier.budget, _FIRST), calibrate=False)


def longest_first(questions: Sequence[Question]) -> list[Question]:
    """Sorting keeps padding small, and the longest find out at once whether memory suffices."""
    lengths = np.array([question.length for question in questions])
    return [questions[number] for number in np.argsort(-lengths, kind="stable")]


def batches(
    questions: Sequence[Question], sizer: BatchSizer
) -> Iterator[tuple[int, list[Question]]]:
    """Batches of at most so many tokens as padded (rows × longest row), with that number.

    Made one after the other, so that what was learned from one counts for the next.

    >>> lengths = [Question(str(n), n, None) for n in (3, 9, 2, 8)]
    >>> sizer = BatchSizer(20, calibrate=False)
    >>> [[q.length for q in batch] for _, batch in batches(lengths, sizer)]
    [[9, 8], [3, 2]]
    """
    ordered = longest_first(questions)
    lengths = np.array([question.length for question in ordered])
    calibrates = sum(question.length for question in questions) >= _WORTH_TRYING
    start = 0
    while start < len(ordered):
        length = max(ordered[start].length, 1)
        size = sizer.size(length, calibrates)
        end = start + max(size // length, 1)
        # A batch also ends when its padding costs more than another call would.
        padding = np.cumsum(length - lengths[start:end])
        end = min(end, start + max(int(np.searchsorted(padding, _CALL, side="right")), 1))
        yield size, ordered[start:end]
        start = end


@cache
def _trim() -> Callable[[int], int] | None:
    """GNU libc's own way; other systems have none, or need none."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ctypes.CDLL("libc.so.6").malloc_trim
    except (OSError, AttributeError):
        return None


_last = time.monotonic()


def release_memory(every: float = 5.0) -> None:
    """Hand freed memory back, if some seconds have passed since the last time.

    Passes of many sizes leave the allocator with gaps that fit nothing later: without this,
    explaining text after text grows, with backward passes by dozens of megabytes each. What is
    given back must be fetched again, so it is done now and then only; after backward passes, which
    want the same memory at once, less often.
    """
    global _last
    trim = _trim()
    if trim is not None and time.monotonic() - _last > every:
        trim(0)
        _last = time.monotonic()
