"""The page and the figures of the frontier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.frontier.contenders import ENGINE, LIBRARY, OURS, PAPER
from benchmarks.frontier.curves import (
    Lead,
    Point,
    Ratio,
    Row,
    complete,
    frontier,
    is_peer,
    leads,
    points,
    ratio,
)

METRICS = {
    "r2 all": "R², all sizes",
    "r2 log": "R², log sizes",
    "r2 one": "R², single units",
    "deletion p": "deletion AOPC",
}
ABOUT = (
    "Who reaches what in how many seconds: one table for each figure, then everyone's budgets by "
    "model; who was not measured on all inputs is in the latter only. "
    "[How it was measured](../performance.md#how-it-was-measured)."
)
LOWEST = -0.25
"""Worse R² are drawn here."""
_COLOURS = {
    OURS: "#1f5fbf",
    PAPER: "#7fb0e8",
    "published": "#c8553d",
    "LIME": "#3a9d5d",
    "Kernel SHAP": "#d9a21b",
    "Partition SHAP": "#8a6d3b",
    "Permutation SHAP": "#b07cc6",
    "ContextCite": "#52b8b0",
    "SPEX": "#e07ba0",
    "ProxySPEX": "#a0315d",
    "AttnLRP": "#222222",
    "interpreto": "#9aa5b1",
    "captum": "#6b7a4f",
}


def write(rows: Sequence[Row], names: Sequence[str], folder: Path | None) -> str:
    """The page with what was measured of these models; into ``folder`` with its figures, if any."""
    models = {}
    for name in names:
        own = [row for row in rows if row["model"] == name]
        if own:
            models[name] = own
    everyone = {name: points(own, METRICS) for name, own in models.items()}
    found = {name: complete(some) for name, some in everyone.items()}
    lines = ["# The frontier", "", ABOUT, ""]
    for metric, title in METRICS.items():
        lines += [f"## {title}", "", *_overview(models, found, metric), ""]
    for name, some in found.items():
        lines += [f"## {name}", ""]
        if folder is not None:
            file = f"frontier-{name}.png"
            draw(name, some).savefig(folder / file, dpi=110)
            lines += [f"![{name}: fidelity against seconds]({file})", ""]
        lines += [*_everyone(everyone[name]), ""]
    text = "\n".join(lines)
    if folder is not None:
        together(found).savefig(folder / "frontier.png", dpi=110)
        (folder / "frontier.md").write_text(text, encoding="utf-8")
    return text


def _overview(
    models: dict[str, list[Row]], found: dict[str, list[Point]], metric: str
) -> list[str]:
    lines = [
        "| model | inputs | units | best peer (questions) | peers' best | its seconds "
        "| Piste's seconds for it | peer ÷ Piste | Piste's best | its seconds "
        "| where a peer leads |",
        "|" + "---|" * 11,
    ]
    for name, rows in models.items():
        best = ratio(found[name], metric)
        ours = frontier([point for point in found[name] if point.family == OURS], metric)
        if not ours:
            continue
        inputs = ours[0].inputs
        units = f"{np.median([row['units'] for row in rows]):.0f}"
        peer = _ratio(best) if best else ["none is above 0", "", "", "", ""]
        own = [_figure(ours[-1].figures[metric]), _seconds(ours[-1].seconds)]
        where = "; ".join(map(_lead, leads(found[name], metric))) or "nowhere"
        lines.append(f"| {' | '.join([name, str(inputs), units, *peer, *own, where])} |")
    return lines


def _ratio(best: Ratio) -> list[str]:
    family = best.peer.family
    if best.peer.budget is not None:
        family += f" ({best.peer.budget})"
    times = "" if math.isinf(best.ours) else f"{best.times:.1f}"
    ours = "not reached" if math.isinf(best.ours) else _seconds(best.ours)
    return [family, _figure(best.reached), _seconds(best.peer.seconds), ours, times]


def _lead(lead: Lead) -> str:
    end = "on" if math.isinf(lead.end) else f"to {_seconds(lead.end)} s"
    fall = "" if abs(lead.first - lead.last) < 0.005 else f" to {lead.last:.2f}"
    return f"{lead.family}, from {_seconds(lead.start)} s {end}, by {lead.first:.2f}{fall}"


def _everyone(some: Sequence[Point]) -> list[str]:
    titles = " | ".join(METRICS.values())
    lines = [f"| explainer | called | questions | inputs | seconds | {titles} |", "|" + "---|" * 9]
    for point in sorted(some, key=lambda one: (is_peer(one), one.family, one.way, one.seconds)):
        figures = [_figure(point.figures[metric]) for metric in METRICS]
        called = {ENGINE: "through Piste", LIBRARY: "by its library"}[point.way]
        cells = [point.family, "" if not is_peer(point) else called]
        cells += [str(point.budget or "default"), str(point.inputs), _seconds(point.seconds)]
        cells += figures
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _figure(number: float) -> str:
    shown = f"{number:.2f}" if number > -10 else "below −10"
    return shown.replace("-", "−")


def _seconds(number: float) -> str:
    return f"{number:.2g}" if number < 1 else f"{number:.3g}"


def draw(name: str, some: Sequence[Point]) -> Figure:
    """One model: four figures against seconds."""
    figure = Figure(figsize=(10.5, 8.2), layout="constrained")
    for metric, axes in zip(METRICS, figure.subplots(2, 2).flat, strict=True):
        panel(axes, some, metric)
        axes.set_title(METRICS[metric], fontsize=10)
    figure.suptitle(f"{name}: what is reached in how many seconds", fontsize=11)
    figure.supxlabel(
        "seconds of one thread; filled: by its own library, open: through Piste", fontsize=9
    )
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8, frameon=False)
    return figure


def together(found: dict[str, list[Point]], metric: str = "r2 all") -> Figure:
    """All models beside each other, one figure of fidelity."""
    columns = min(3, max(len(found), 1))
    rows = -(-len(found) // columns)
    figure = Figure(figsize=(3.6 * columns + 1.8, 2.9 * rows + 0.4), layout="constrained")
    cells: list[Axes] = list(np.ravel(figure.subplots(rows, columns, squeeze=False)))
    handles: dict[str, Any] = {}
    for axes, (name, some) in zip(cells, found.items(), strict=False):
        panel(axes, some, metric)
        axes.set_title(name, fontsize=9)
        drawn, labels = axes.get_legend_handles_labels()
        handles |= dict(zip(labels, drawn, strict=True))
    for axes in cells[len(found) :]:
        axes.set_axis_off()
    figure.supylabel(METRICS[metric], fontsize=9)
    figure.supxlabel("seconds of one thread", fontsize=9)
    figure.legend(
        handles.values(), list(handles), loc="outside right upper", fontsize=8, frameon=False
    )
    return figure


def panel(axes: Axes, some: Sequence[Point], metric: str) -> None:
    """Points of everyone, and the frontier of all as a step behind them."""
    edge = frontier(some, metric)
    last = max(point.seconds for point in some)
    lowest = LOWEST if metric.startswith("r2") else -math.inf
    heights = [max(point.figures[metric], lowest) for point in edge]
    axes.step(
        [*(point.seconds for point in edge), last], [*heights, heights[-1]],
        where="post", color="#d5d9de", linewidth=5, zorder=0,
    )  # fmt: skip
    for label in _COLOURS:
        families = sorted({p.family for p in some if _group(p.family) == label})
        first = True
        for family in families:
            for way in (ENGINE, LIBRARY):
                own = [p for p in some if p.family == family and p.way == way]
                if not own:
                    continue
                ours = label in (OURS, PAPER)
                axes.plot(
                    [p.seconds for p in own], [max(p.figures[metric], lowest) for p in own],
                    color=_COLOURS[label], linewidth=1.8 if label == OURS else 0.7,
                    marker="o", markersize=5 if label == OURS else 3.5,
                    markerfacecolor=_COLOURS[label] if ours or way == LIBRARY else "white",
                    label=label if first else None, zorder=3 if label == OURS else 2,
                )  # fmt: skip
                first = False
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
    if metric.startswith("r2"):
        axes.set_ylim(LOWEST - 0.04, 1.02)
    axes.grid(color="#eceff2", linewidth=0.6)
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _group(family: str) -> str:
    """Families of one package are drawn alike."""
    return family if family in (OURS, PAPER) else family.split(",")[0]
