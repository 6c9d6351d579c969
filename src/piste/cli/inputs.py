"""What a command explains: a text or an image, as an argument, from a file or standard input."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from piste.errors import PisteError, shorten

if TYPE_CHECKING:
    from piste.classifiers import Classifier
    from piste.subject import Input

IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
"""Suffixes by which an argument is known as an image's path."""


@dataclass(frozen=True)
class InputArguments:
    """What the command line gave; exactly one of the first three, checked before any work."""

    text: str | None
    file: Path | None
    image: Path | None
    pair: str | None

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.text, self.file, self.image)) != 1:
            raise PisteError(
                "Give either a text, the path of an image, - for standard input, --file or "
                "--image with a path."
            )
        for path in (self.file, self.image, self._named):
            if path is not None and not _is_file(path):
                raise PisteError(f"There is no file {str(path)!r}.")

    @property
    def _named(self) -> Path | None:
        """The argument as an image's path, if it is one; a sentence may end in .png, too."""
        if self.text is None or Path(self.text).suffix.lower() not in IMAGES:
            return None
        path = Path(self.text).expanduser()
        return path if _is_file(path) or len(self.text.split()) == 1 else None

    def read(self, classifier: Classifier) -> Input:
        """The input in the form the classifier reads, or a refusal that says what it reads."""
        if classifier.reads == "images":
            return self._image(classifier.name)
        image = self.image or self._named
        if image is not None:
            raise PisteError(
                f"Expected a text for {classifier.name!r}, got the image {str(image)!r}: give "
                "--model a model that reads images."
            )
        text = _text(self.text, self.file)
        return text if self.pair is None else (text, self.pair)

    def _image(self, name: str) -> Input:
        from piste.image import ImageInput

        if self.pair is not None:
            raise PisteError(f"{name!r} reads images one by one: leave --pair out.")
        if self.text == "-":
            return ImageInput.of(sys.stdin.buffer.read())
        path = self.image or self.file or Path(self.text or "").expanduser()
        if not _is_file(path):
            raise PisteError(
                f"Expected an image for {name!r}, got {shorten(self.text)}, which is no file: give "
                "the path of an image, or --model a model that reads texts."
            )
        return ImageInput.of(path)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a long text is no name of a file
        return False


def _text(text: str | None, file: Path | None) -> str:
    """The text from the argument, standard input or a file."""
    try:
        if file is not None:
            content = file.read_bytes()
        elif text == "-":
            content = sys.stdin.buffer.read()
        else:
            return text or ""
        return content.decode("utf-8").strip("\ufeff\r\n")
    except UnicodeDecodeError as problem:
        source = repr(str(file)) if file else "standard input"
        raise PisteError(
            f"{source} is not UTF-8 text (byte {problem.start}): convert it first, for example "
            "with `iconv -f latin1 -t utf-8`."
        ) from problem
    except OSError as problem:
        raise PisteError(f"{str(file)!r} could not be read: {problem.strerror}.") from problem
