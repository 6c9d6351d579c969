"""Limits on what one client may ask for, so that others are served too, and refusals by status."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Limits:
    """Bounds on inputs, on time and on what is kept."""

    characters: int = 20_000
    """Of one text, or of all fields of a prompt."""
    answer_characters: int = 2_000
    """Of an answer to explain."""
    image_bytes: int = 8_000_000
    """Of one image file."""
    image_pixels: int = 25_000_000
    """Of one image, decoded."""
    units: int = 1_500
    """Words, tokens or parts of one input."""
    samples: int = 5_000
    """Questions one method may ask."""
    methods: int = 8
    """Methods side by side."""
    seconds: float = 120.0
    """Of one explanation, from its start to its end."""
    waiting: int = 40
    """Explanations in the queue; one more is told to come back later."""
    questions: int = 20
    """Removals that wait for the model; each holds one of the 40 threads that answer requests, and
    some must be left for everybody else."""
    spans: int = 8
    """Spans of answers that wait to be explained, one at a time."""
    exports: int = 8
    """Files that wait to be made, one at a time: figures take seconds, and much memory."""
    kept: int = 200
    """Finished explanations in memory; the oldest are forgotten."""
    checks: int = 300
    """Removals that are remembered with one explanation."""
    body_seconds: float = 20.0
    """For a request to arrive."""
    arriving: int = 150_000_000
    """Bytes of all requests that are being read."""

    @property
    def body(self) -> int:
        """Bytes of one request: an image in base64, or texts in signs of up to six bytes."""
        texts = 2 * 6 * (self.characters + self.answer_characters)
        return max(self.image_bytes * 4 // 3, texts) + 20_000

    @property
    def too_large(self) -> str:
        """What is said of a larger request."""
        return f"A request may have {self.body:,} bytes: shorten the text or the image."
