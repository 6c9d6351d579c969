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
_REVIEWS = (
    "A slow start, but a wonderful ending.",
    "I expected another dull sequel. Instead it's a clever, warm and beautifully acted little "
    "film, and the last half hour is simply perfect. The music isn't great, though.",
    "Not bad, not bad at all: the plot is thin, but I was never bored.",
)
_EXAMPLES = {
    "piste:reviews": _REVIEWS,
    "piste:reviews-gpt": (
        "Boring plot, boring music, boring actors, boring jokes. Only the dog is excellent.",
        "The cast is good and the photography is superb, but none of it can save this mess.",
        "Nobody who loves the genre will be disappointed, but it is not as good as the first one.",
    ),
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


def examples(name: str) -> tuple[str, ...]:
    """Texts to try a bundled model with; of one that sees images, see :mod:`piste.zoo.clothes`.

    >>> examples("piste:reviews")[0], examples("piste:fashion")
    ('A slow start, but a wonderful ending.', ())
    """
    return _EXAMPLES.get(name, ())


def card(name: str) -> str:
    """The model card: data, command, measured accuracy."""
    return (folder(name) / "README.md").read_text(encoding="utf-8")


def folder(name: str) -> Path:
    """Where a bundled model lies."""
    if name not in _MODELS:
        raise PisteError(f"No bundled model is called {name!r}: there are {', '.join(_MODELS)}.")
    return _FOLDER / _MODELS[name][0]
