"""What people marked as the reason for a label: as data files hold it, in images, and on units."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from piste.errors import PisteError, shorten
from piste.explanation import Explanation
from piste.image import ImageInput
from piste.subject import Subject, Unit
from piste.types import Flags

Span: TypeAlias = tuple[int, int]
Cut: TypeAlias = Subject | Explanation | Sequence[Unit]
"""Anything that is cut into units."""


def rationale_units(
    subject: Cut,
    words: str | Sequence[str] | Sequence[Span] | None,
    marks: Sequence[int] | None = None,
) -> Flags:
    """Which units people marked: a unit is if it shares a character with a marked word.

    ``words`` are the words people saw, in the order of the text, and ``marks`` a 0 or 1 for each;
    None stands for the text cut at its white space. Or ``words`` are character spans
    (start, end), all of them marked unless ``marks`` says otherwise. Words of a pair of texts
    are those of the first and then those of the second.

    >>> import piste
    >>> subject = piste.load(lambda texts: [len(t) for t in texts]).subject("Not bad, really.")
    >>> [unit.text for unit in subject.units]
    ['Not', 'bad', ',', 'really', '.']
    >>> rationale_units(subject, ["Not", "bad,", "really."], [1, 1, 0]).tolist()
    [True, True, True, False, False]
    >>> rationale_units(subject, [(4, 7)]).tolist()
    [False, True, False, False, False]
    """
    units, texts = _units_and_texts(subject)
    text = "\n".join(texts)
    offsets = np.cumsum([0, *(len(one) + 1 for one in texts)])
    spans = _spans(text, words, pair=len(texts) > 1)
    all_marked = marks is None and not _is_words(words)
    chosen = _checked_marks([1] * len(spans) if all_marked else marks, len(spans))
    marked = np.zeros(len(text) + 1, dtype=bool)
    for start, end in (span for span, mark in zip(spans, chosen, strict=True) if mark):
        marked[start:end] = True
    places = [(unit, int(offsets[unit.segment])) for unit in units]
    return np.array([marked[unit.start + at : unit.end + at].any() for unit, at in places])


def _units_and_texts(subject: Cut) -> tuple[tuple[Unit, ...], tuple[str, ...]]:
    """The units and the texts they stand in; units alone are laid out on blanks."""
    if isinstance(subject, (Subject, Explanation)):
        if isinstance(subject.input, ImageInput):
            raise PisteError("Expected a text to mark words in, got an image.")
        texts = (subject.input,) if isinstance(subject.input, str) else subject.input
        return tuple(subject.units), texts
    units = tuple(subject)
    rows = []
    for segment in range(max((unit.segment for unit in units), default=0) + 1):
        inside = [unit for unit in units if unit.segment == segment]
        row = [" "] * max((unit.end for unit in inside), default=0)
        for unit in inside:
            row[unit.start : unit.end] = unit.text
        rows.append("".join(row))
    return units, tuple(rows)


def _is_words(words: Any) -> bool:
    """Whether words were given, or None for those of the text, and not spans."""
    return words is None or isinstance(words, str) or any(isinstance(one, str) for one in words)


def _spans(text: str, words: Any, *, pair: bool) -> list[Span]:
    if words is None:
        return [found.span() for found in re.finditer(r"\S+", text)]
    if _is_words(words):
        return _locate(text, words.split() if isinstance(words, str) else list(words))
    if pair and len(words):
        raise PisteError(
            "Expected words and marks for a pair of texts, got character spans, which don't say in "
            "which of the two they count."
        )
    spans: list[Span] = []
    for one in words:
        try:
            start, end = map(int, one)
        except (TypeError, ValueError) as problem:
            raise PisteError(
                f"Expected words or character spans (start, end), got {shorten(one)}."
            ) from problem
        if not 0 <= start <= end <= len(text):
            raise PisteError(
                f"The span ({start}, {end}) lies outside the text of {len(text)} characters."
            )
        spans.append((start, end))
    return spans


def _locate(text: str, words: Sequence[str]) -> list[Span]:
    """Where the words stand, one after the other."""
    spans: list[Span] = []
    place = 0
    for number, word in enumerate(words):
        while place < len(text) and text[place].isspace():
            place += 1
        start = _find(text, word, place) if isinstance(word, str) else -1
        if start < 0:
            after = f" after {spans[-1][1]} characters" if spans else ""
            raise PisteError(
                f"Word {number}, {shorten(word)}, is not found in the text{after}: give the words "
                "as they stand in the text, in their order."
            )
        place = start + len(word)
        spans.append((start, place))
    return spans


def _find(text: str, word: str, place: int) -> int:
    """Right here; if the words leave something out, where it next is a word; else anywhere."""
    if text.startswith(word, place):
        return place
    apart = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(text, place)
    return apart.start() if apart else text.find(word, place)


def _checked_marks(marks: Any, count: int) -> list[bool]:
    if marks is None or len(marks) != count:
        given = "none" if marks is None else len(marks)
        raise PisteError(f"Expected {count} marks, one per word, got {given}.")
    wrong = [mark for mark in marks if mark not in (0, 1)]
    if wrong:
        raise PisteError(f"Expected marks of 0 or 1, got {shorten(wrong[0])}.")
    return [bool(mark) for mark in marks]


@dataclass(frozen=True)
class Marks:
    """A 0/1 mark for every word, or spans of characters."""

    words: tuple[str, ...] = ()
    marks: tuple[bool, ...] = ()
    spans: tuple[tuple[int, int], ...] | None = None

    def units(self, cut: Cut) -> Flags:
        """Which units of an explanation or a subject share a character with what was marked."""
        if self.spans is None:
            return rationale_units(cut, self.words, self.marks)
        return rationale_units(cut, self.spans, [1] * len(self.spans))


def read_marks(cell: Any, words: Any, text: str, place: str) -> Marks | None:
    """The marks in a cell of a table; ``words`` is the cell with the words, if there is one.

    ``place`` says where the cell is, for errors.

    >>> read_marks([0, 1], None, "how dull", "Row 0").marks
    (False, True)
    >>> read_marks("[[4, 8]]", None, "how dull", "Row 0").spans
    ((4, 8),)
    """
    if cell is None:
        return None
    marks = _list(cell, "rationale", place)
    if not marks:
        return Marks(spans=())
    if all(isinstance(one, list) for one in marks):
        return Marks(spans=tuple(_span(one, text, place) for one in marks))
    if not all(isinstance(one, (int, float)) and one in (0, 1) for one in marks):
        raise PisteError(
            f"{place}: expected a 0 or 1 for every word, or pairs [start, end] of characters, as "
            f"rationale, got {shorten(marks)}."
        )
    said = text.split() if words is None else [str(word) for word in _list(words, "words", place)]
    if len(said) != len(marks):
        raise PisteError(
            f"{place} has {len(marks)} marks for {len(said)} words: name the column with the words "
            "that were marked, if splitting the text at white space does not give them."
        )
    return Marks(words=tuple(said), marks=tuple(one == 1 for one in marks))


def _span(pair: list[Any], text: str, place: str) -> tuple[int, int]:
    right = len(pair) == 2 and all(isinstance(one, int) for one in pair)
    if not right or not 0 <= pair[0] <= pair[1] <= len(text):
        raise PisteError(
            f"{place}: expected a span [start, end] within the text's {len(text)} characters, got "
            f"{shorten(pair)}."
        )
    return pair[0], pair[1]


def _list(cell: Any, what: str, place: str) -> list[Any]:
    """A list as it is, or written as JSON, as it must be in a CSV file."""
    if isinstance(cell, str):
        with suppress(json.JSONDecodeError):
            cell = json.loads(cell)
    if not isinstance(cell, list):
        raise PisteError(
            f"{place}: expected a list as {what}, got {shorten(cell)}: in a CSV file, write it as "
            "JSON, for example [0, 1, 0]."
        )
    return cell


@dataclass(frozen=True, eq=False)
class Region:
    """A mask (height × width) over what the model sees of an image, at any resolution."""

    mask: Flags

    def units(self, cut: Subject | Explanation, least: float = 0.5) -> Flags:
        """The units of which at least so large a share of the pixels is marked."""
        image = cut.input
        if not isinstance(image, ImageInput) or image.areas is None:
            raise PisteError("Expected an image to mark regions in, got a text.")
        rows, columns = self.mask.shape
        height, width = image.areas.shape
        seen = self.mask[np.arange(height) * rows // height][:, np.arange(width) * columns // width]
        inside = image.areas >= 0
        units = image.areas[inside]
        marked = np.bincount(units, seen[inside], minlength=len(cut.units))
        return marked >= least * np.maximum(np.bincount(units, minlength=len(cut.units)), 1)

    def __repr__(self) -> str:  # enters the digest of an example
        content = hashlib.sha256(np.packbits(self.mask).tobytes()).hexdigest()[:16]
        return f"<region {self.mask.shape} {content}>"


def read_region(cell: Any, place: str) -> Region | None:
    """A mask from the bytes of an image (whatever is not black is marked), or from a list of rows.

    ``place`` says where the cell is, for errors.

    >>> read_region([[0, 1], [0, 1]], "Row 0").mask.tolist()
    [[False, True], [False, True]]
    """
    if cell is None:
        return None
    if isinstance(cell, (bytes, bytearray)):
        try:
            with Image.open(io.BytesIO(bytes(cell))) as image:
                array: NDArray[Any] = np.asarray(image)
        except (OSError, ValueError, SyntaxError) as problem:
            raise PisteError(f"{place} holds a mask that is no readable image.") from problem
        array = np.asarray(array.any(axis=2)) if array.ndim == 3 else array
    else:
        try:
            array = np.array([list(row) for row in cell])
        except (TypeError, ValueError) as problem:
            raise PisteError(
                f"{place}: expected the bytes of a PNG, or rows of 0 and 1, as mask, got "
                f"{shorten(cell)}."
            ) from problem
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "biuf":
        raise PisteError(
            f"{place}: expected a mask of height × width, got the shape {array.shape}."
        )
    return Region(array.astype(bool))
