"""Subjects whose removed units leave their places: masked, padded or hidden from attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from piste.classifiers.base import EngineSubject
from piste.errors import PisteError
from piste.subject import Parts, Question, Removal, Sequence1D
from piste.types import Flags

if TYPE_CHECKING:
    from piste.classifiers.text.subject import TokenSubject


class MaskedSubject(EngineSubject):
    """A token subject of which every question has the same length and the same positions.

    A unit that is not asked about is replaced, token by token, by ``replacement``, or without one
    kept and hidden from attention. Units can't be repeated or reordered.

    >>> import piste
    >>> subject = piste.load("piste:reviews").subject("good film", removal="mask")
    >>> subject.encode([1])[0][0].length == subject.encode([0, 1])[0][0].length
    True
    """

    def __init__(self, plain: TokenSubject, removal: Removal, replacement: int | None) -> None:
        if not plain.fits:
            raise PisteError(
                f"With removal={removal!r} a text must fit the model, and this one is longer: "
                "choose long='truncate', or removal='delete'."
            )
        self.plain = plain
        self.classifier, self.input = plain.classifier, plain.input
        self.units, self.types, self.limit = plain.units, plain.types, plain.limit
        self.notes, self.cut = plain.notes, plain.cut
        self.only_drops = True
        self.removal = removal
        self.can_be_empty = True
        self.token_units = plain.token_units
        self._replacement = replacement
        ((whole, _),) = plain.encode(plain.whole)
        self._whole: Question = whole
        assert isinstance(whole.key, bytes)
        self._key: bytes = whole.key

    def encode(self, sequence: Sequence1D) -> Parts:
        return self.encode_all([sequence])[0]

    def encode_all(self, sequences: Sequence[Sequence1D]) -> list[Parts]:
        kept = np.zeros((len(sequences), len(self.units) + 1), dtype=bool)
        kept[:, -1] = True  # fixed tokens, whose unit is −1, always stay
        for row, sequence in zip(kept, sequences, strict=True):
            row[self.check(sequence)] = True
        seen = kept[:, self.token_units]
        return [[(self._question(row), 1.0)] for row in seen]

    def _question(self, seen: Flags) -> Question:
        if seen.all():
            return self._whole
        ids, kinds = self._whole.payload
        if self._replacement is None:
            key = self._key + b"hidden" + np.packbits(seen).tobytes()
            return Question(key, len(ids), (ids, kinds, seen))
        ids = np.where(seen, ids, self._replacement)
        head = ids.astype(np.int32).tobytes()  # after it, a key tells token types
        return Question(head + self._key[len(head) :], len(ids), (ids, kinds))
