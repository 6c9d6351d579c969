"""Words joined into phrases: by hand, or where an explanation finds pairs that act together."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, Literal, TypeAlias

from piste.errors import PisteError, shorten
from piste.explanation import Explanation
from piste.explanation_run import StagedRun
from piste.methods import Method
from piste.options import Phrases
from piste.slalom.pairs import strongest_pairs
from piste.subject import Subject, Unit, UnitChoice, levels_of

Phrase: TypeAlias = str | tuple[int, ...]
"""A piece of the text, or where it stands: (start, end), of a pair (segment, start, end)."""
Range: TypeAlias = tuple[int, int]
"""The first and the last unit of a phrase."""

_WEAKEST = 1 / 3
"""Of the strongest effect: pairs below it are not joined."""
_EXPECTED = (
    "phrases: expected 'auto', or a list of phrases of the text, as ['not bad'], or of spans, as "
    "[(13, 20)]"
)


def read_phrases(given: Phrases) -> Literal["auto"] | tuple[Phrase, ...] | None:
    """Phrases as the rest of the code takes them; what is none is refused.

    >>> read_phrases(["not bad", (4, 9)]), read_phrases("not bad"), read_phrases(["auto"])
    (('not bad', (4, 9)), ('not bad',), 'auto')
    """
    if given is None:
        return None
    items: Any = _listed(given)
    items = [items] if isinstance(items, str) else items
    if not isinstance(items, Sequence) or not items:
        raise PisteError(f"{_EXPECTED}, got {shorten(given)}.")
    if len(items) == 1 and isinstance(items[0], str) and items[0] == "auto":
        return "auto"
    return tuple(_read(_listed(item), given) for item in items)


def _listed(given: Any) -> Any:
    """An array as lists."""
    return given.tolist() if hasattr(given, "tolist") else given


def _read(item: Any, given: Phrases) -> Phrase:
    if isinstance(item, str):
        if item.strip():
            return item.strip()
    elif isinstance(item, Sequence) and len(item) in (2, 3):
        try:
            return tuple(operator.index(number) for number in item)
        except TypeError:
            pass
    raise PisteError(f"{_EXPECTED}, got {shorten(given)}.")


def check_phrases(phrases: Phrases, units: UnitChoice, reads: str) -> None:
    """Refuse phrases where there are no words to join."""
    if read_phrases(phrases) is None:
        return
    if reads == "images":
        raise PisteError("phrases: expected a text, got an image, which has no words to join.")
    if levels_of(units) not in ([None], ["words"]):
        raise PisteError(
            f"phrases join words: leave units out or choose units='words', got {shorten(units)}."
        )


def check_method(phrases: Phrases, method: Method) -> None:
    """Refuse ``phrases="auto"`` of a method that finds no pairs."""
    if read_phrases(phrases) == "auto" and not method.finds_pairs:
        raise PisteError(
            f"phrases='auto' needs a method that finds pairs of words, slalom, got {method.name}: "
            "name the phrases, as phrases=['not bad']."
        )


def find_phrases(subject: Subject, phrases: Sequence[Phrase], *, strict: bool) -> list[Range]:
    """The units of every phrase, in the order of the text.

    A phrase is found wherever it stands, in upper or lower case. One that is not there is refused
    if ``strict``, and so are phrases that overlap.
    """
    found: dict[Range, str] = {}
    for phrase in phrases:
        if isinstance(phrase, str):
            own = _occurrences(subject, phrase)
        else:
            own = _covered(subject, phrase)
        if strict and not own:
            raise PisteError(
                f"phrases: {shorten(phrase)} does not stand in the text as whole words: give a "
                "piece of the text, as phrases=['not bad']."
            )
        found |= dict.fromkeys(own, shorten(phrase))
    order = sorted(found)
    for one, other in pairwise(order):
        if other[0] <= one[1]:
            raise PisteError(
                f"phrases: expected phrases that do not overlap, got {found[one]} and "
                f"{found[other]}."
            )
    return order


def _texts(subject: Subject) -> tuple[str, ...]:
    given = subject.input
    assert not subject.is_image
    return (given,) if isinstance(given, str) else tuple(given)  # type: ignore[arg-type]  # texts


def _occurrences(subject: Subject, phrase: str) -> list[Range]:
    """Where a phrase begins with a unit and ends with one."""
    starts = {(unit.segment, _first(unit)): place for place, unit in enumerate(subject.units)}
    ends = {(unit.segment, _last(unit)): place for place, unit in enumerate(subject.units)}
    pattern = re.compile(r"\s+".join(map(re.escape, phrase.split())), re.IGNORECASE)
    found = []
    for segment, text in enumerate(_texts(subject)):
        at = 0
        while match := pattern.search(text, at):
            first = starts.get((segment, match.start()))
            last = ends.get((segment, match.end()))
            if first is None or last is None:
                at = match.start() + 1
                continue
            found.append((first, last))
            at = match.end()
    return found


def _first(unit: Unit) -> int:
    return unit.end - len(unit.text.lstrip())


def _last(unit: Unit) -> int:
    return unit.start + len(unit.text.rstrip())


def _covered(subject: Subject, span: tuple[int, ...]) -> list[Range]:
    """The units that a span has a part of."""
    texts = _texts(subject)
    segment, (start, end) = (span[0] if len(span) == 3 else 0), span[-2:]
    if len(span) == 2 and len(texts) > 1:
        raise PisteError(
            f"phrases: expected (segment, start, end) for a pair of texts, got {span}."
        )
    if not (0 <= segment < len(texts) and 0 <= start < end <= len(texts[segment])):
        raise PisteError(
            f"phrases: expected spans (start, end) with 0 ≤ start < end ≤ {len(texts[0])}, the "
            f"length of the text, got {span}."
        )
    inside = [
        place
        for place, unit in enumerate(subject.units)
        if unit.segment == segment and unit.start < end and start < unit.end
    ]
    return [(inside[0], inside[-1])] if inside else []


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Ranges in order; those that share units as one.

    >>> merged([(4, 5), (1, 2), (2, 3)])
    [(1, 3), (4, 5)]
    """
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found


def joined_spans(subject: Subject, ranges: Sequence[Range]) -> list[tuple[int, ...]]:
    """The units as spans, those of each range as one."""
    lasts = dict(ranges)
    units, spans, place = subject.units, list[tuple[int, int, int]](), 0
    while place < len(units):
        last = lasts.get(place, place)
        segment, start, end = units[place].segment, units[place].start, units[last].end
        if spans and spans[-1][0] == segment and start < spans[-1][2]:  # parts of one sign
            spans[-1] = segment, spans[-1][1], max(end, spans[-1][2])
        elif start < end:
            spans.append((segment, start, end))
        place = last + 1
    return list(spans) if len(_texts(subject)) > 1 else [span[1:] for span in spans]


def phrase_texts(subject: Subject, ranges: Sequence[Range]) -> list[str]:
    """The phrases as they stand in the text."""
    units, texts = subject.units, _texts(subject)
    return [texts[units[i].segment][units[i].start : units[j].end] for i, j in ranges]


class PhraseRun(StagedRun):
    """One input, first by its words, then with pairs that act together as one unit each.

    The better of the two by R² on questions that were not fitted is kept.
    """

    def explain(self, subject: Subject) -> Explanation:
        words = self.stage(self.method, subject)
        ranges = merged((one.first, one.second) for one in strongest_pairs(words.pairs, _WEAKEST))
        spans = joined_spans(subject, ranges)
        if not ranges or len(spans) < 2:
            return self.in_all(words, phrases=[])
        found = phrase_texts(subject, ranges)
        joined = self.stage(self.method, self.bind(subject, spans))
        known = {"words": words.fidelity.r2, "phrases": joined.fidelity.r2}
        r2 = {name: round(one, 4) for name, one in known.items() if isfinite(one)}
        if joined.fidelity.r2 > words.fidelity.r2:
            return self.in_all(joined, phrases=found, phrases_r2=r2)
        return self.in_all(words, phrases=[], phrases_tried=found, phrases_r2=r2)
