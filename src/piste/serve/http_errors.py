"""Refusals that are no fault of the input, each with its status."""

from __future__ import annotations

from piste.errors import PisteError

INTERNAL_ERROR = "Something went wrong in the server, and its log says what: try another input."
"""All that a client is told of an unexpected error."""


class BusyError(PisteError):
    """Too many are waiting: 503."""


class MissingError(PisteError):
    """There is no such thing, or no longer: 404."""


class NotReadyError(PisteError):
    """It is not finished, or never will be: 409."""


class TooLargeError(PisteError):
    """More than the server takes: 413."""


class StoppedError(Exception):
    """Raised inside a job that its client cancelled, or whose time is over."""
