"""What the usual figures are called for a reader, and what they say in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from piste.show import wording
from piste.types import Floats

SPAN = 15.0
"""Errors and times that differ by more than this factor are drawn on a log scale."""


@dataclass(frozen=True)
class Measure:
    """A figure as a heading, as something one can be best at, and as an explanation."""

    title: str
    skill: str
    about: str


MEASURES: Mapping[str, Measure] = {
    "aopc": Measure(
        "deletion AOPC",
        "finding the units that carry the answer",
        "how far the answer's probability falls, on average, while the strongest units are "
        "removed first",
    ),
    "insertion": Measure(
        "insertion loss",
        "finding the units that suffice for the answer",
        "how much of the answer's probability is missing, on average, while only the strongest "
        "units are kept",
    ),
    "comprehensiveness": Measure(
        "comprehensiveness",
        "finding the few units that matter most",
        "how much of the answer's probability is lost without the few strongest units",
    ),
    "sufficiency": Measure(
        "sufficiency",
        "finding the few units that suffice",
        "how much of the answer's probability is lost if only the few strongest units are kept",
    ),
    "r2_all": Measure(
        "R², all sizes",
        "predicting removals of every size",
        "how well the explanation predicts the model when any number of units is removed: 1 is "
        "perfect, 0 no better than a constant",
    ),
    "r2_few": Measure(
        "R², few removed",
        "predicting what few removals change",
        "how well the explanation predicts what removing one to five units changes: 1 is "
        "perfect, 0 no better than a constant",
    ),
    "mse_few": Measure(
        "error, few removed",
        "predicting removals of few units",
        "mean squared error of the change that the explanation predicts for one to five removed "
        "units",
    ),
    "mse_all": Measure(
        "error, all sizes",
        "a small error over removals of every size",
        "mean squared error of the change that the explanation predicts, over removals of every "
        "size",
    ),
    "spearman_single": Measure(
        "single removals",
        "ranking the units as their single removal does",
        "rank correlation of the scores with what removing each unit alone changes",
    ),
    "auroc": Measure(
        "people's marks",
        "finding what people marked",
        "chance that a unit people marked scores above one they didn't (0.5 is chance level)",
    ),
    "auprc": Measure(
        "people's marks, precision",
        "finding what people marked, and little else",
        "average precision at finding the units people marked",
    ),
    "token_f1": Measure(
        "people's marks, F1",
        "choosing the units people marked",
        "F1 of as many of the strongest units as people marked",
    ),
    "spearman_nb": Measure(
        "naive Bayes",
        "ranking words as a naive Bayes model does",
        "rank correlation of the scores with the words' evidence in a naive Bayes model",
    ),
    "stability": Measure(
        "stability",
        "ranking the units alike with every seed",
        "rank correlation of the scores between runs that differ in their seed only",
    ),
    "stability_pearson": Measure(
        "stability of scores",
        "giving the same scores with every seed",
        "correlation of the scores between runs that differ in their seed only",
    ),
    "stability_top5": Measure(
        "stability of the top five",
        "naming the same five units with every seed",
        "share of the five strongest units that two runs with different seeds have in common",
    ),
    "equal_inputs": Measure(
        "equal inputs",
        "ranking equal texts alike",
        "rank correlation of the scores with those of a text that means the same to the model",
    ),
    "sanity": Measure(
        "sanity",
        "depending on what the model learned",
        "rank correlation of the scores' sizes with those for a model whose weights were shuffled",
    ),
    "seconds": Measure("seconds", "speed", "how long one explanation took"),
    "calls": Measure("calls", "few questions", "how many questions one explanation asked"),
}


def title(name: str) -> str:
    """A figure's heading: its own name where there is no better one."""
    return MEASURES[name].title if name in MEASURES else name.replace("_", " ")


@dataclass(frozen=True)
class Places:
    """How the numbers of a figure are written, so that all of them can be told apart."""

    decimals: int | None
    """None: as many as give two significant digits."""

    def of(self, value: float) -> int:
        """Decimal places of one number."""
        if self.decimals is not None:
            return self.decimals
        size = abs(value) if np.isfinite(value) and value else 1.0
        return int(np.clip(1 - np.floor(np.log10(size)), 0, 9))


def places(name: str, values: Iterable[float]) -> Places:
    """Numbers of one size share their places; those that span several have two digits each."""
    known = np.array([value for value in values if np.isfinite(value)], dtype=np.float64)
    if name == "calls":
        return Places(0)
    return Places(None if spans(name, known) else wording.digits(known))


def spans(name: str, values: Floats) -> bool:
    """Whether the numbers are sizes (errors, times) so different that ratios tell more.

    >>> spans("seconds", np.array([0.01, 2.0])), spans("aopc", np.array([0.01, 0.9]))
    (True, False)
    """
    sized = name.startswith("mse") or name in ("seconds", "calls")
    return bool(sized and values.size and 0 < values.min() < values.max() / SPAN)


def shown(value: float, rule: Places) -> str:
    """A number without a plus sign, thousands apart; a dash where unknown.

    >>> [shown(value, places("aopc", [0.9, 0.2])) for value in (0.9, -0.25, float("nan"))]
    ['0.90', '−0.25', '–']
    >>> [shown(value, places("mse_few", [0.004, 5.0])) for value in (0.004, 0.31, 1234.5)]
    ['0.0040', '0.31', '1,234']
    """
    if not np.isfinite(value):
        return wording.number(value)
    text = f"{value:,.{rule.of(value)}f}"
    if not float(text.replace(",", "")):
        text = text.lstrip("-")
    return text.replace("-", "−")
