"""Small matrices are solved fastest by one thread."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController

# Numbers in the largest matrix; below, waking threads (and fighting torch's over the cores) takes
# several times longer than the arithmetic.
_WORTH_THREADS = 2_000_000


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def threads_for(size: int) -> AbstractContextManager[object]:
    """Limit BLAS to one thread while a problem of this size is solved, and restore it."""
    if size >= _WORTH_THREADS:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")
