"""The parts of a prompt as blocks to show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from piste.prompt_text import Part


@dataclass(frozen=True)
class Piece:
    """A stretch of a text; ``unit`` is None between units, ``unread`` after a truncation."""

    text: str
    unit: int | None
    unread: bool = False


@dataclass(frozen=True)
class Block:
    """What is shown together: a text, a named part of a prompt, or what stands between parts."""

    pieces: Sequence[Piece]
    title: str | None = None
    is_pinned: bool = False
    """Whether it stands in every question."""


def by_part(pieces: Sequence[Piece], parts: Sequence[Part]) -> list[Block]:
    """Pieces of a prompt in blocks, without the empty lines between its parts."""
    found = []
    for part, group in groupby(_placed(pieces, parts), key=lambda one: one[0]):
        own = [
            replace(piece, unread=piece.unread and part is not None and part.removable)
            for _, piece in group
        ]
        own = _without_edges(own)
        if own:
            pinned = part is None or not part.removable
            never = " (never removed)" if pinned else ""
            found.append(Block(own, f"{part.name}{never}" if part and part.name else None, pinned))
    return [replace(found[0], title=None)] if len(found) == 1 else found


def _placed(pieces: Sequence[Piece], parts: Sequence[Part]) -> Iterator[tuple[Part | None, Piece]]:
    """Pieces with the part they belong to; what lies between units is cut where parts end."""
    at = 0
    for piece in pieces:
        end = at + len(piece.text)
        if piece.unit is not None:  # a token may reach a blank beyond its part
            inside = [part for part in parts if part.start < end and part.end > at]
            yield inside[0] if inside else None, piece
        else:
            edges = {edge for part in parts for edge in (part.start, part.end) if at < edge < end}
            cuts = [at, *sorted(edges), end]
            for start, stop in pairwise(cuts):
                inside = [part for part in parts if part.start <= start and stop <= part.end]
                text = piece.text[start - at : stop - at]
                yield inside[0] if inside else None, replace(piece, text=text)
        at = end


def _without_edges(pieces: list[Piece]) -> list[Piece]:
    """Without white space before the first and behind the last piece."""
    while pieces and pieces[0].unit is None and not pieces[0].text.strip():
        pieces = pieces[1:]
    while pieces and pieces[-1].unit is None and not pieces[-1].text.strip():
        pieces = pieces[:-1]
    if pieces and pieces[0].unit is None:
        pieces[0] = replace(pieces[0], text=pieces[0].text.lstrip())
    if pieces and pieces[-1].unit is None:
        pieces[-1] = replace(pieces[-1], text=pieces[-1].text.rstrip())
    return pieces
