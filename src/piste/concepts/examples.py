"""Sets of examples: given, read from files and folders, or shipped with the package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeAlias

from piste.classifier import Classifier
from piste.concepts import drawn_images
from piste.data.examples import read_data
from piste.data.tables import is_table
from piste.errors import PisteError, shorten
from piste.image import ImageInput
from piste.subject import LongChoice, Subject

Reads: TypeAlias = Literal["texts", "images"]
Source: TypeAlias = "str | Path | Sequence[Any]"
"""A shipped name, a file of texts, a folder of images, or the examples themselves."""

LEAST = 10
"""Fewer examples than this can't be fitted to and held out."""
IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")
CONTROLS: Mapping[Reads, str] = {"texts": "everyday", "images": drawn_images.CONTROL}
"""Shipped sets that a single concept is told from."""


def shipped(reads: Reads) -> tuple[str, ...]:
    """The names of the concepts that come with the package.

    >>> "praise" in shipped("texts"), "striped" in shipped("images")
    (True, True)
    """
    if reads == "images":
        return tuple(drawn_images.NAMES)
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
            return (
                sentences(name)
                if reads == "texts"
                else list(drawn_images.draw(name, size(), seed=seed))
            )
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
