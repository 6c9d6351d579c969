"""The one exception users see: what was expected, what was given, what to do."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import PackageNotFoundError, requires
from types import ModuleType


class PisteError(ValueError):
    """A problem the user can solve, described in one sentence."""


class ServiceError(PisteError):
    """A server does not answer, or a cap on its use is reached: the work stops as a whole.

    Nothing is wrong with the input at hand, so it is not set aside as one that can't be explained.
    """


def need(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional library or say plainly which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise PisteError(
            f"{purpose} needs the library {module!r}, which is not installed: run "
            f"`{install_command(extra)}`."
        ) from missing


def install_command(extra: str) -> str:
    """The command that installs what an extra stands for.

    It names the libraries and not the extra, so that it works for a checkout as well.
    """
    try:
        lines = requires("piste") or []
    except PackageNotFoundError:
        lines = []
    found = [
        line.partition(";")[0].strip()
        for line in lines
        if re.search(rf"""extra == ['"]{re.escape(extra)}['"]""", line)
    ]
    names = [name for name in found if not name.startswith("piste[")] or [f"piste[{extra}]"]
    return " ".join(["pip install", *(f'"{name}"' for name in names)])


READING_ERRORS = (
    OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError,
    AssertionError, MemoryError,
)  # fmt: skip
"""What reading a file may raise that was made by others: it may hold anything."""


def one_line(problem: BaseException, limit: int = 200) -> str:
    """What an error of another library says, on one line, never endless."""
    text = " ".join(str(problem).split()) or type(problem).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shorten(thing: object, limit: int = 60) -> str:
    """A value as it may stand in an error sentence: on one line, never endless."""
    text = " ".join(repr(thing).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def is_out_of_memory(problem: Exception) -> bool:
    """Whether an error says that memory is full, on the processor or on a card.

    >>> is_out_of_memory(RuntimeError("CUDA out of memory")), is_out_of_memory(ValueError("no"))
    (True, False)
    """
    words = str(problem).lower()
    full = "out of memory" in words or "can't allocate memory" in words
    return isinstance(problem, MemoryError) or (isinstance(problem, RuntimeError) and full)
