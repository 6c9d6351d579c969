"""A text cut into the stretches that are units and those between them."""

from __future__ import annotations

from dataclasses import dataclass

from piste.explanation import Explanation
from piste.image import ImageInput
from piste.show import wording


@dataclass(frozen=True)
class Piece:
    """A stretch of a text; ``unit`` is None between units, ``unread`` after a truncation."""

    text: str
    unit: int | None
    unread: bool = False


def texts(e: Explanation) -> list[list[Piece]]:
    """The input cut into pieces, one list per text of a pair; joined, they are the input."""
    if isinstance(e.input, ImageInput):
        return []
    given = (e.input,) if isinstance(e.input, str) else e.input
    cut = wording.input_notes(e).get("long") == "truncate"
    result = []
    for segment, text in enumerate(given):
        spans = sorted(
            (unit.start, unit.end, index)
            for index, unit in enumerate(e.units)
            if unit.segment == segment and unit.end > unit.start
        )
        pieces, at = [], 0
        for start, end, index in spans:
            if end <= at:
                continue  # byte-level tokens may share one character
            if start > at:
                pieces.append(Piece(text[at:start], None))
            pieces.append(Piece(text[max(start, at) : end], index))
            at = end
        if at < len(text):
            rest = text[at:]
            pieces.append(Piece(rest, None, unread=cut and bool(rest.strip())))
        result.append(pieces)
    return result
