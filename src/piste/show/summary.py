"""An explanation in two lines: what the model says, why, and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from piste.explanation import UNDIRECTED, Explanation, graded
from piste.show import pair_terms
from piste.show.wording import (
    clear,
    kinds,
    of_answer,
    part,
    percent,
    plain,
    prediction,
    shown_class,
    what,
)

MOST_FOR, MOST_AGAINST = 3, 2
"""Names in a summary."""
_LEAST = 0.1
"""Share of the strongest score below which a unit is not named."""
_HOW_WELL = {
    "very good": "Predicts the model very well",
    "good": "Predicts the model well",
    "fair": "Predicts the model fairly well",
    "poor": "Predicts the model poorly",
    "unusable": "Does not predict the model",
    "uncertain": "May predict the model well or badly",
}


@dataclass(frozen=True)
class Summary:
    """An explanation in two lines: the answer with its reasons, and how far to trust them."""

    answer: str
    pieces: tuple[tuple[str, bool], ...]
    """The reasons, piece by piece; true for the names of units."""
    trust: str

    @property
    def reasons(self) -> str:
        return "".join(words for words, _ in self.pieces)

    @property
    def line(self) -> str:
        return f"{self.answer}: {self.reasons}"

    @staticmethod
    def of(e: Explanation, label: str | int | None = None) -> Summary:
        """What the model says, mostly because of which units, how well that is known, what it cost.

        Units are named whose ranking score is strong and stands out from 0 by two standard errors;
        pairs that say more together than apart are named as phrases.
        """
        chance = e.output.probability
        answer = prediction(e) if chance is None else f"{e.output.label}, {percent(chance)}"
        return Summary(answer, tuple(_reasons(e, label)), _trust(e))


def two_lines(e: Explanation) -> str:
    """The summary as plain text, as ``print(e)`` shows it."""
    summary = Summary.of(e)
    return f"{summary.line}\n{summary.trust}"


@dataclass(frozen=True)
class _Reason:
    """A unit, or a phrase of two, with its score."""

    name: str
    count: int
    score: float

    @property
    def title(self) -> str:
        title = f"{self.name} ×{self.count}" if self.count > 1 else self.name
        # Names with other signs than letters would run into the sentence.
        return title if self.name.replace("'", "").replace(" ", "").isalnum() else f"“{title}”"


def _strong(e: Explanation, label: str | int | None) -> list[_Reason]:
    """What is named, the strongest first."""
    scores, errors = e.score(None, label), e.error(None, label)
    phrases = pair_terms.phrases(e) if e.pairs else []
    within = {unit for phrase in phrases for unit in phrase.units}
    strong = clear(scores, errors)
    found = [
        _Reason(kind.name, len(kind.units), float(scores[kind.first]))
        for kind in kinds(e)
        if strong[kind.first] and not within.issuperset(kind.units)
    ]
    named: dict[tuple[str, bool], _Reason] = {}
    for phrase in phrases:
        if not abs(phrase.score) > 2 * phrase.error:
            continue
        key = phrase.name.casefold(), phrase.score > 0
        first = named.get(key, _Reason(phrase.name, 0, phrase.score))
        named[key] = _Reason(first.name, first.count + 1, max(first.score, phrase.score, key=abs))
    found = sorted([*found, *named.values()], key=lambda reason: -abs(reason.score))
    return [reason for reason in found if abs(reason.score) >= _LEAST * abs(found[0].score)]


def _reasons(e: Explanation, label: str | int | None) -> Iterator[tuple[str, bool]]:
    order = _strong(e, label)
    if e.ranking in UNDIRECTED:
        if not order:
            yield f"no {part(e)} stands out.", False
            return
        yield "the answer reacts most to ", False
        yield from _listed(order[:MOST_FOR])
        yield ".", False
        return
    leads, sign = _leads(e, label)
    up = [reason for reason in order if sign * reason.score > 0][:MOST_FOR]
    down = [reason for reason in order if sign * reason.score < 0][:MOST_AGAINST]
    if not up:
        yield f"no single {part(e)} stands out{' for it' if down else ''}", False
    else:
        yield leads[0], False
        yield from _listed(up)
    if down:
        yield f"; {leads[1]}", False
        yield from _listed(down)
    yield ".", False


def _leads(e: Explanation, label: str | int | None) -> tuple[tuple[str, str], int]:
    """Words before the units for and against the model's answer, and the sign of the former."""
    target, said = e.target, e.output.label
    because = "mostly because of "
    if of_answer(e):
        return (because if not target.minus else "for it speak mostly ", "against it "), 1
    if target.kind == "margin" and len(target.indices) == 2:
        a, b = (e.output.labels[index] for index in target.indices)
        if said == b:
            return (because, f"for {a} "), -1
        return (because if said == a else f"for {a} mostly ", f"for {b} "), 1
    known = shown_class(e, label)
    if known is None and e.output.probabilities is not None and target.kind in ("class", "output"):
        known = e.output.labels[target.indices[0]]
    if known is None:
        name = "" if e.output.probabilities is None else f"{target.name} is "
        return (f"{name}raised mostly by ", "lowered by "), 1
    if known == said:
        return (because, "against it "), 1
    if target.kind == "class" and len(e.output.labels) == 2:
        return (because, "against it "), -1
    return (f"for {known} speak mostly ", "against it "), 1


def _listed(some: Sequence[_Reason]) -> Iterator[tuple[str, bool]]:
    for place, reason in enumerate(some):
        if place:
            yield ", ", False
        yield reason.title, True


def _trust(e: Explanation) -> str:
    fidelity, noun = e.fidelity, part(e)
    asked = f"{e.calls:,} question{'' if e.calls == 1 else 's'}"
    if np.isfinite(e.cost):
        passes = max(round(e.cost), 1)
        asked += f", the cost of {passes:,} full pass{'' if passes == 1 else 'es'}"
    where = f"{what(e)}s with {noun}s removed"
    if e.settings.get("sampler") == "short" or e.settings.get("solver") == "analytic":
        where = f"short {what(e)}s of a few of its {noun}s"
    verdict = fidelity.words
    if verdict == "constant":
        return f"The model gives all {where} the same answer: no {noun} matters to it; {asked}."
    if verdict == "not measured":
        return f"Not measured: too few questions were left to check the explanation with; {asked}."
    if verdict == "close":
        off = plain(float(np.sqrt(fidelity.mse)))
        return (
            f"Off by {off} on {where}, whose answers hardly differ: R² {plain(fidelity.r2)}; "
            f"{asked}."
        )
    return f"{_HOW_WELL[verdict]} on {where}: R² {plain(fidelity.r2)}{_apart(e)}; {asked}."


def _apart(e: Explanation) -> str:
    """What stands behind R²: its interval where the verdict follows it, else R² by size."""
    fidelity, noun = e.fidelity, part(e)
    if fidelity.words != graded(fidelity.r2):
        low, high = map(plain, fidelity.r2_range)
        return f" ({low} to {high} on {fidelity.questions} of them)"
    parts = {f"single {noun}s": fidelity.single, "few": fidelity.few, "many": fidelity.many}
    known = [f"{name} {plain(r2)}" for name, r2 in parts.items() if np.isfinite(r2)]
    return f" ({', '.join(known)})" if known else ""
