"""Words that act together: the pairs of an explanation, named for every view."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from piste.explanation import Explanation
from piste.image import ImageInput
from piste.show.wording import digits, part, short, with_error
from piste.slalom.pairs import strongest_pairs


def meaning(e: Explanation) -> str:
    """What the number of a pair is."""
    carried = bool(getattr(e.surrogate, "pairs", ()))
    half = "half of it is in the contribution of each" if carried else "no score has it"
    what = f"what two {part(e)}s add to the evidence when both are there"
    return f"{what}, beyond what each says apart; {half}."


@dataclass(frozen=True)
class ShownPair:
    """Two units with what they add together."""

    units: tuple[int, int]
    name: str
    effect: str
    """With its error."""
    segment: int
    start: int
    end: int
    """The span of the text from the first to the second."""


@dataclass(frozen=True)
class Phrase:
    """A pair that is named as one, for it says more together than its units say apart."""

    units: tuple[int, int]
    name: str
    score: float
    error: float


def shown_pairs(e: Explanation) -> list[ShownPair]:
    """The pairs that matter, the strongest first."""
    found = strongest_pairs(e.pairs)
    places = digits(np.array([pair.effect for pair in found]))
    return [
        ShownPair(
            (pair.first, pair.second),
            name_of(e, pair.first, pair.second),
            with_error(pair.effect, pair.error, places),
            e.units[pair.first].segment,
            e.units[pair.first].start,
            e.units[pair.second].end,
        )
        for pair in found
    ]


def name_of(e: Explanation, first: int, second: int) -> str:
    """Both units, with dots between them where others stand there."""
    one, other = e.units[first], e.units[second]
    if second > first + 1 or isinstance(e.input, ImageInput):
        return f"{short(one.text)} … {short(other.text)}"
    text = e.input if isinstance(e.input, str) else e.input[one.segment]
    return short(text[one.start : other.end], 58)


def joined(e: Explanation) -> list[str]:
    """The phrases that were made one unit each."""
    found = e.settings.get("phrases")
    return [str(phrase) for phrase in found] if isinstance(found, list) else []


def phrases(e: Explanation) -> list[Phrase]:
    """The pairs that are named as one in a summary: their effect is the larger part.

    Half of an effect is in the contribution of each unit. The effect must be larger than what is
    left of either. A unit belongs to one phrase, that of its strongest pair. What two contributions
    share between them is often less certain than their sum, so the error of a phrase is that of
    the effect.
    """
    carried = bool(getattr(e.surrogate, "pairs", ()))
    if e.ranking != "contribution" or not carried or e.scores["contribution"].ndim != 1:
        return []
    scores = e.score()
    own = scores.copy()
    for pair in e.pairs:
        own[[pair.first, pair.second]] -= pair.effect / 2
    found: list[Phrase] = []
    used: set[int] = set()
    for pair in strongest_pairs(e.pairs):
        units = pair.first, pair.second
        if used.intersection(units) or abs(pair.effect) <= np.abs(own[list(units)]).max():
            continue
        used.update(units)
        score = float(scores[list(units)].sum())
        found.append(Phrase(units, name_of(e, *units), score, pair.error))
    return found


def line(e: Explanation, width: int) -> str:
    """``together: not bad +2.40 ± 0.50``, with as many pairs as fit; "" without any."""
    found = shown_pairs(e)
    if not found:
        return ""
    said = f"together: {found[0].name} {found[0].effect}"
    for place, pair in enumerate(found[1:], start=1):
        more, left = f"{said} · {pair.name} {pair.effect}", len(found) - place - 1
        if len(more) + (len(f" · {left} more") if left else 0) > width:
            return said if len(said) + 9 > width else f"{said} · {left + 1} more"
        said = more
    return said
