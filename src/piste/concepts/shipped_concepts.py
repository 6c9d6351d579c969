"""The concepts that come with the package: sentences, and images that are drawn on demand."""

from __future__ import annotations

from importlib import resources
from typing import Literal, TypeAlias

from piste.errors import PisteError

Reads: TypeAlias = Literal["texts", "images"]
HUES = {"red": 0.0, "yellow": 0.15, "green": 0.34, "blue": 0.62}
TEXTURES = ("striped", "dotted", "chequered", "zigzag")
CONTROL = "blotched"
"""Images of soft blotches in any colours: what a single concept is told from."""


def shipped(reads: Reads) -> tuple[str, ...]:
    """The names of the concepts that come with the package.

    >>> "praise" in shipped("texts"), "striped" in shipped("images")
    (True, True)
    """
    if reads == "images":
        return (*HUES, *TEXTURES, CONTROL)
    files = (resources.files(__package__) / "words").iterdir()
    return tuple(sorted(file.name.removesuffix(".txt") for file in files))


def sentences(name: str) -> list[str]:
    """The sentences of a shipped concept.

    >>> sentences("music")[1]
    'A piano is heard in the next room.'
    """
    if name not in shipped("texts"):
        raise PisteError(
            f"There is no text concept {name!r}: there are {', '.join(shipped('texts'))}."
        )
    file = resources.files(__package__) / "words" / f"{name}.txt"
    return file.read_text(encoding="utf-8").splitlines()
