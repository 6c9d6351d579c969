"""Table 12: how many samples are enough for a ranking as good as SHAP's?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes

import piste
from piste.evaluation import Example, Interval, evaluate, interval, read_data
from studies.base import Table, Work, graded, shown
from studies.judged import AS_PUBLISHED
from studies.reviews import made_up

OURS = "Piste's default"
SHAP = "SHAP, automatic"
_PAPER: Mapping[int, float] = {
    500: 0.9243,
    1000: 0.9236,
    2000: 0.9348,
    5000: 0.9387,
    10000: 0.9387,
}
"""Deletion AOPC by number of samples."""
_PAPER_SHAP = 0.9135

Areas = Mapping[str, Sequence[float]]
"""By explainer: the deletion AOPC of every review."""


def reviews(work: Work) -> list[Example]:
    """What is explained."""
    if work.quick:
        return made_up(6, seed=work.seed + 1)
    path = work.need("imdb.parquet", "data")
    return read_data(path, split="test", examples=24, seed=work.seed, words=(100, 250))


def judged(work: Work, examples: Sequence[Example]) -> Areas:
    """Every review by everyone, a part each."""
    numbers = (100, 500) if work.quick else tuple(_PAPER)
    found = [work.part(f"review {one.id}", partial(_areas, one, numbers, work)) for one in examples]
    return {name: [one[name] for one in found] for name in found[0]}


def _areas(example: Example, numbers: Sequence[int], work: Work) -> dict[str, float]:
    """Of SHAP with its automatic budget, and of SLALOM with growing ones.

    The library's "auto" is 2,048 and two for every unit, of which Piste keeps up to a hundred
    for its verdict.
    """
    classifier = piste.load("piste:reviews")
    units = len(classifier.subject(example.input, long="truncate"))
    methods = {SHAP: f"kernel_shap[samples={2 * units + 2048}]"}
    for number in numbers:
        methods[f"SLALOM, {number:,}"] = AS_PUBLISHED.replace("]", f",samples={number}]")
    methods[OURS] = "slalom"
    results = evaluate(
        classifier,
        [example],
        methods=methods.values(),
        metrics="deletion",
        seed=work.seed,
        progress=False,
    )
    return {
        name: results.values(label, "aopc").get(example.id, math.nan)
        for name, label in zip(methods, results.methods, strict=True)
    }


def above_shap(areas: Areas, name: str) -> Interval:
    """By how much, on the same reviews."""
    return interval(np.array(areas[name]) - np.array(areas[SHAP]))


def table(areas: Areas) -> Table:
    """Ours beside the paper's."""
    paper = {f"SLALOM, {number:,}": area for number, area in _PAPER.items()} | {SHAP: _PAPER_SHAP}
    rows = [
        (
            name,
            shown(interval(own), 3),
            "" if name == SHAP else shown(above_shap(areas, name), 3),
            f"{paper[name]:.3f}" if name in paper else "",
        )
        for name, own in areas.items()
    ]
    return Table(
        f"Deletion AOPC on piste:reviews, mean over {len(areas[SHAP])} reviews (95 % interval)",
        ("explainer, samples", "AOPC", "above SHAP", "paper's AOPC"),
        rows,
    )


def claim(areas: Areas) -> tuple[str, str, str]:
    """Whether 500 are enough."""
    most = [name for name in areas if name.startswith("SLALOM")][-1]
    gap, last, ours = (above_shap(areas, one) for one in ("SLALOM, 500", most, OURS))
    return (
        "500 samples are enough for what SHAP reaches with its automatic budget",
        f"above SHAP by {shown(gap, 3)} with 500, by {shown(last, 3)} with {most.split()[-1]}; "
        f"{OURS} by {shown(ours, 3)}",
        graded(gap.high >= 0, gap.high >= -0.05),
    )


def draw(axes: Axes, areas: Areas) -> None:
    """A point with its interval for everyone."""
    means = [interval(own) for own in areas.values()]
    places = np.arange(len(means))[::-1]
    centres = np.array([one.centre for one in means])
    bounds = np.array([[one.low, one.high] for one in means]).T
    axes.errorbar(centres, places, xerr=np.abs(bounds - centres), fmt="o", capsize=2)
    axes.set_yticks(places, list(areas), fontsize=8)
    axes.set_xlabel("deletion AOPC")
