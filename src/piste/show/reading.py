"""An explanation put into words and pieces, shared by terminal, figures and pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from piste.errors import PisteError
from piste.explanation import UNDIRECTED, Explanation
from piste.picture import Picture
from piste.show import colours
from piste.subject import Unit

Floats = NDArray[np.float64]

MEANINGS = {
    "value": "what the unit says when all weight is on it, in log-odds",
    "importance": "its weight against the others, a log-weight (0 is average, +0.7 doubles it)",
    "linear": "value × e^importance, both in one number to rank by",
    "gradient": "how the answer changes as the unit fades a little",
    "removal": "what the answer loses if the unit is removed",
    "shapley": "its fair share of the answer (Shapley value)",
    "sensitivity": "how strongly the answer reacts to the unit, without saying which way",
    "attribution": (
        "what the method gives the unit: its share of the answer, in the units of the answer"
    ),
}
"""What the known scores mean, in a few words."""


def of_picture(e: Explanation) -> bool:
    """Whether a picture was explained, not a text."""
    return isinstance(e.input, Picture)


def what(e: Explanation) -> str:
    """What was explained, as a noun."""
    return "picture" if of_picture(e) else "text"


def part(e: Explanation) -> str:
    """A unit as a noun: a picture has parts."""
    return "part" if of_picture(e) else "unit"


def meaning(e: Explanation, name: str) -> str:
    """What a score means, in a few words."""
    words = MEANINGS.get(name, f"what {e.method} gives the unit")
    return re.sub(r"\bthe unit\b", f"the {part(e)}", words)


@dataclass(frozen=True)
class Kind:
    """Units with the same text and the same scores, shown as one."""

    name: str
    units: tuple[int, ...]

    @property
    def first(self) -> int:
        return self.units[0]

    @property
    def title(self) -> str:
        return f"{self.name} ×{len(self.units)}" if len(self.units) > 1 else self.name


def kinds(e: Explanation) -> list[Kind]:
    """Units grouped by text (upper or lower case) and scores, in order of appearance."""
    return grouped(e.units, list(e.scores.values()))


def grouped(all_units: Sequence[Unit], scores: Sequence[Floats]) -> list[Kind]:
    """Units of the same text and the same scores as one kind; ``scores`` may be of any method.

    Where a word has several kinds, each is numbered by its place among the word's occurrences.
    """
    columns = [np.reshape(array, (len(all_units), -1)) for array in scores]
    rows = np.round(np.concatenate(columns, axis=1), 9) + 0.0  # −0 and 0 are one
    groups: dict[tuple[str, bytes], list[int]] = {}
    for index, unit in enumerate(all_units):
        groups.setdefault((unit.text.strip().casefold(), rows[index].tobytes()), []).append(index)
    several = Counter(word for word, _ in groups)
    places: Counter[str] = Counter()
    numbers = []
    for unit in all_units:
        word = unit.text.strip().casefold()
        places[word] += 1
        numbers.append(f" #{places[word]}" if several[word] > 1 else "")
    return [
        Kind(_commonest([all_units[i].text for i in units]) + numbers[units[0]], tuple(units))
        for units in groups.values()
    ]


def _commonest(forms: list[str]) -> str:
    return short(max(forms, key=forms.count))


def short(text: str, limit: int = 28) -> str:
    """A unit's text as a name: on one line, shortened, never empty."""
    line = " ".join(text.split()) or repr(text).strip("'")
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def by_size(scores: Floats) -> list[int]:
    """Indices from the largest |score| to the smallest, unknown ones last."""
    sizes = np.where(np.isfinite(scores), np.abs(scores), -1.0)
    return [int(index) for index in np.argsort(-sizes, kind="stable")]


def digits(scores: Floats) -> int:
    """Decimal places that tell the scores of a column apart: small scores need more.

    >>> digits(np.array([3.0, -0.1])), digits(np.array([0.03, 0.01]))
    (2, 3)
    """
    sizes = np.abs(scores[np.isfinite(scores)])
    most = float(sizes.max(initial=0))
    if most == 0:
        return 2
    return int(np.clip(2 - np.floor(np.log10(most / 0.3)), 0 if most >= 1000 else 2, 9))


def number(value: float, places: int = 2) -> str:
    """A signed number with a real minus; an unknown one is a dash."""
    if not np.isfinite(value):
        return "–" if np.isnan(value) else ("∞" if value > 0 else "−∞")
    shown = f"{value:+.{places}f}"
    return shown.replace("-", "−") if float(shown) else f"{0:.{places}f}"


def with_error(value: float, error: float, places: int = 2) -> str:
    """``+1.20 ± 0.10``; nothing after the number where the method has no error."""
    if np.isnan(error):
        return number(value, places)
    return f"{number(value, places)} ± {number(error, places).lstrip('+')}"


def percent(probability: float) -> str:
    """A probability as a reader wants it, never rounded to a certainty it isn't."""
    if 0.9995 <= probability < 1:
        return "> 99.9 %"
    if 0 < probability < 0.0005:
        return "< 0.1 %"
    return f"{100 * probability:.1f} %"


def shown_class(e: Explanation, label: str | int | None = None) -> str | None:
    """The class whose scores are shown if every class has its own, else None."""
    if all(array.ndim == 1 for array in e.scores.values()):
        if label is not None:
            raise PisteError(
                f"label={label!r} was given, but this explanation has one set of scores, for "
                f"{e.target.name}: leave label out, or explain with target='all'."
            )
        return None
    if label is None:
        return e.output.label
    e.score(label=label)  # refuses a class that isn't there
    return e.output.labels[label] if isinstance(label, int) else label


def sides(e: Explanation, label: str | int | None = None) -> tuple[str, str]:
    """What positive and negative scores mean, for legends."""
    target, labels = e.target, e.output.labels
    if target.kind == "margin" and len(target.indices) == 2:
        a, b = (labels[index] for index in target.indices)
        return f"speaks for {a}", f"speaks for {b}"
    known = shown_class(e, label)
    if known is None and target.kind == "class":
        known = labels[target.indices[0]]
    if known is None and target.kind == "output" and e.output.probabilities is not None:
        known = labels[target.indices[0]]
    if known is not None:
        return f"speaks for {known}", f"speaks against {known}"
    return f"raises {target.name}", f"lowers {target.name}"


def score_sides(e: Explanation, name: str, label: str | int | None = None) -> tuple[str, str]:
    """Like :func:`sides`, for one score: some have no direction, only weight."""
    if name == "importance":
        return "weighs more than average", "weighs less than average"
    if name in UNDIRECTED:
        return "the answer reacts to it", "no score is below 0"
    return sides(e, label)


def scale_ends(e: Explanation, name: str, label: str | int | None = None) -> tuple[str, str]:
    """What the high and the low end of a picture's colours mean: weight has one colour there."""
    if name == "importance":
        return "weighs most", "weighs least"
    if name in UNDIRECTED:
        return "the answer reacts most", "it doesn't react"
    return sides(e, label)


def prediction(e: Explanation) -> str:
    """The model's answer: a class with its probability, or the number of a regression."""
    chance = e.output.probability
    if chance is not None:
        return f"{e.output.label} ({percent(chance)})"
    return ", ".join(
        f"{label} = {number(value)}"
        for label, value in zip(e.output.labels, e.output.logits, strict=True)
    )


def explained(e: Explanation) -> str:
    """The target with the model's number for the whole input."""
    value = e.output.value
    if isinstance(value, tuple):
        return f"{e.target.name}; scores shown for {shown_class(e) or e.output.label}"
    return f"{e.target.name} = {number(value)}"


def trust(e: Explanation) -> str:
    """The fidelity in one plain sentence."""
    fidelity = e.fidelity
    if not np.isfinite(fidelity.r2):
        return "Not measured: too few questions were left to check the explanation with."
    verdict = fidelity.words[:1].upper() + fidelity.words[1:]
    low, high = fidelity.r2_range
    bounds = ""
    if np.isfinite([low, high]).all():
        bounds = f" ({number(low).lstrip('+')} to {number(high).lstrip('+')})"
    return (
        f"{verdict}: R² {number(fidelity.r2).lstrip('+')}{bounds} on {fidelity.questions} reduced "
        f"{what(e)}s it was not fitted to (1 is perfect, 0 no better than a constant); what it "
        f"expects is off by {number(float(np.sqrt(fidelity.mse))).lstrip('+')} there."
    )


def saturation(e: Explanation) -> str:
    """A sentence on the bounds of the answer, if the explanation found any; else nothing."""
    link = getattr(e.surrogate, "link", None)
    if link is None:
        return ""
    return (
        f" However much is said, the answer it expects stays between {number(link.lowest)} and "
        f"{number(link.highest)}: value and linear are of the evidence before that."
    )


def input_notes(e: Explanation) -> dict[str, object]:
    """What was done to the input, as the classifier noted it."""
    notes = e.settings.get("input")
    return dict(notes) if isinstance(notes, dict) else {}


def input_warnings(e: Explanation) -> Iterator[str]:
    """What was done to the input that the reader didn't ask for: the same for every method."""
    notes = input_notes(e)
    if notes.get("instead"):
        said = str(notes["instead"])
        yield f"{said[:1].upper()}{said[1:]}."
    if notes.get("long") == "truncate":
        count = notes.get("truncated_tokens")
        lost = f"its last {count} tokens were" if count else "its end was"
        yield f"The text was too long for the model: {lost} cut off, neither read nor explained."
    elif notes.get("long") == "windows":
        yield "The text was too long for the model: it was read in windows, answers are averaged."


def warnings(e: Explanation) -> Iterator[str]:
    """Sentences a reader must not miss: what was cut, what wasn't asked, what can't be trusted."""
    yield from input_warnings(e)
    asked = e.errors.get(e.ranking)
    unknown = 0 if asked is None else int(np.isinf(asked.reshape(len(e.units), -1)).any(1).sum())
    if unknown:
        every = f"{len(e.units)} {part(e)}s"
        yield f"Nothing was asked about {unknown} of {every}: give more samples."
    if e.fidelity.r2 < 0.5:
        yield "The explanation foretells the model badly: don't rely on its scores."


def telling(e: Explanation, some: list[Kind], label: str | int | None = None) -> list[int]:
    """Kinds in the order they deserve a label: strong in the ranking or extreme on an axis."""
    first = [kind.first for kind in some]
    parts = [e.score(None, label), e.score("value", label), 0.6 * e.score("importance")]
    shares = [np.abs(part[first]) / colours.scale(part) for part in parts]
    return by_size(np.max(shares, axis=0))


def main_scores(e: Explanation) -> list[str]:
    """Value and importance where there are any, and the score that ranks."""
    pair = ("value", "importance")
    return [name for name in pair if name in e.scores and name != e.ranking] + [e.ranking]


def most_labels(e: Explanation) -> int:
    """Labels one plane can hold; a part's name tells a reader less than a word does."""
    return 16 if of_picture(e) else 90


def how_to_read(e: Explanation, label: str | int | None = None) -> str:
    """One plain line on what the main scores mean."""
    above, below = sides(e, label)
    of = "part of the picture" if of_picture(e) else "unit"
    if {"value", "importance"} <= set(e.scores):
        return (
            f"Value is what a {of} says when all weight is on it: above 0 it {above}, below 0 it "
            f"{below}. "
            f"Importance is its weight against the other {part(e)}s: 0 is average, +0.7 counts "
            f"double.{saturation(e)}"
        )
    known = meaning(e, e.ranking) if e.ranking in MEANINGS else ""
    if e.ranking in UNDIRECTED and known:
        return f"{e.ranking[:1].upper()}{e.ranking[1:]} is {known}."
    name = f"{e.ranking[:1].upper()}{e.ranking[1:]} is {known}. " if known else ""
    return f"{name}A score above 0 {above}, one below 0 {below}; the larger, the more it counts."
