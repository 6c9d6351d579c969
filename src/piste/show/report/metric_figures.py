"""What an evaluation found, as figures: intervals, removal curves with bands, fidelity, cost."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from piste.data.files import make_folder
from piste.evaluation.bootstrap import summary
from piste.evaluation.metrics.base import Average
from piste.evaluation.metrics.removal import GRID
from piste.evaluation.results import Results
from piste.show.figures.canvas import (
    INK,
    RULE,
    add_title,
    families,
    format_of,
    panels,
    plain_ticks,
    save,
    writable,
)
from piste.show.labels import FAMILIES, Style, styles
from piste.show.report.dot_figures import cost, intervals
from piste.types import Floats

_DRAWS = 500
_CHUNK = 2_000_000


@dataclass(frozen=True)
class Spread:
    """The average of curves at every place, and the bounds of 95 % of resampled ones."""

    centre: Floats
    low: Floats
    high: Floats
    examples: int


def spreads(results: Results, name: str, average: Average = "mean") -> dict[str, Spread]:
    """The curve of every method that has it; curves of another length than the first are left out.

    Places where a curve is NaN (fewer units than that were there to remove) don't count.
    """
    found = {}
    for method in results.methods:
        curves = [
            np.asarray(row.curves[name], dtype=np.float64)
            for row in results.rows
            if row.method == method and len(row.curves.get(name, ()))
        ]
        curves = [curve for curve in curves if len(curve) == len(curves[0])]
        if curves and np.isfinite(np.concatenate(curves)).any():
            found[method] = spread(np.stack(curves), average)
    return found


def spread(curves: Floats, average: Average = "mean", *, seed: int = 0) -> Spread:
    """Average and band of curves (examples × places), by resampling whole examples.

    >>> one = spread(np.array([[1.0, 0.0], [1.0, 0.5], [1.0, np.nan]]))
    >>> one.centre.tolist(), one.low.tolist(), one.high.tolist()
    ([1.0, 0.25], [1.0, 0.0], [1.0, 0.5])
    """
    n, places = curves.shape
    curves = np.where(np.isfinite(curves), curves, np.nan)
    put_together = np.nanmean if average == "mean" else np.nanmedian
    rng = np.random.default_rng(seed)
    rows = max(_CHUNK // (n * places), 1)
    with warnings.catch_warnings():
        # A place where no example has a number is NaN, and that is right.
        warnings.simplefilter("ignore", category=RuntimeWarning)
        drawn = [
            put_together(curves[rng.integers(0, n, (min(rows, _DRAWS - start), n))], axis=1)
            for start in range(0, _DRAWS, rows)
        ]
        low, high = np.nanquantile(np.concatenate(drawn), [0.025, 0.975], axis=0)
        return Spread(put_together(curves, axis=0), low, high, n)


__all__ = ["cost", "draw", "fidelity", "intervals", "removal", "write_figures"]

FEW_METHODS = 6
"""So many lines can share one panel; more are told apart family by family."""
_DEEPEST = 300.0
"""Errors this many times below the median are as good as none."""
_ROWS = {"deletion": "Deletion", "insertion": "Insertion"}


def write_figures(results: Results, folder: str | Path, suffix: str = ".png") -> list[Path]:
    """Write every figure the results have numbers for; the paths of those written."""
    format_of(f"figure{suffix}")  # refused before the work
    home = make_folder(folder)
    written = []
    for name, figure in draw(results).items():
        path = home / f"{name}{suffix}"
        save(figure, path)
        written.append(path)
    return written


def draw(results: Results) -> dict[str, Figure]:
    """All figures by name; those the results have no numbers for are left out."""
    found = summary(results)
    drawn = {
        "intervals": intervals(results, found),
        "removal": removal(results),
        "fidelity": fidelity(results),
        "cost": cost(results, found),
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def removal(results: Results) -> Figure | None:
    """Deletion and insertion: the mean chance over examples as units go or come by rank."""
    return _curves(
        results,
        {
            "deletion": "share of units removed, the strongest first",
            "insertion": "share of units kept, the strongest first",
        },
        lambda count: GRID if count == len(GRID) else np.linspace(0.0, 1.0, count),
        "chance of the explained answer",
        "Does the answer hang on the units that rank first?",
        "deletion: a good ranking lets it fall soon · insertion: a good ranking lets it rise soon"
        " · bands: 95 % of resampled means",
    )


def fidelity(results: Results) -> Figure | None:
    """The squared error of what explanations predict, by the number of removed units."""
    return _curves(
        results,
        {"mse_by_removed": "number of units removed at random"},
        lambda count: np.arange(1.0, count + 1),
        "squared error of the predicted change",
        "How well is the effect of a removal predicted?",
        "medians over examples, log scale, lower is better · bands: 95 % of resampled medians",
        log=True,
    )


def _curves(
    results: Results,
    names: Mapping[str, str],
    grid: Callable[[int], Floats],
    label: str,
    title: str,
    under: str,
    *,
    log: bool = False,
) -> Figure | None:
    """One row per curve; with many methods one column per family, SLALOM and controls in each."""
    average: Average = "median" if log else "mean"  # few errors would rule the mean
    found = {name: spreads(results, name, average) for name in names}
    found = {name: curves for name, curves in found.items() if curves}
    if not found:
        return None
    looks = styles(results.methods)
    methods = [m for m in results.methods if any(m in curves for curves in found.values())]
    groups = _columns(methods, looks)
    across = len(found) if len(groups) == 1 else len(groups)  # one group: curves side by side
    down = len(found) * len(groups) // across
    size = (2.6 + 4.6 * across, 0.8 + 3.5 * down)
    figure, grid_of_axes = panels(size, down, across, sharey="row")
    flat = [axes for row in grid_of_axes for axes in row]
    rows = [flat[start : start + len(groups)] for start in range(0, len(flat), len(groups))]
    for row, (name, curves) in zip(rows, found.items(), strict=True):
        for axes, (heading, group) in zip(row, groups.items(), strict=True):
            _panel(axes, {m: curves[m] for m in group if m in curves}, looks, grid, log)
            axes.set_xlabel(names[name], fontsize=9.5)
            shown = " · ".join(filter(None, (_ROWS.get(name, ""), heading)))
            axes.set_title(shown, loc="left", fontsize=10, color=INK)
        if row[0].get_subplotspec().is_first_col():  # type: ignore[union-attr]  # they are in a grid
            row[0].set_ylabel(label, fontsize=9.5)
    add_title(figure, title, under)
    return figure


def _columns(methods: Sequence[str], looks: Mapping[str, Style]) -> dict[str, list[str]]:
    """Methods by panel: all in one if they are few, else a panel for every family."""
    there = {looks[method].family for method in methods}
    split = [family for family in ("black-box", "white-box") if family in there]
    if len(methods) <= FEW_METHODS or len(split) < 2:
        return {"": list(methods)}
    return {
        f"SLALOM and {FAMILIES[one]}" if "slalom" in there else FAMILIES[one]: [
            method for method in methods if looks[method].family in (one, "slalom", "control")
        ]
        for one in split
    }


def _lift(axes: Axes, curves: Iterable[Spread]) -> None:
    """Let an error that is zero by design (of the removals a method asked) not squeeze the rest."""
    means = np.concatenate([one.centre for one in curves])
    means = means[np.isfinite(means) & (means > 0)]
    if means.size and means.min() < np.median(means) / _DEEPEST:
        axes.set_ylim(bottom=float(np.median(means)) / _DEEPEST)


def _panel(
    axes: Axes,
    curves: Mapping[str, Spread],
    looks: Mapping[str, Style],
    grid: Callable[[int], Floats],
    log: bool,
) -> None:
    # The legend reads as the lines lie: from the top to the bottom.
    order = sorted(curves, key=lambda method: -float(np.nanmean(curves[method].centre)))
    for number, method in enumerate(order):
        spread, look = curves[method], looks[method]
        x = grid(len(spread.centre))
        front = {"slalom": 5.0, "control": 2.0}.get(look.family, 3.0)
        every = (number % 3, max(len(x) // 6, 1))  # markers of near lines stand apart
        axes.plot(
            x, spread.centre, color=look.colour, lw=look.width, ls=look.dashes, zorder=front,
            marker=look.marker or None, markevery=every, ms=5, mec="#ffffff", mew=0.5,
            label=writable(method),
        )  # fmt: skip
        axes.fill_between(
            x, spread.low, spread.high, color=look.colour, lw=0, zorder=1,
            alpha=0.2 if look.family == "slalom" else 0.09,
        )  # fmt: skip
    if log:
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
        _lift(axes, curves.values())
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y", color=RULE, lw=0.5, alpha=0.6)
    axes.margins(x=0.02)
    legend = axes.legend(
        loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8.5,
        handlelength=2.6, labelspacing=0.55,
    )  # fmt: skip
    for method, text in zip(order, legend.get_texts(), strict=True):
        weight = "bold" if looks[method].family == "slalom" else "normal"
        text.set(color=INK, parse_math=False, family=families(), fontweight=weight)
