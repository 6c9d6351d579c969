"""Checks of options, each refused in one sentence."""

from __future__ import annotations

import numpy as np

from piste.errors import PisteError


def choose(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse an option that is none of the choices."""
    if value not in choices:
        raise PisteError(f"{name}={value!r} is unknown: choose {', '.join(choices)}.")


def check_count(name: str, value: object, least: int = 1) -> None:
    """Refuse what is not a whole number, or too small a one."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise PisteError(f"{name}={value!r} is wrong: a whole number from {least} on is wanted.")
