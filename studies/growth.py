"""What an explanation costs as models grow, and what larger ones would take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

import piste
from piste.evaluation import Interval
from piste.show.figures.canvas import panels, plain_ticks
from studies.base import Table, shown
from studies.cases import AS_PUBLISHED
from studies.sequential import KINDS, Shape, count
from studies.timing import peak_memory, processor_seconds, recorded

Costs = Mapping[str, Any]
"""By model: its kind and parameters, and what an explanation of it took."""
SAMPLES = 200
_PAPERS = 5000
"""Samples of an explanation in the paper."""


def cost(classifier: Any, text: str, seed: int) -> dict[str, Any]:
    """Time, memory and fit of an explanation; the first one is not counted."""
    found: list[piste.Explanation] = []

    def explain() -> None:
        found.append(piste.explain(classifier, text, samples=SAMPLES, seed=seed, **AS_PUBLISHED))

    with peak_memory() as peak:  # later ones use the same memory again
        explain()
    with recorded() as asked:
        spent = [processor_seconds(explain)]
    spent.append(processor_seconds(explain))
    everything, multiplied = count(classifier.model)
    width = next(classifier.model.parameters()).element_size()
    return {
        "kind": classifier.config.model_type,
        "parameters": multiplied,
        "seconds": spent,
        "calls": len(asked),
        "tokens": sum(question.length for question in asked),
        "weights": everything * width / 1e6,
        "peak": peak[0],
        "r2": found[-1].fidelity.r2,
    }


def on_a_line(
    sizes: Sequence[float], costs: Sequence[float], target: float
) -> tuple[Interval, float]:
    """What ``target`` would cost by the straight line through the others, and the line's slope.

    The line has the smallest relative errors; the interval holds a measurement with 95 %, if it
    is a line.

    >>> found, slope = on_a_line([1, 2, 4], [5, 7, 11], 10)
    >>> round(found.centre, 6), round(found.low, 6), round(slope, 6)
    (23.0, 23.0, 2.0)
    """
    rows = np.stack([np.ones(len(sizes)), np.asarray(sizes)], axis=1)
    scaled = rows / np.asarray(costs)[:, None]
    line, *_ = np.linalg.lstsq(scaled, np.ones(len(sizes)), rcond=None)
    free = len(sizes) - 2
    variance = float(((scaled @ line - 1) ** 2).sum()) / free
    at = np.array([1.0, target])
    centre = float(at @ line)
    unsure = variance * float(at @ np.linalg.inv(scaled.T @ scaled) @ at)
    spread = float(stats.t.ppf(0.975, free)) * math.sqrt(unsure + variance * centre**2)
    return Interval(centre, max(centre - spread, 0.0), centre + spread, len(sizes)), float(line[1])


def _seconds(costs: Costs, kind: str, parameters: float) -> tuple[Interval, float]:
    """What a token takes by the line through a kind's sizes, and what a billion adds to it."""
    pairs = [
        (one["parameters"] / 1e9, second / one["tokens"])
        for one in costs.values()
        if one["kind"] == kind
        for second in one["seconds"]
    ]
    sizes, seconds = zip(*pairs, strict=True)
    return on_a_line(sizes, seconds, parameters / 1e9)


def minutes(costs: Costs, shape: Shape, samples: int) -> Interval:
    """What so many short questions to a model would take."""
    each = float(np.mean([one["tokens"] / one["calls"] for one in costs.values()]))
    token, _ = _seconds(costs, shape.kind, shape.parameters()[1])
    low, centre, high = (samples * each * one / 60 for one in (token.low, token.centre, token.high))
    return Interval(centre, low, high, token.examples)


def cost_table(costs: Costs) -> Table:
    """What was measured."""
    rows = []
    for name, one in costs.items():
        seconds = float(np.mean(one["seconds"]))
        speed = 2e-9 * one["parameters"] * one["tokens"] / seconds
        rows.append(
            (
                name,
                f"{one['parameters'] / 1e6:,.1f}",
                f"{seconds:.2f} ({min(one['seconds']):.2f} to {max(one['seconds']):.2f})",
                f"{1e3 * seconds / one['calls']:.1f}",
                f"{speed:.1f}",
                f"{one['weights']:,.0f}",
                "" if math.isnan(one["peak"]) else f"{one['peak']:,.0f}",
                f"{one['r2']:.2f}",
            )
        )
    return Table(
        f"An explanation by {SAMPLES} short questions, processor time",
        ("model", "million parameters without embeddings", "seconds", "ms per question",
         "GFLOP per second", "MB of weights", "MB beyond them at the peak", "held-out R²"),
        rows,
    )  # fmt: skip


def computed_table(costs: Costs, models: Mapping[str, tuple[Shape, str]]) -> Table:
    """What others would take, with what the paper found for them."""
    rows = []
    for name, (shape, areas) in models.items():
        everything, multiplied = shape.parameters()
        _, slope = _seconds(costs, shape.kind, multiplied)
        rows.append(
            (
                name,
                f"{everything / 1e9:.2f}",
                f"{4e-9 * everything:.1f}",
                f"{2e-9 * everything:.1f}",
                f"{2 / slope:.1f}",
                *(shown(minutes(costs, shape, samples), 1) for samples in (SAMPLES, _PAPERS)),
                areas,
            )
        )
    return Table(
        "What the paper's models would take on one core of this machine, computed from the sizes "
        "above (95 % interval of the line; nothing this large was run, and it would have to fit)",
        ("model", "billion parameters", "GB in float32", "GB in bfloat16", "GFLOP per second",
         f"minutes, {SAMPLES:,} samples", f"minutes, {_PAPERS:,} samples",
         "paper: AU-ROC of values / importances / lin., not measured here"),
        rows,
    )  # fmt: skip


def draw(costs: Costs) -> Figure:
    """Time and memory by size, with the lines that reach beyond."""
    figure, ((left, right),) = panels((10.0, 3.8), 1, 2)
    for kind in KINDS:
        own = [one for one in costs.values() if one["kind"] == kind]
        sizes = [one["parameters"] / 1e6 for one in own]
        spent = [1e3 * np.mean(one["seconds"]) / one["tokens"] for one in own]
        (drawn,) = left.plot(sizes, spent, "o", label=kind)
        reach = np.geomspace(min(sizes), 7000, 50)
        line = [1e3 * _seconds(costs, kind, 1e6 * size)[0].centre for size in reach]
        left.plot(reach, line, "--", color=drawn.get_color(), linewidth=1)
        right.plot(sizes, [one["weights"] + one["peak"] for one in own], "o-", label=kind)
    for axes, name in ((left, "processor ms per token"), (right, "MB, weights and work")):
        axes.set(xscale="log", yscale="log", xlabel="million parameters", ylabel=name)
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        axes.legend(frameon=False, fontsize=8)
    return figure
