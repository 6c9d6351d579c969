"""What people marked, brought onto units: by character, whatever their words were."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

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
