"""What people marked as the reason for a label, as the cells of a data file hold it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from piste.data.marked_units import Cut, rationale_units
from piste.errors import PisteError, shorten
from piste.types import Flags


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
