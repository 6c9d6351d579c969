"""Sets of examples: given, read from files and folders, shipped with the package, or drawn.

Colours and textures are drawn on demand. Every image differs in what is not its concept: shade,
place, angle, scale, and for textures the two colours, so that a vector can only learn what they
share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib.colors import hsv_to_rgb

from piste.classifier import Classifier
from piste.concepts.shipped_concepts import CONTROL, HUES, Reads, sentences, shipped
from piste.data.examples import read_data
from piste.data.tables import is_table
from piste.errors import PisteError, shorten
from piste.image import ImageInput
from piste.subject import LongChoice, Subject
from piste.types import Floats

_COUNT = 60
_NOISE = 0.02
_SEEN = 5
"""Pixels a repetition must have to be seen."""


def draw(
    name: str, size: tuple[int, int], *, count: int = _COUNT, seed: int = 0
) -> list[ImageInput]:
    """Images of a concept, ``size`` (width, height) in pixels; the same seed draws the same.

    >>> stripes = draw("striped", (32, 24), count=2)
    >>> stripes[0].pixels.shape, stripes[0] == draw("striped", (32, 24), count=1)[0]
    ((24, 32, 3), True)
    """
    if name not in NAMES:
        raise PisteError(f"There is no image concept {name!r}: there are {', '.join(NAMES)}.")
    found = []
    for number in range(count):
        rng = np.random.default_rng([seed, list(NAMES).index(name), number])
        shown = NAMES[name](_coordinates(size, rng), rng)
        shown = np.clip(shown + rng.normal(0, _NOISE, shown.shape), 0, 1)
        pixels = np.round(255 * shown).astype(np.uint8)
        found.append(ImageInput(pixels, f"{name} {number}"))
    return found


def _coordinates(size: tuple[int, int], rng: np.random.Generator) -> Floats:
    """Turned coordinates of every pixel, 2 × height × width; the longer side has the length 1."""
    width, height = size
    y, x = np.mgrid[:height, :width] / max(size)
    angle = rng.uniform(0, 2 * np.pi)
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.stack([cosine * x + sine * y, cosine * y - sine * x])


def _coloured(hue: float) -> Callable[[Floats, np.random.Generator], Floats]:
    def paint(places: Floats, rng: np.random.Generator) -> Floats:
        """One hue, a little lighter on one side than on the other."""
        shade = rng.uniform(0.6, 0.95) + rng.uniform(-0.2, 0.2) * (places[0] - places[0].mean())
        hues = np.full(shade.shape, (hue + rng.normal(0, 0.015)) % 1)
        fullness = np.full(shade.shape, rng.uniform(0.75, 1.0))
        return hsv_to_rgb(np.stack([hues, fullness, np.clip(shade, 0, 1)], axis=-1))

    return paint


def _textured(shape: Callable[[Floats, Floats], Floats]) -> Callable[..., Floats]:
    def paint(places: Floats, rng: np.random.Generator) -> Floats:
        """A pattern of two colours that differ in lightness; 4 to 14 repetitions across."""
        most = min(14.0, max(places.shape[1:]) / _SEEN)
        phases = rng.uniform(0, 1, (2, 1, 1))
        across, down = rng.uniform(min(4.0, most / 2), most) * places + phases
        return _mixed(shape(across, down), rng)

    return paint


def _mixed(heights: Floats, rng: np.random.Generator) -> Floats:
    """Two colours, with a narrow seam where the pattern's height changes its sign."""
    dark, light = rng.uniform(0, 0.45, 3), rng.uniform(0.55, 1, 3)
    share = 0.5 + 0.5 * np.tanh(6 * heights)
    share = share if rng.random() < 0.5 else 1 - share
    return share[..., None] * light + (1 - share[..., None]) * dark


def _striped(across: Floats, down: Floats) -> Floats:
    return np.sin(2 * np.pi * across)


def _dotted(across: Floats, down: Floats) -> Floats:
    """Discs in a square grid."""
    from_centre = np.hypot(across % 1 - 0.5, down % 1 - 0.5)
    return 3 * (0.3 - from_centre)


def _chequered(across: Floats, down: Floats) -> Floats:
    return 2 * np.sin(np.pi * across) * np.sin(np.pi * down)


def _zigzag(across: Floats, down: Floats) -> Floats:
    """Stripes that turn back and forth."""
    turned = across + np.abs(down % 1 - 0.5) * 1.6
    return np.sin(2 * np.pi * turned)


def _blotched(places: Floats, rng: np.random.Generator) -> Floats:
    """A few waves of long, unrelated lengths in every channel."""
    channels = []
    for _ in range(3):
        waves = np.zeros(places.shape[1:])
        for _ in range(6):
            angle, phase = rng.uniform(0, 2 * np.pi, 2)
            along = np.cos(angle) * places[0] + np.sin(angle) * places[1]
            waves += rng.normal() * np.sin(2 * np.pi * rng.uniform(0.5, 3) * along + phase)
        channels.append(rng.uniform(0.25, 0.75) + 0.12 * waves)
    return np.clip(np.stack(channels, axis=-1), 0, 1)


NAMES: Mapping[str, Callable[[Floats, np.random.Generator], Floats]] = {
    **{name: _coloured(hue) for name, hue in HUES.items()},
    "striped": _textured(_striped),
    "dotted": _textured(_dotted),
    "chequered": _textured(_chequered),
    "zigzag": _textured(_zigzag),
    CONTROL: _blotched,
}


Source: TypeAlias = "str | Path | Sequence[Any]"
"""A shipped name, a file of texts, a folder of images, or the examples themselves."""

LEAST = 10
"""Fewer examples than this can't be fitted to and held out."""
IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")
CONTROLS: Mapping[Reads, str] = {"texts": "everyday", "images": CONTROL}
"""Shipped sets that a single concept is told from."""


def examples_of(
    source: Source, reads: Reads, size: Callable[[], tuple[int, int]], *, seed: int = 0
) -> list[Any]:
    """The examples a source stands for; ``size`` tells how large images should be drawn."""
    if isinstance(source, (str, Path)):
        path = Path(source).expanduser()
        if path.exists():
            return from_disk(path, reads)
        if source in shipped(reads):
            name = str(source)
            return sentences(name) if reads == "texts" else list(draw(name, size(), seed=seed))
        kind = "a file of texts" if reads == "texts" else "a folder of images"
        raise PisteError(
            f"Expected {kind} or one of the shipped concepts {', '.join(shipped(reads))}, got "
            f"{str(source)!r}."
        )
    if not isinstance(source, Iterable) or isinstance(source, Mapping):
        raise PisteError(
            f"Expected a list of examples, a file, a folder or a shipped name, got "
            f"{shorten(source)} of type {type(source).__name__}."
        )
    return list(source)


def from_disk(path: Path, reads: Reads) -> list[Any]:
    """The texts of a file or of a folder of tables, or the paths of the images in a folder."""
    if reads == "images":
        return _images_in(path)
    if is_table(path):
        return [example.input for example in read_data(path, shuffle=False)]
    try:
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as problem:
        raise PisteError(
            f"{str(path)!r} is not UTF-8 text (byte {problem.start}): convert it first, for "
            "example with `iconv -f latin1 -t utf-8`."
        ) from problem
    except OSError as problem:
        raise PisteError(f"{str(path)!r} could not be read: {problem.strerror}.") from problem
    return [line.strip() for line in lines if line.strip()]


def _images_in(path: Path) -> list[Any]:
    """Images are opened one by one later: here are their paths."""
    if not path.is_dir():
        raise PisteError(
            f"{str(path)!r} is a file, and the model reads images: give a folder of them."
        )
    found = sorted(file for file in path.rglob("*") if file.suffix.lower() in IMAGES)
    if not found:
        raise PisteError(
            f"The folder {str(path)!r} holds no images: {', '.join(IMAGES)} are looked for."
        )
    return found


def bind(
    classifier: Classifier,
    title: str,
    inputs: Sequence[Any],
    long: LongChoice,
    cut: Counter[str] | None = None,
) -> Iterator[Subject]:
    """A subject for every example, made when its turn comes; a refusal says which it was.

    ``cut`` counts texts that were too long.
    """
    for number, given in enumerate(inputs):
        try:
            subject = classifier.subject(given, long=long)
        except PisteError as problem:
            named = f" ({given.name})" if isinstance(given, ImageInput) else ""
            raise PisteError(f"{title}, example {number}{named}: {problem}") from problem
        if not subject.fits:
            raise PisteError(
                f"{title}, example {number}: the text is longer than the model reads: choose "
                "long='truncate', which cuts it."
            )
        if cut is not None and subject.notes.get("long") == "truncate":
            cut[title] += 1
        yield subject


def distinct(inputs: Sequence[Any]) -> list[Any]:
    """Without repetitions: one of two equal examples might be fitted to, the other held out.

    >>> distinct(["a film", "two films", "a film"])
    ['a film', 'two films']
    """
    first: dict[Any, Any] = {}
    for one in inputs:
        first.setdefault(one if isinstance(one, (str, tuple, Path, ImageInput)) else id(one), one)
    return list(first.values())


def check_count(name: str, inputs: Sequence[Any], least: int = LEAST) -> None:
    """Refuse sets that are too small to say anything."""
    if len(inputs) < least:
        raise PisteError(f"{name}: expected at least {least} examples, got {len(inputs)}.")
