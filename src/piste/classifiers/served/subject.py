"""A filled prompt as a subject: units are cut from its removable pieces, the rest stays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from piste.classifier import Classifier
from piste.classifiers.base import EngineSubject
from piste.classifiers.prompted.prompt import Piece, Turn
from piste.classifiers.served.endpoint import Turns
from piste.classifiers.text.function import TextSubject
from piste.classifiers.text.spans import place_spans
from piste.errors import PisteError
from piste.prompt_text import Message, Part, PromptText
from piste.subject import Parts, Question, Sequence1D, SpanFunction, Spans, Unit

_BETWEEN = "\n\n"
_CHARACTERS = 4
"""Characters in a token, about: what a question costs only has to be right in proportion."""


class PromptSubject(EngineSubject):
    """The units of a prompt's removable pieces.

    If there is one such piece and it is the text that was given, ``input`` is that text and spans
    count in it. Else ``input`` is all of the prompt with its parts, turns with an empty line
    between them; :func:`as_turns` makes turns of it again.
    Units of one piece may be dropped, repeated and reordered; units of several only dropped.
    """

    def __init__(
        self,
        classifier: Classifier,
        turns: Sequence[Turn],
        given: object,
        units: str | Spans | SpanFunction,
    ) -> None:
        self.classifier = classifier
        self._turns = tuple(turns)
        prompt = as_prompt_text(turns)
        places = _removable(turns)
        if not places:
            raise PisteError(
                "The prompt has nothing that may be removed: give a text with at least one word, "
                "and a field that is not pinned."
            )
        alone = len(places) == 1 and _piece(turns, next(iter(places))).text == given
        self.input = str(given) if alone else prompt
        cut: dict[tuple[int, int], TextSubject] = {}
        for key, own_units in _units_of_pieces(units, turns, places, self.input, alone).items():
            cut[key] = TextSubject(classifier, _piece(turns, key).text, own_units)
        self._cut = cut
        found: list[Unit] = []
        self._first: dict[tuple[int, int], int] = {}
        for key, own in cut.items():
            self._first[key] = len(found)
            shift, part = (0, None) if alone else (places[key], _piece(turns, key).name)
            found += [
                replace(unit, start=unit.start + shift, end=unit.end + shift, part=part)
                for unit in own.units
            ]
        self.units = tuple(found)
        numbers = {text: n for n, text in enumerate(dict.fromkeys(u.text for u in found))}
        self.types = np.array([numbers[unit.text] for unit in found], dtype=np.int64)
        self.only_drops = len(cut) > 1
        self.can_be_empty = any(
            piece.text.strip()
            for row, turn in enumerate(turns)
            for column, piece in enumerate(turn.pieces)
            if (row, column) not in cut
        )
        self.limit = None
        self.cut = units if isinstance(units, str) else [(one.start, one.end) for one in found]
        self.notes = {"long": "fits"}

    @property
    def _placed(self) -> str:
        return "Units of several parts of a prompt"

    def encode(self, sequence: Sequence1D) -> Parts:
        turns = self._kept([int(unit) for unit in self.check(sequence)])
        key = json.dumps(turns, ensure_ascii=False)
        characters = sum(len(text) for _, text in turns)
        return [(Question(key, max(characters // _CHARACTERS, 1), turns), 1.0)]

    def _kept(self, units: list[int]) -> Turns:
        rows = []
        for row, turn in enumerate(self._turns):
            pieces = []
            for column, piece in enumerate(turn.pieces):
                own = self._cut.get((row, column))
                if own is None:
                    pieces.append(piece.text)
                    continue
                first = self._first[row, column]
                inside = range(first, first + len(own.units))
                pieces.append(own.join([unit - first for unit in units if unit in inside]))
            rows.append((turn.role, "".join(pieces)))
        return tuple(rows)


def as_prompt_text(turns: Sequence[Turn]) -> PromptText:
    """Turns as one text that knows its parts, and its messages if there are roles."""
    parts: list[Part] = []
    messages: list[Message] = []
    place = 0
    for turn in turns:
        start = place
        for piece in turn.pieces:
            if piece.name is not None and piece.text:
                parts.append(Part(piece.name, place, place + len(piece.text), piece.removable))
            place += len(piece.text)
        if turn.role is not None:
            messages.append((turn.role, start, place))
        place += len(_BETWEEN)
    return PromptText(_BETWEEN.join(turn.text for turn in turns), parts, messages=messages)


def as_turns(prompt: PromptText) -> tuple[Turn, ...]:
    """The turns that :func:`as_prompt_text` was given.

    >>> turns = (Turn("user", (Piece("Is "), Piece("it", "text", True))),)
    >>> as_turns(as_prompt_text(turns)) == turns
    True
    """
    whole: list[tuple[str | None, int, int]] = [*prompt.messages] or [(None, 0, len(prompt))]
    turns = []
    for role, start, end in whole:
        pieces, at = [], start
        for part in prompt.parts:
            if start <= part.start and part.end <= end:
                pieces.append(Piece(prompt[at : part.start]))
                pieces.append(Piece(prompt[part.start : part.end], part.name, part.removable))
                at = part.end
        pieces.append(Piece(prompt[at:end]))
        turns.append(Turn(role, tuple(piece for piece in pieces if piece.text)))
    return tuple(turns)


def _piece(turns: Sequence[Turn], key: tuple[int, int]) -> Piece:
    return turns[key[0]].pieces[key[1]]


def _removable(turns: Sequence[Turn]) -> dict[tuple[int, int], int]:
    """Turn and number of every piece with units, and where it starts in the whole prompt."""
    found = {}
    place = 0
    for row, turn in enumerate(turns):
        for column, piece in enumerate(turn.pieces):
            if piece.removable and piece.text.strip():
                found[row, column] = place
            place += len(piece.text)
        place += len(_BETWEEN)
    return found


def _units_of_pieces(
    units: str | Spans | SpanFunction,
    turns: Sequence[Turn],
    places: Mapping[tuple[int, int], int],
    text: str,
    alone: bool,
) -> dict[tuple[int, int], str | Spans]:
    """What every piece is cut into; those without any of the user's spans are pinned."""
    if isinstance(units, str):
        if units != "parts":
            return dict.fromkeys(places, units)
        return {key: [(0, len(_piece(turns, key).text))] for key in places}
    own: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for _, start, end in place_spans(units, [text]):
        inside = 0
        for key, place in places.items():
            first = 0 if alone else place
            last = first + len(_piece(turns, key).text)
            if text[max(start, first) : min(end, last)].strip():
                own.setdefault(key, []).append((max(start, first) - first, min(end, last) - first))
                inside += 1
        if inside != 1:
            raise PisteError(
                f"units: expected spans within one part of the prompt that may be removed, got "
                f"({start}, {end})."
            )
    return dict(own)
