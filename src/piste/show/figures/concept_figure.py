"""Concept scores as a figure: bars per layer, with what random sets score behind them."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from piste.concepts.report import ConceptReport
from piste.concepts.sensitivity import ABOUT
from piste.show.figures.canvas import (
    FAINT,
    INK,
    RULE,
    add_title,
    families,
    format_of,
    panels,
    save,
    writable,
)
from piste.show.terminal.concept_tables import headline

# Colours that have counterparts on a dark ground.
_SHADES = (
    "#0b57a4", "#c24e00", "#00795c", "#b8911b", "#6a63c9", "#db5f45", "#33a884", "#7a3a0c",
)  # fmt: skip
_BAND = "#a0a7af"


def plot(
    report: ConceptReport, path: str | Path | None = None, *, kind: str | None = None
) -> Figure:
    """One panel per class; also saved if ``path`` is given.

    Bars grow from one half, up if more examples rise along a concept than fall. Full ones are
    shown to differ from random sets, pale ones are not; a cross stands where a concept can't be
    told from random sets.
    """
    if path is not None:
        format_of(path)  # refused before the work
    chosen = report.main_kind if kind is None else kind
    report.select(kind=chosen)  # refuses what isn't there
    count = len(report.concepts)
    width = max(6.4, 1.6 + len(report.layers) * (0.5 + 0.3 * count))
    size = (min(width, 16.0), 1.3 + 3.0 * len(report.targets))
    figure, rows = panels(size, len(report.targets), 1)
    for (axes,), target in zip(rows, report.targets, strict=True):
        _panel(axes, report, chosen, target)
    _legend(rows[0][0], report)
    # The headline tells of the main kind only.
    title = headline(report) if chosen == report.main_kind else f"Scores by kind {chosen!r}"
    about = next(words for name, words in ABOUT.items() if name == chosen)
    add_title(
        figure,
        title,
        f"{about} · mean of {report.settings.get('repeats')} vectors, bars: 95 % intervals over "
        "vectors and examples",
    )
    if path is not None:
        save(figure, path)
    return figure


def _panel(axes: Axes, report: ConceptReport, kind: str, target: str) -> None:
    names, layers = list(report.concepts), report.layers
    step = 0.8 / len(names)
    for one in report.select(kind=kind, target=target):
        place = layers.index(one.layer) - 0.4 + step * (names.index(one.concept) + 0.5)
        colour = _SHADES[names.index(one.concept) % len(_SHADES)]
        axes.bar(
            place, one.random_high - one.random_low, bottom=one.random_low, width=step,
            color=_BAND, alpha=0.28, lw=0, zorder=1,
        )  # fmt: skip
        if one.verdict == "not separable":
            axes.plot(place, 0.5, marker="x", color=FAINT, ms=5, zorder=6)
            continue
        sure = one.verdict != "unclear"
        axes.bar(
            place, one.score - 0.5, bottom=0.5, width=0.82 * step, color=colour,
            alpha=1.0 if sure else 0.4, lw=0, zorder=2,
        )  # fmt: skip
        below, above = max(one.score - one.low, 0.0), max(one.high - one.score, 0.0)
        axes.errorbar(
            place, one.score, yerr=[[below], [above]], fmt="none", ecolor=INK, elinewidth=0.9,
            capsize=2, zorder=3,
        )  # fmt: skip
    axes.axhline(0.5, color=FAINT, lw=0.8, zorder=5)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlim(-0.6, len(layers) - 0.4)
    axes.set_xticks(range(len(layers)), [_layer(layer) for layer in layers])
    axes.set_ylabel("share that rises")
    axes.set_title(
        writable(target), loc="left", fontsize=10.5, color=INK, parse_math=False, family=families()
    )
    axes.grid(axis="y", color=RULE, lw=0.5, alpha=0.6)
    axes.set_axisbelow(True)


def _layer(layer: int) -> str:
    return "embeddings" if layer == 0 else f"layer {layer}"


def _legend(axes: Axes, report: ConceptReport) -> None:
    shown: list[Patch | Line2D] = [
        Patch(color=_SHADES[place % len(_SHADES)], label=writable(name))
        for place, name in enumerate(report.concepts)
    ]
    shown.append(Patch(color=_BAND, alpha=0.4, label="95 % of random sets"))
    shown.append(Line2D([], [], marker="x", ls="", color=FAINT, label="not told from random sets"))
    legend = axes.legend(
        handles=shown, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8.5
    )
    for text in legend.get_texts():
        text.set(color=INK, parse_math=False, family=families())
