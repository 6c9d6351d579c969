"""Two explanations side by side: of two texts, or of two models; what differs, unit by unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

import numpy as np

from piste.errors import PisteError
from piste.explanation import Explanation
from piste.show import score_terms, wording
from piste.types import Floats

_LONGEST_SWAP = 3
"""Units that stand in the place of others are paired up to so many, not where texts differ."""
MOST_NAMED = 3


@dataclass(frozen=True)
class Row:
    """A unit of the first input, of the second, or of both."""

    before: int | None
    now: int | None


@dataclass(frozen=True)
class Difference:
    """Two explanations, and which of their units are the same."""

    before: Explanation
    now: Explanation
    rows: tuple[Row, ...]

    @staticmethod
    def of(before: Explanation, now: Explanation) -> Difference:
        """Align the units of two texts: same words in order, then those that have moved."""
        for e in (before, now):
            if wording.of_image(e) or wording.of_answer(e):
                raise PisteError(
                    "Only explanations of a class of texts can stand side by side, and one of "
                    f"these is of {'an image' if wording.of_image(e) else 'a free answer'}."
                )
        return Difference(before, now, tuple(_aligned(_names(before), _names(now))))

    @property
    def comparable(self) -> bool:
        """Whether both explain the same number by the same score."""
        return self.before.ranking == self.now.ranking and self.sides == score_terms.sides(
            self.now, self.now.ranking
        )

    @property
    def sides(self) -> tuple[str, str]:
        """What positive and negative scores mean."""
        return score_terms.sides(self.before, self.before.ranking)

    def name(self, row: Row) -> str:
        """A unit, or what stands in the place of another: "bad → good"."""
        both = [
            wording.short(e.units[unit].text)
            for e, unit in ((self.before, row.before), (self.now, row.now))
            if unit is not None
        ]
        same = len({text.casefold() for text in both}) == 1
        return both[-1] if same else " → ".join(both)

    @cached_property
    def numbers(self) -> tuple[Floats, Floats, Floats]:
        """Of every row the score before and now, and their difference; NaN where there is none.

        What stands in one text only differs by all of its score.
        """
        scores = [
            np.array([np.nan if unit is None else float(e.score()[unit]) for unit in units])
            for e, units in (
                (self.before, [row.before for row in self.rows]),
                (self.now, [row.now for row in self.rows]),
            )
        ]
        known = [np.where(np.isnan(one), 0.0, one) for one in scores]
        return scores[0], scores[1], known[1] - known[0]

    @cached_property
    def order(self) -> list[int]:
        """Rows from the largest difference to the smallest."""
        return wording.by_size(self.numbers[2])

    @property
    def answers(self) -> tuple[float, float]:
        """The explained number of both; of all classes the predicted one's."""
        first, second = (_answer(e) for e in (self.before, self.now))
        return first, second

    @property
    def removed(self) -> list[int] | None:
        """Units that were only taken away, if the second text is the first without them."""
        kept, texts = iter(enumerate(_names(self.before))), _names(self.now)
        places = []
        for text in texts:
            place = next((number for number, other in kept if other == text), None)
            if place is None:
                return None
            places.append(place)
        gone = sorted({*range(len(self.before))} - {*places})
        same = self.before.classifier.get("name") == self.now.classifier.get("name")
        return gone if gone and places and same and self.comparable else None

    @property
    def expected(self) -> float | None:
        """What the first explanation predicts of the second text, if words were only removed."""
        if self.removed is None:
            return None
        kept = np.ones(len(self.before), dtype=bool)
        kept[self.removed] = False
        found = np.ravel(self.before.predict(kept))
        return float(found[int(np.argmax(self.before.output.logits)) if found.size > 1 else 0])

    def told(self) -> list[str]:
        """What differs, in sentences."""
        before, now = self.answers
        if not self.comparable:
            return [
                f"They explain different numbers, {self.before.target.name} and "
                f"{self.now.target.name}: compare which words stand out, not the numbers."
            ]
        name = self.before.target.name
        said = [
            f"{name[:1].upper()}{name[1:]}: {wording.number(before)} → {wording.number(now)}"
            f"{self._reasons()}."
        ]
        if self.expected is not None:
            said.append(
                f"Only words were removed. The first explanation predicted "
                f"{wording.number(self.expected)} for that: off by "
                f"{wording.plain(abs(self.expected - now))}."
            )
        return said

    def _reasons(self) -> str:
        changes = self.numbers[2]
        named = [
            f"{self.name(self.rows[index])} ({wording.number(changes[index])})"
            for index in self.order[:MOST_NAMED]
            if abs(changes[index]) >= 0.1 * np.abs(changes).max() and abs(changes[index]) >= 0.01
        ]
        return (
            f". {self.before.ranking.capitalize()}s that differ most: {', '.join(named)}"
            if named
            else ""
        )


def _answer(e: Explanation) -> float:
    value = e.output.value
    return value[int(np.argmax(e.output.logits))] if isinstance(value, tuple) else value


def _names(e: Explanation) -> list[str]:
    return [unit.text.strip().casefold() for unit in e.units]


def _aligned(one: Sequence[str], other: Sequence[str]) -> Iterator[Row]:
    """Rows in the order of the first text, then those of the second alone."""
    gone: list[int] = []
    new: list[int] = []
    found: dict[int, int] = {}
    for kind, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind == "equal" or b - a == d - c <= _LONGEST_SWAP:
            found |= dict(zip(range(a, b), range(c, d), strict=True))
        else:
            gone += range(a, b)
            new += range(c, d)
    for unit in gone:  # the same word elsewhere
        place = next((number for number in new if other[number] == one[unit]), None)
        if place is not None:
            found[unit] = place
            new.remove(place)
    yield from (Row(unit, found.get(unit)) for unit in range(len(one)))
    yield from (Row(None, unit) for unit in new)
