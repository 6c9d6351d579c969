"""The bundled models: small, trained by a seeded command, ready without a network."""

from __future__ import annotations

from pathlib import Path

from piste.errors import PisteError

PREFIX = "piste:"
_FOLDER = Path(__file__).parent
_MODELS = {
    "piste:reviews": ("reviews", "sentiment of film reviews, BERT-style encoder"),
    "piste:reviews-gpt": ("reviews_gpt", "sentiment of film reviews, GPT-2-style decoder"),
    "piste:fashion": ("fashion", "garments in small grey images, ViT"),
}


def names() -> tuple[str, ...]:
    """Names that ``piste.load`` knows.

    >>> names()
    ('piste:reviews', 'piste:reviews-gpt', 'piste:fashion')
    """
    return tuple(_MODELS)


def describe(name: str) -> str:
    """One line about a bundled model."""
    return _MODELS[name][1]


def card(name: str) -> str:
    """The model card: data, command, measured accuracy."""
    return (folder(name) / "README.md").read_text(encoding="utf-8")


def folder(name: str) -> Path:
    """Where a bundled model lies."""
    if name not in _MODELS:
        raise PisteError(f"No bundled model is called {name!r}: there are {', '.join(_MODELS)}.")
    return _FOLDER / _MODELS[name][0]
