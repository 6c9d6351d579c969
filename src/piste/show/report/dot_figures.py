"""Means with their intervals as dots: method by method, and against what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from piste.evaluation.bootstrap import summary
from piste.evaluation.results import Interval, Results
from piste.show import labels
from piste.show.figures import dot_labels
from piste.show.figures.canvas import (
    FAINT,
    INK,
    RULE,
    add_title,
    families,
    panels,
    plain_ticks,
    writable,
)
from piste.show.labels import FAMILIES, Style, family, styles
from piste.show.report.standings import Summary, main_figures, places, ranked, sign, standing

MOST_PANELS = 6
_MORE = ("spearman_single", "auroc", "spearman_nb", "seconds")
# Below this an R² is useless, and how useless is no matter.
_FLOORS = {"r2_all": -1.0, "r2_few": -1.0}
_AREA = 34.0


@dataclass(frozen=True)
class Scale:
    """The part of an axis worth showing; what lies beyond is drawn at its edge, with its number."""

    low: float
    high: float
    log: bool

    @staticmethod
    def of(found: Sequence[Interval], name: str = "") -> Scale:
        """Logarithmic for a figure that spans sizes, else without what is far from all others."""
        means = np.array([one.centre for one in found])
        ends = np.array([[one.low, one.high] for one in found])
        ends = np.where(np.isfinite(ends), ends, means[:, None])
        if labels.spans(name, means):
            low = float(np.where(ends[:, 0] > 0, ends[:, 0], means).min())
            room = (ends.max() / low) ** 0.08
            return Scale(low / room, float(ends.max()) * room, log=True)
        first, last = np.quantile(means, [0.25, 0.75])
        reach = 3 * (last - first) + float(np.median(ends[:, 1] - ends[:, 0])) or np.inf
        floor = _FLOORS.get(name, -np.inf)
        usual = (means >= max(first - reach, floor)) & (means <= last + reach)
        usual = usual if usual.any() else np.ones(len(means), dtype=bool)
        low, high = float(ends[usual].min()), float(ends[usual].max())
        if np.isfinite(floor):  # an R² of zero is a mark worth seeing
            low, high = min(max(low, floor), 0.0), max(high, 0.0)
        room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
        return Scale(low - room, high + room, log=False)

    def at(self, value: float) -> float:
        """Where a value is drawn."""
        return float(np.clip(value, self.low, self.high))

    def beyond(self, value: float) -> int:
        """−1 below the axis, 1 above it, 0 on it."""
        return int(value > self.high) - int(value < self.low)


def intervals(results: Results, found: Summary | None = None) -> Figure | None:
    """Every main figure of every method with its interval, the best by the first at the top."""
    found = summary(results) if found is None else found
    main = main_figures(results, found)
    there = {figure for _, figure in found}
    names = [*main, *(name for name in _MORE if name in there and name not in main)][:MOST_PANELS]
    if not names:
        return None
    order = ranked(results, found, names[0])
    order += [m for m in results.methods if m not in order and any((m, n) in found for n in names)]
    looks = styles(results.methods)
    size = (1.9 + 1.75 * len(names), 1.6 + 0.29 * len(order))
    figure, rows = panels(size, 1, len(names), sharey=True)
    add_title(
        figure,
        "How faithful is each method?",
        "averages with 95 % intervals · filled: the best, or no clear difference to it (paired) · "
        "open: clearly worse",
    )
    for number, (axes, name) in enumerate(zip(rows[0], names, strict=True)):
        _column(axes, results, found, name, order, looks)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0, labelleft=not number)
    axes = rows[0][0]
    axes.set_yticks(range(len(order)), [writable(method) for method in order])
    axes.set_ylim(len(order) - 0.4, -0.6)
    for method, tick in zip(order, axes.get_yticklabels(), strict=True):
        bold = "bold" if looks[method].family == "slalom" else "normal"
        tick.set(parse_math=False, family=families(), color=INK, fontweight=bold)
    figure.align_xlabels()
    _family_legend(figure, looks.values())
    return figure


def _column(
    axes: Axes,
    results: Results,
    found: Summary,
    name: str,
    order: Sequence[str],
    looks: dict[str, Style],
) -> None:
    """One figure: a dot and a bar in every method's row."""
    there = ranked(results, found, name)
    scale = _scale(found, name, there)
    rule = places(found, name)
    stand = standing(results, found, name)
    behind = stand.behind if stand else ()
    if scale.log:
        axes.set_xscale("log")
        plain_ticks(axes.xaxis)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.set_xlim(scale.low, scale.high)
    for row, method in enumerate(order):
        if row % 2 == 0:
            axes.axhspan(row - 0.5, row + 0.5, color=RULE, alpha=0.22, lw=0, zorder=0)
        if method not in there:
            axes.text(0.5, row, "–", transform=axes.get_yaxis_transform(), color=FAINT, va="center")
            continue
        one, look = found[method, name], looks[method]
        side = scale.beyond(one.centre)
        if side:
            axes.plot(
                scale.at(one.centre), row, marker="<" if side < 0 else ">", color=look.base, ms=6,
                clip_on=False, zorder=4,
            )  # fmt: skip
            axes.annotate(
                labels.shown(one.centre, rule), (scale.at(one.centre), row), (-8 * side, 0),
                textcoords="offset points", ha="left" if side < 0 else "right", va="center",
                fontsize=8, color=FAINT,
            )  # fmt: skip
            continue
        axes.plot(
            [scale.at(one.low), scale.at(one.high)], [row, row], color=look.base, lw=2,
            alpha=0.7, solid_capstyle="butt", zorder=3,
        )  # fmt: skip
        axes.scatter(
            one.centre, row, s=_AREA, marker=look.dot, zorder=4, linewidths=1.4,
            edgecolors=look.base, facecolors="#ffffff" if method in behind else look.base,
        )  # fmt: skip
    way = {1: "\nmore is better →", -1: "\n← less is better", 0: "\n"}[sign(results, name)]
    axes.set_xlabel(writable(results.figures[name].title) + way, fontsize=9, parse_math=False)


def cost(results: Results, found: Summary | None = None) -> Figure | None:
    """Faithfulness against the seconds an explanation takes, a dot with intervals per method."""
    found = summary(results) if found is None else found
    usual = [name for name in ("aopc", "r2_all") if name in results.figures]
    names = [
        name
        for name in (usual or main_figures(results, found)[:2])
        if name != "seconds" and _timed(results, found, name)
    ]
    if not names:
        return None
    looks = styles(results.methods)
    figure, rows = panels((0.8 + 5.2 * len(names), 5.9), 1, len(names))
    add_title(
        figure,
        "What does faithfulness cost?",
        "seconds per explanation, log scale · bars: 95 % intervals of the averages",
    )
    _family_legend(figure, looks.values())
    for axes, name in zip(rows[0], names, strict=True):
        methods = _timed(results, found, name)
        scale = _scale(found, name, methods)
        spots = _spots(axes, found, name, methods, scale)
        times = np.array([found[method, "seconds"].centre for method in methods])
        axes.set_xscale("log")
        axes.set_xlim(times.min() / 3, times.max() * 6)  # room for labels
        plain_ticks(axes.xaxis)
        axes.grid(color=RULE, lw=0.5, alpha=0.5)
        way = {1: "higher is better", -1: "lower is better", 0: ""}[sign(results, name)]
        axes.set_ylabel(f"{writable(results.figures[name].title)}  ({way})", parse_math=False)
        axes.set_xlabel("seconds per explanation")
        rule, named = places(found, name), []
        for method, time in zip(methods, times, strict=True):
            one, look = found[method, name], looks[method]
            side = scale.beyond(one.centre)
            named.append(f"{method} ({labels.shown(one.centre, rule)})" if side else method)
            _cross(axes, found[method, "seconds"], one, spots[method], scale, look)
            axes.scatter(
                time, spots[method], s=_AREA, color=look.base, linewidths=0.6,
                zorder=4.5 if look.family == "slalom" else 4, edgecolors="#ffffff",
                marker={-1: "v", 0: look.dot, 1: "^"}[side],
            )  # fmt: skip
        order = sorted(range(len(methods)), key=lambda i: family(methods[i]) != "slalom")
        points = np.array([(time, spots[m]) for time, m in zip(times, methods, strict=True)])
        dot_labels.write(axes, named, points, np.full(len(methods), _AREA), order)
    return figure


def _scale(found: Summary, name: str, methods: Sequence[str]) -> Scale:
    return Scale.of([found[method, name] for method in methods], name)


def _spots(
    axes: Axes, found: Summary, name: str, methods: Sequence[str], scale: Scale
) -> dict[str, float]:
    """Heights of the dots; those off the scale have a strip of their own, one below the other."""
    means = {method: found[method, name].centre for method in methods}
    if scale.log:
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
    low, high = scale.low, scale.high
    step = 0.065 * (high - low)
    for side in (-1, 1):
        off = sorted((m for m in means if scale.beyond(means[m]) == side), key=lambda m: -means[m])
        edge = scale.low if side < 0 else scale.high
        for place, method in enumerate(off if side < 0 else reversed(off), start=1):
            means[method] = edge + side * step * place
        if off:
            end = edge + side * step * (len(off) + 1)
            low, high = min(low, end), max(high, end)
            axes.axhspan(edge, end, color=RULE, alpha=0.25, lw=0, zorder=0)
            axes.text(
                0.985, edge + side * 0.25 * step, "off the scale",
                transform=axes.get_yaxis_transform(), ha="right", fontsize=8, color=FAINT,
                va="top" if side < 0 else "bottom", style="italic",
            )  # fmt: skip
    axes.set_ylim(low, high)
    axes.set_yticks([tick for tick in axes.get_yticks() if scale.low <= tick <= scale.high])
    return means


def _cross(
    axes: Axes, time: Interval, one: Interval, spot: float, scale: Scale, look: Style
) -> None:
    """Thin bars for both intervals; none where they are unknown or off the scale."""
    style = {"color": look.base, "lw": 1.1, "alpha": 0.5, "zorder": 2}
    if np.isfinite([time.low, time.high]).all() and time.low > 0:
        axes.plot([time.low, time.high], [spot, spot], **style)  # type: ignore[arg-type]  # mixed options
    if np.isfinite([one.low, one.high]).all() and not scale.beyond(one.centre):
        ends = [scale.at(one.low), scale.at(one.high)]
        axes.plot([time.centre, time.centre], ends, **style)  # type: ignore[arg-type]


def _timed(results: Results, found: Summary, name: str) -> list[str]:
    """Methods that have the figure and a time above zero, which a log axis needs."""
    return [
        method
        for method in ranked(results, found, name)
        if (method, "seconds") in found and found[method, "seconds"].centre > 0
    ]


def _family_legend(figure: Figure, looks: Iterable[Style]) -> None:
    """What colours and shapes mean, below the panels."""
    firsts: dict[str, Style] = {}
    for look in looks:
        firsts.setdefault(look.family, look)
    if len(firsts) < 2:
        return
    handles = [
        Line2D([], [], ls="", marker=firsts[one].dot, color=firsts[one].base, ms=6.5, label=title)
        for one, title in FAMILIES.items()
        if one in firsts
    ]
    figure.legend(
        handles=handles, loc="outside lower left", ncols=len(handles), frameon=False, fontsize=9,
        labelcolor=INK, handletextpad=0.2,
    )  # fmt: skip
