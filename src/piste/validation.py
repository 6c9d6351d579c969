"""Checks of options, each refused in one sentence."""

from __future__ import annotations

import numpy as np

from piste.errors import PisteError


def choose(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse an option that is none of the choices."""
    if value not in choices:
        raise PisteError(f"{name}: expected one of {', '.join(choices)}, got {value!r}.")


def check_count(name: str, value: object, least: int = 1) -> None:
    """Refuse what is not a whole number, or too small a one."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise PisteError(f"{name}: expected a whole number of at least {least}, got {value!r}.")
