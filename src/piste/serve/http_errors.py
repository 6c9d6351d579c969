"""Refusals that are no fault of the input, each with its status."""

from __future__ import annotations

from piste.errors import PisteError

WRONG = "Something went wrong in the server, and its log says what: try another input."
"""All that a visitor learns of what nobody foresaw."""


class BusyError(PisteError):
    """Too many are waiting: 503."""


class MissingError(PisteError):
    """There is no such thing, or no longer: 404."""


class UnreadyError(PisteError):
    """It is not finished, or never will be: 409."""


class TooLargeError(PisteError):
    """More than the server takes: 413."""


class StoppedError(Exception):
    """Raised inside a job whose visitor cancelled it, or whose time is over."""
