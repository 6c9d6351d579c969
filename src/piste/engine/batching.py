"""Which questions go through the model together, and the memory that is free again after it."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from weakref import WeakKeyDictionary

import numpy as np

from piste.classifier import Classifier
from piste.subject import Question

SMALLEST = 256
_FIRST = 2048
_TRIALS = 2
_AS_GOOD = 0.97
_CALL = 128  # what one more call of a model costs, in tokens
# Trying sizes pays only in front of this many tokens; with fewer, every run uses the same batches
# and gives the same answers to the last bit.
_WORTH_TRYING = 2**16


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
