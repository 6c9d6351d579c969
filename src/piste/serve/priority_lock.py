"""A lock for one at a time: background work lets short requests in between its batches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from piste.serve.request_limits import BusyError


class PriorityLock:
    """A lock that background work holds for long, and yields to foreground requests.

    >>> lock = PriorityLock(max_waiting=8)
    >>> with lock.background():
    ...     lock.yield_lock()  # nobody waits
    """

    def __init__(self, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._condition = threading.Condition()
        self._taken = False
        self._waiting = 0
        self._served = 0

    @contextmanager
    def background(self) -> Iterator[None]:
        """For as long as it takes, with calls of :meth:`yield_lock` in between."""
        with self._condition:
            self._condition.wait_for(lambda: not self._taken)
            self._taken = True
        try:
            yield
        finally:
            self._release()

    @contextmanager
    def foreground(self) -> Iterator[None]:
        """For a moment; refused if too many wait already."""
        with self._condition:
            if self._waiting >= self._max_waiting:
                raise BusyError(
                    f"{self._waiting} others are waiting for the same: try again in a moment."
                )
            self._waiting += 1
            try:
                self._condition.wait_for(lambda: not self._taken)
            finally:
                self._waiting -= 1
            self._taken = True
        try:
            yield
        finally:
            self._release(served=1)

    def yield_lock(self) -> None:
        """Let in all who wait now, and go on after them; those who come later wait again."""
        with self._condition:
            if not self._waiting:
                return
            after = self._served + self._waiting
            self._taken = False
            self._condition.notify_all()
            self._condition.wait_for(
                lambda: not self._taken and (self._served >= after or not self._waiting)
            )
            self._taken = True

    def _release(self, served: int = 0) -> None:
        with self._condition:
            self._taken = False
            self._served += served
            self._condition.notify_all()
