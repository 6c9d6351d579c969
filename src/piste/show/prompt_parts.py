"""A prompt by its named parts: in blocks to show, and what each part contributes in sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np

from piste.explanation import Explanation
from piste.prompt_text import Part, PromptText
from piste.show import wording
from piste.show.wording import Piece, texts

ADDING = ("contribution", "shapley", "attribution")
"""Scores whose sums mean something: they share out the answer."""
MOST_NAMES = 3
"""Units that are named with a part."""


@dataclass(frozen=True)
class Block:
    """What is shown together: a text, a named part of a prompt, or what stands between parts."""

    pieces: Sequence[Piece]
    name: str | None = None
    is_pinned: bool = False
    """Whether it stands in every question."""

    @property
    def title(self) -> str | None:
        """The name, and whether it can be removed."""
        return f"{self.name} (never removed)" if self.name and self.is_pinned else self.name


def blocks(e: Explanation) -> list[Block]:
    """The input in blocks: of a prompt without the empty lines between its parts."""
    cut = texts(e)
    if not isinstance(e.input, PromptText):
        names = [f"Text {number}" for number in range(1, len(cut) + 1)]
        pair = not isinstance(e.input, str)
        return [Block(one, name if pair else None) for one, name in zip(cut, names, strict=True)]
    found = []
    placed = list(_placed(cut[0], e.input.parts))
    for part, group in groupby(placed, key=lambda one: one[0]):
        pieces = [
            replace(piece, unread=piece.unread and part is not None and part.removable)
            for _, piece in group
        ]
        pieces = _without_edges(pieces)
        if pieces:
            named = None if part is None else part.name
            found.append(Block(pieces, named, part is None or not part.removable))
    return [replace(found[0], name=None)] if len(found) == 1 else found


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


@dataclass(frozen=True)
class PartSum:
    """A part of the prompt, the sum of its units' scores, and its units, the strongest first."""

    name: str
    total: float
    units: tuple[int, ...]


def part_sums(e: Explanation) -> list[PartSum]:
    """The parts by the size of their sums; none where there is one part, or parts are units."""
    found: dict[str, list[int]] = {}
    for index, unit in enumerate(e.units):
        if unit.part is not None:
            found.setdefault(unit.part, []).append(index)
    if e.ranking not in ADDING or len(found) < 2 or len(found) == len(e.units):
        return []
    scores = e.score()
    sums = []
    for name, units in found.items():
        order = [units[place] for place in wording.by_size(scores[units])]
        sums.append(PartSum(name, float(np.nansum(scores[units])), tuple(order)))
    return sorted(sums, key=lambda part: -abs(part.total))


def strongest(e: Explanation, part: PartSum) -> str:
    """The part's strongest units by name."""
    names = [f"“{wording.short(e.units[unit].text)}”" for unit in part.units[:MOST_NAMES]]
    more = len(part.units) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
