"""Small matrices are solved fastest by one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

# Numbers in the largest matrix; below, waking threads (and fighting torch's over the cores) takes
# several times longer than the arithmetic.
_WORTH_THREADS = 2_000_000


def threads_for(size: int) -> AbstractContextManager[None]:
    """Limit BLAS to one thread while a problem of this size is solved, and restore it."""
    return nullcontext() if size >= _WORTH_THREADS else _single()


class _Limited:
    """The limit holds for the whole process: the first to need it sets it, the last lifts it.

    Only one thread can set it, so whoever solves in several threads sets it around them.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.users = 0
        self.limit: Any = None
        self.controller: ThreadpoolController | None = None

    def enter(self) -> None:
        with self.lock:
            self.users += 1
            if self.users == 1:
                self.controller = self.controller or ThreadpoolController()
                self.limit = self.controller.limit(limits=1, user_api="blas")

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                self.limit.__exit__(None, None, None)


_LIMITED = _Limited()


@contextmanager
def _single() -> Iterator[None]:
    _LIMITED.enter()
    try:
        yield
    finally:
        _LIMITED.leave()
