"""What all classifiers share: subjects that are asked by the engine, and checks of inputs."""

from __future__ import annotations

from collections.abc import Sequence

from piste.engine import Engine
from piste.errors import PisteError, shorten
from piste.subject import Sequence1D, Subject
from piste.types import Floats


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
            f"A text or a pair (text, text) is wanted, but {shorten(input)} of type "
            f"{type(input).__name__} came."
        )
    for text in texts:
        if not isinstance(text, str):
            raise PisteError(
                f"A text is wanted, but {shorten(text)} of type {type(text).__name__} came: "
                "convert it to str first."
            )
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise PisteError(
                f"The text {shorten(text)} holds half characters (surrogates): decode it as UTF-8."
            )
    if not any(text.strip() for text in texts):
        raise PisteError("The text is empty: there is nothing to explain, give at least one word.")
    return texts
