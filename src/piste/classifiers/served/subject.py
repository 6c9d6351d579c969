"""A filled prompt as a subject: units are cut from its removable pieces, the rest stays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from piste.classifier import Classifier
from piste.classifiers.base import EngineSubject
from piste.classifiers.prompted.prompt import Piece, Turn
from piste.classifiers.served.endpoint import Turns
from piste.classifiers.text.function import TextSubject
from piste.errors import PisteError
from piste.subject import Parts, Question, Sequence1D, SpanFunction, Spans, Unit

_BETWEEN = "\n\n"
_CHARACTERS = 4
"""Characters in a token, about: what a question costs only has to be right in proportion."""


class PromptSubject(EngineSubject):
    """The units of a prompt's removable pieces.

    If there is one such piece and it is the text that was given, ``input`` is that text and spans
    count in it. Else ``input`` is all of the prompt, turns with an empty line between them.
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
        cut: dict[tuple[int, int], TextSubject] = {}
        spans: list[tuple[int, int]] = []  # where each of those pieces begins, in the whole prompt
        names: list[str | None] = []
        place = 0
        for row, turn in enumerate(turns):
            for column, piece in enumerate(turn.pieces):
                if _has_words(piece):
                    whole = [(0, len(piece.text))]
                    own_units = whole if units == "parts" else units
                    cut[row, column] = TextSubject(classifier, piece.text, own_units)
                    names.append(piece.name)
                    spans.append((place, place + len(piece.text)))
                place += len(piece.text)
            place += len(_BETWEEN)
        if not cut:
            raise PisteError(
                "The prompt has nothing that may be removed: give a text with at least one word, "
                "and a field that is not pinned."
            )
        if len(cut) > 1 and not isinstance(units, str) and not callable(units):
            raise PisteError(
                "units: expected a kind of units for a prompt with several parts that may be "
                "removed, got spans: choose 'parts', 'sentences' or 'words'."
            )
        self._cut = cut
        alone = len(cut) == 1 and next(iter(cut.values())).input == given
        self.input = str(given) if alone else _BETWEEN.join(turn.text for turn in turns)
        found: list[Unit] = []
        self._first: dict[tuple[int, int], int] = {}
        for (key, own), (start, _), name in zip(cut.items(), spans, names, strict=True):
            self._first[key] = len(found)
            shift, part = (0, None) if alone else (start, name)
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
        self.cut = "parts" if units == "parts" else next(iter(cut.values())).cut
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


def _has_words(piece: Piece) -> bool:
    return piece.removable and bool(piece.text.strip())
