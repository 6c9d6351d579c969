"""What all classifiers share: subjects that are asked by the engine, and checks of inputs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from piste.engine import Engine
from piste.errors import PisteError, shorten
from piste.subject import Sequence1D, Subject
from piste.types import Floats


@contextmanager
def counting_calibration(classifier: Any) -> Iterator[None]:
    """Count the batches that go through a torch classifier's model meanwhile, and the time."""
    calibration, kind = classifier.calibration, type(classifier.model)
    depth = getattr(classifier, "_calibrating", 0)
    classifier._calibrating = depth + 1
    if depth:  # counted already
        try:
            yield
        finally:
            classifier._calibrating = depth
        return

    def count(module: torch.nn.Module, given: Any) -> None:
        calibration.batches += isinstance(module, kind)

    handle = register_module_forward_pre_hook(count)
    begun = time.perf_counter()
    try:
        yield
    finally:
        handle.remove()
        classifier._calibrating = depth
        calibration.seconds += time.perf_counter() - begun


class EngineSubject(Subject):
    """A subject whose questions go through the engine."""

    def ask(self, sequences: Sequence[Sequence1D]) -> Floats:
        return Engine(self.classifier).ask([(self, sequences)])[0]


def check_text(input: object) -> tuple[str, ...]:
    """The one or two texts of an input, or a clear refusal.

    >>> check_text(("a", "b"))
    ('a', 'b')
    """
    texts = (input,) if isinstance(input, str) else input
    if not isinstance(texts, tuple) or len(texts) not in (1, 2):
        raise PisteError(
            f"Expected a text or a pair of texts, got {shorten(input)} of type "
            f"{type(input).__name__}: convert it to str first."
        )
    for text in texts:
        if not isinstance(text, str):
            raise PisteError(
                f"Expected a text, got {shorten(text)} of type {type(text).__name__}: convert it "
                "to str first."
            )
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise PisteError(
                f"The text {shorten(text)} holds half characters (surrogates): decode it as UTF-8."
            )
    if not any(text.strip() for text in texts):
        raise PisteError("The text is empty: there is nothing to explain, give at least one word.")
    return texts
