"""One at a time, and long work lets short questions in between its batches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from piste.serve.http_errors import BusyError


class Turns:
    """A lock that the long hold for long, but lend to those who need it for a moment.

    >>> turns = Turns(most=8)
    >>> with turns.long():
    ...     turns.lend()  # nobody waits
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._condition = threading.Condition()
        self._taken = False
        self._waiting = 0
        self._served = 0

    @contextmanager
    def long(self) -> Iterator[None]:
        """For as long as it takes, with calls of :meth:`lend` in between."""
        with self._condition:
            self._condition.wait_for(lambda: not self._taken)
            self._taken = True
        try:
            yield
        finally:
            self._give_back()

    @contextmanager
    def short(self) -> Iterator[None]:
        """For a moment; refused if too many wait already."""
        with self._condition:
            if self._waiting >= self._most:
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
            self._give_back(served=1)

    def lend(self) -> None:
        """Let all in who wait now, and go on after them; those who come later wait again."""
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

    def _give_back(self, served: int = 0) -> None:
        with self._condition:
            self._taken = False
            self._served += served
            self._condition.notify_all()
