"""Memory that was freed goes back to the system."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from functools import cache


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
