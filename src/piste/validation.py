"""Checks of options, each refused in one sentence."""

from __future__ import annotations

from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

from piste.errors import PisteError, shorten

MOST_CHARACTERS = 1_000_000
"""Of one text: a long novel. More is a file that was meant for something else."""
MOST_UNITS = 100_000
"""Of one input: what is solved for grows with them."""


def choose(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse an option that is none of the choices."""
    if not isinstance(value, str) or value not in choices:  # arrays have no truth value
        raise PisteError(f"{name}: expected one of {', '.join(choices)}, got {value!r}.")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Refuse what is not a whole number, or too small a one."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise PisteError(f"{name}: expected a whole number of at least {least}, got {value!r}.")


def check_size(what: str, size: int, most: int, counted: str, advice: str) -> None:
    """Refuse what is too large, before anything is done with it.

    >>> check_size("The text", 30, 20, "characters", "give a shorter one")
    Traceback (most recent call last):
        ...
    piste.errors.PisteError: The text has 30 characters, at most 20 are read: give a shorter one.
    """
    if size > most:
        raise PisteError(f"{what} has {size:,} {counted}, at most {most:,} are read: {advice}.")


def as_path(name: str, value: object) -> Path:
    """The path that was given, or a refusal.

    >>> as_path("path", 5)
    Traceback (most recent call last):
        ...
    piste.errors.PisteError: path: expected the path of a file or folder, got 5.
    """
    if not isinstance(value, (str, PathLike)):
        raise PisteError(f"{name}: expected the path of a file or folder, got {shorten(value)}.")
    return Path(value)


def check_seed(seed: object) -> None:
    """Refuse what is no seed."""
    check_count("seed", seed, least=0)
