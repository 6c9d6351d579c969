"""What the scores of an explanation are called and mean, which are shown, and in which columns."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from piste.explanation import UNDIRECTED, Explanation
from piste.show import colours, pair_terms, wording
from piste.surrogates import MeanSurrogate
from piste.types import Floats

MEANINGS = {
    "value": "the answer that is expected of the unit alone",
    "importance": "its log-weight against the other units: 0 is average, +0.7 counts double",
    "contribution": "its part in this text: all parts and a constant add up to the answer",
    "linear": "value × e^importance, the score of the paper: it ranks, its size has no unit",
    "gradient": "how the answer changes as the unit fades a little",
    "removal": "how much the answer falls if the unit is removed",
    "shapley": "its fair share of the answer (Shapley value)",
    "sensitivity": "how strongly the answer reacts to the unit, without saying which way",
    "first_order": "what the method gives the unit by itself, without its interactions",
    "attribution": "the share of the answer that the method gives the unit",
}
"""What the known scores mean, in a few words."""

BRIEF = {
    "value": "expected of it alone",
    "importance": "its log-weight",
    "contribution": "its part here",
    "linear": "to rank by",
}
"""The same for axes and panels."""

ADDING = ("contribution", "shapley", "attribution")
"""Scores whose sums mean something: they share out the answer."""
MOST_NAMES = 3
"""Units that are named with a part of a prompt."""
_NOT_ANSWERS = ("importance", "linear")
"""Scores that are not on the scale of the answers."""


def is_determined(e: Explanation) -> bool:
    """Whether weights are determined, so that importances can be shown."""
    return e.mixing is None or e.mixing.told


def shown(e: Explanation) -> list[str]:
    """The scores that can be shown: all but importances that are not determined."""
    hidden = "" if is_determined(e) else "importance"
    return [name for name in e.scores if name != hidden or name == e.ranking]


def main_scores(e: Explanation) -> list[str]:
    """Value, importance where it is determined, and the score that ranks."""
    pair = [name for name in ("value", "importance") if name in shown(e)]
    return [name for name in pair if name != e.ranking] + [e.ranking]


def plane_scores(e: Explanation) -> tuple[str, str] | None:
    """The scores of the plane: value, and importance or else contribution; None without both."""
    upward = "importance" if is_determined(e) else "contribution"
    return ("value", upward) if {"value", upward} <= set(e.scores) else None


def meaning(e: Explanation, name: str) -> str:
    """What a score means, in a few words."""
    words = MEANINGS.get(name, f"what {e.method} gives the unit")
    if name == "value" and isinstance(e.surrogate, MeanSurrogate):
        words = "what the unit says when all weight is on it, before saturation"
    if name == "contribution" and _link(e) is not None:
        words = "its part in this text: all parts and a constant add up to the evidence"
    if wording.of_answer(e):
        words = words.replace("the answer", "the log-probability")
        words = words.replace("its part in this text: all parts", "its share: all shares")
    words = re.sub(r"\bthe unit\b", f"the {wording.part(e)}", words)
    words = words.replace("other units", f"other {wording.part(e)}s")
    return words.replace("this text", f"this {wording.what(e)}")


def scale(e: Explanation, name: str) -> str:
    """The unit of a score, in a word or two: that of the answers, or none."""
    if name == "importance":
        return "log-weight"
    if name in _NOT_ANSWERS:
        return ""
    if e.target.kind in ("class", "margin") or (
        e.target.kind == "output" and e.output.probabilities is not None
    ):
        return "log-odds"
    if wording.of_answer(e):
        return "log-probability"
    return "logit above the mean" if e.target.kind == "all" else e.target.name


def sides(e: Explanation, name: str, label: str | int | None = None) -> tuple[str, str]:
    """What positive and negative scores mean, for legends: some have no direction."""
    if name == "importance":
        return "weighs more than average", "weighs less than average"
    if name in UNDIRECTED:
        return "the answer reacts to it", "no score is below 0"
    above, below = wording.sides(e, label)
    if name == "value" and wording.of_answer(e) and not e.target.minus:
        return "likelier with it alone", "less likely with it alone"  # it is below 0 in any case
    return (f"{above} on its own", f"{below} on its own") if name == "value" else (above, below)


def scale_ends(e: Explanation, name: str, label: str | int | None = None) -> tuple[str, str]:
    """What the high and the low end of an image's colours mean: weight has one colour there."""
    if name == "importance":
        return "weighs most", "weighs least"
    if name in UNDIRECTED:
        return "the answer reacts most", "it does not react"
    return sides(e, name, label)


# -- sentences ---------------------------------------------------------------------------------


def standing(e: Explanation) -> str:
    """Where the model stands between adding up and competing; "" where nothing measured it."""
    mixing, many = e.mixing, f"{wording.part(e)}s".capitalize()
    if mixing is None:
        return ""
    if mixing.error == 0 and len(e.settings.get("compared") or ()) < 2:
        how = "add up" if mixing.value < 0.5 else "compete for weight"
        why = "" if mixing.told else ": weights are not determined"
        return f"{many} {how} in the chosen form (mixing {mixing.value:g}){why}."
    measured = f"mixing {mixing.value:.2f}"
    if mixing.error > 0.005:
        measured += f" ± {mixing.error:.2f}"
    if mixing.error > 0.25:
        return (
            f"Too little was asked to tell whether {many.lower()} add up or compete for weight "
            f"({measured}): weights are not determined."
        )
    if not mixing.told:
        how = "add up here" if mixing.value < 0.02 else "may just add up here"
        return f"{many} {how} ({measured}): weights are not determined."
    if mixing.value > 0.98:
        return f"{many} compete for weight ({measured})."
    return f"{many} partly add up and partly compete for weight here ({measured})."


def plane_heading(determined: bool) -> str:
    """The title of a plane, by whether weights are determined."""
    return f"What it says alone, and {'how much it weighs' if determined else 'what it adds here'}"


def plane_legend(e: Explanation) -> str:
    """How a plane is read."""
    across, upward = (meaning(e, name) for name in plane_scores(e) or ("value", e.ranking))
    return f"{plane_note(e)} To the right: {across}. Upwards: {upward}. Small pale dots say little."


def plane_note(e: Explanation) -> str:
    """The same for readers of a plane: also why it shows contributions, if it does."""
    said = standing(e)
    return said if is_determined(e) else f"{said[:-1]}, so the plane shows contributions."


def _link(e: Explanation) -> object:
    return getattr(e.surrogate, "link", None)


def saturation(e: Explanation) -> str:
    """A sentence on the bounds of the answer, if the explanation found any; else nothing."""
    link = getattr(e.surrogate, "link", None)
    if link is None:
        return ""
    low, high = (wording.number(bound) for bound in (link.lowest, link.highest))
    return f"however much evidence there is, the expected answer stays between {low} and {high}."


def glossary(e: Explanation) -> dict[str, str]:
    """The terms that a reader of the result meets, each with one or two sentences."""
    found: dict[str, str] = {}
    for name in main_scores(e):
        unit, words = scale(e, name), meaning(e, name)
        told = name not in _SCALED or unit in words
        found[name] = f"{words}{'' if told else f', in {unit}'}."
    if saturation(e):
        found["saturation"] = saturation(e)
    if e.mixing is not None:
        many = f"{wording.part(e)}s"
        found["mixing"] = (
            f"0 if {many} add up, 1 if they compete for weight; transformers lie between, and "
            f"Piste measures where. {standing(e)}"
        )
    if e.pairs and pair_terms.shown_pairs(e):
        found["together"] = pair_terms.meaning(e)
    if np.isfinite(e.fidelity.r2):
        found["R²"] = _fidelity(e)
    return found


def made(e: Explanation) -> str:
    """What was explained, how, and in what time."""
    form = e.settings.get("form")
    how = f"{e.method} ({form})" if form and form not in e.method else e.method
    spent = f" in {e.seconds:.1f} s" if np.isfinite(e.seconds) else ""  # corpus runs don't keep it
    return f"{wording.explained(e)}, by {how}{spent}."


_SCALED = ("value", "contribution")


def _fidelity(e: Explanation) -> str:
    low, high = e.fidelity.r2_range
    bounds = ""
    if np.isfinite([low, high]).all():
        bounds = f" (95 % interval {wording.plain(low)} to {wording.plain(high)})"
    error = wording.plain(float(np.sqrt(e.fidelity.mse)))
    return (
        f"1 is perfect, 0 a constant; from {e.fidelity.questions} {wording.what(e)}s that "
        f"were held out{bounds}, with a typical error of {error}."
    )


def _capital(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


def how_to_read(e: Explanation, name: str, label: str | int | None = None) -> str:
    """A score in a sentence or two: what it is, and what its sign means."""
    if name in UNDIRECTED or name == "importance":
        return f"{_capital(name)}: {meaning(e, name)}."
    if name == "value" and wording.of_answer(e) and not e.target.minus:
        return f"{_capital(name)}: {meaning(e, name)}."
    above, below = sides(e, name, label)
    return f"{_capital(name)}: {meaning(e, name)}. Above 0 it {above}, below 0 it {below}."


# -- which units a plane names -----------------------------------------------------------------


def most_names(e: Explanation) -> int:
    """Names one plane can hold; a part's name tells a reader less than a word does."""
    return 14 if wording.of_image(e) else 28


_FAINTEST = 0.12
"""Strength below which a unit says little, however surely."""
_FEWEST = 5
"""Units that are named in any case, so that a plane is not bare."""


def named(e: Explanation, some: list[wording.Kind], label: str | int | None = None) -> list[int]:
    """Kinds that say something, the strongest first: only they have a name and error bars.

    They are strong in the ranking, or alone unlike the others, and two standard errors tell it.
    """
    first = [kind.first for kind in some]
    parts, stand_out = [], []
    for score in ("value", e.ranking):
        if score not in e.scores:
            continue
        numbers = e.score(score, label)[first]
        if score != e.ranking:
            numbers = numbers - np.nanmedian(numbers)  # what all say alone is not telling
        weight = 1.0 if score == e.ranking else 0.8
        parts.append(weight * np.nan_to_num(np.abs(numbers)) / colours.scale(numbers))
        stand_out.append(wording.clear(numbers, e.error(score, label)[first]))
    strengths = np.max(parts, axis=0)
    order = wording.by_size(strengths)
    clear = np.any(stand_out, axis=0) & (strengths > _FAINTEST)
    chosen = [index for index in order if clear[index]][: most_names(e)]
    return chosen if len(chosen) >= _FEWEST else order[:_FEWEST]


MOST_CLASSES = 10
"""Classes offered when all are explained: the most probable ones."""


@dataclass(frozen=True)
class Column:
    """One score of every unit, of one class where each class has its own."""

    name: str
    label: str | None
    scores: Floats
    errors: Floats
    places: int
    meaning: str
    sides: tuple[str, str]
    """What positive and negative scores mean."""

    @property
    def title(self) -> str:
        return self.name if self.label is None else f"{self.name}, {self.label}"

    def shown(self, unit: int) -> str:
        """A unit's score with its error, as a reader wants it."""
        return wording.with_error(float(self.scores[unit]), float(self.errors[unit]), self.places)


def columns(e: Explanation, label: str | None = None) -> list[Column]:
    """Every score to show, the ranking one first; class-wise for ``label`` or the likely classes.

    A score that doesn't depend on the class (importance) is one column.
    """
    logits = np.asarray(e.output.logits)
    likely = [int(index) for index in np.argsort(-logits, kind="stable")[:MOST_CLASSES]]
    classes = likely if label is None else [e.output.labels.index(label)]
    result = []
    for name in sorted(shown(e), key=lambda name: name != e.ranking):
        wanted: list[int | None] = list(classes) if e.scores[name].ndim > 1 else [None]
        result += [_column(e, name, index) for index in wanted]
    return result


def _column(e: Explanation, name: str, index: int | None) -> Column:
    scores = e.score(name, index)
    return Column(
        name=name,
        label=None if index is None else e.output.labels[index],
        scores=scores,
        errors=e.error(name, index),
        places=wording.digits(scores),
        meaning=how_to_read(e, name, index),
        sides=sides(e, name, index),
    )


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
