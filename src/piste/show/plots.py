"""Figures of an explanation: the plane of value and importance, text or heat maps, ranked bars."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from piste.errors import PisteError
from piste.explanation import Explanation
from piste.show import colours, dotlabels, reading
from piste.show.canvas import (
    FAINT,
    INK,
    RULE,
    Floats,
    bounded,
    canvas,
    format_of,
    heading,
    save,
    shades,
)
from piste.show.fonts import families, writable
from piste.show.heatmaps import heat
from piste.show.textflow import text

__all__ = ["KINDS", "bars", "heat", "plane", "plot", "text"]


def plot(
    e: Explanation, kind: str | None = None, path: str | Path | None = None, **options: Any
) -> Figure:
    """A figure of one of the kinds, also saved if ``path`` is given.

    Without a kind a picture's heat maps, and of a text the plane, or bars where a method has no
    value and importance. The suffix of ``path`` chooses PNG, SVG or PDF; ``options`` go to
    :func:`plane`, :func:`text`, :func:`heat` or :func:`bars`.
    """
    if kind is None:
        kind = "plane" if {"value", "importance"} <= set(e.scores) else "bars"
        kind = "heat" if reading.of_picture(e) else kind
    possible = [name for name in KINDS if name != ("text" if reading.of_picture(e) else "heat")]
    if kind not in possible:
        why = f"can't be drawn of a {reading.what(e)}" if kind in KINDS else "is no figure"
        raise PisteError(f"kind={kind!r} {why}: choose {', '.join(possible)}.")
    known = list(inspect.signature(KINDS[kind]).parameters)[1:]
    for option in options:
        if option not in known:
            raise PisteError(
                f"The figure {kind!r} has no option {option!r}: it has {', '.join(known)}."
            )
    if path is not None:
        format_of(path)  # refused before the work
    figure = KINDS[kind](e, **options)
    if path is not None:
        save(figure, path)
    return figure


def plane(
    e: Explanation, *, label: str | int | None = None, size: tuple[float, float] = (9.0, 6.4)
) -> Figure:
    """What units say (right: for the target) against how much they weigh (up: more).

    One dot per kind of unit, larger the more often it occurs; thin bars are standard errors.
    """
    x, y = e.score("value", label), e.score("importance")
    spread = e.error("value", label), e.error("importance")
    kinds = [k for k in reading.kinds(e) if np.isfinite(x[k.first]) and np.isfinite(y[k.first])]
    first = [kind.first for kind in kinds]
    above, below = reading.sides(e, label)
    figure, axes = canvas(size)
    axes.axvline(0, color=RULE, lw=1, zorder=0)
    axes.axhline(0, color=RULE, lw=1, zorder=0)
    areas = 30.0 * np.sqrt([len(kind.units) for kind in kinds])
    axes.errorbar(
        x[first], y[first], xerr=bounded(spread[0][first]), yerr=bounded(spread[1][first]),
        fmt="none", ecolor=RULE, elinewidth=0.7, zorder=1,
    )  # fmt: skip
    axes.scatter(
        x[first], y[first], s=areas, c=shades(colours.strengths(x)[first]),
        edgecolors="white", linewidths=0.6, zorder=3,
    )  # fmt: skip
    _limits(axes, x[first], y[first])
    axes.set_xlabel(f"value: what it says, in log-odds   (← {below} · {above} →)")
    axes.set_ylabel("importance: its weight against the others, a log-weight")
    _title(axes, e, label)
    note = "thin lines: standard errors"
    if not reading.of_picture(e):
        note = f"larger dots: more occurrences · {note}"
    caption = axes.annotate(
        note, (1, 0), (0, -44), xycoords="axes fraction", textcoords="offset points",
        ha="right", fontsize=8, color=FAINT,
    )  # fmt: skip
    corners = _quadrants(axes)
    points = np.stack([x[first], y[first]], axis=1)
    order = reading.telling(e, kinds, label)[: reading.most_labels(e)]
    names = [kind.title for kind in kinds]
    missing = dotlabels.write(axes, names, points, areas, order, free=corners)
    if missing and reading.of_picture(e):
        caption.set_text(f"{note} · the most telling of {len(kinds)} parts have a label")
    elif missing:
        caption.set_text(f"{note} · {missing} of {len(kinds)} without a label, for want of room")
    return figure


def bars(
    e: Explanation, *, score: str | None = None, top: int = 20, label: str | int | None = None
) -> Figure:
    """The units of the largest |score| with their standard errors, the largest at the top."""
    if not isinstance(top, int) or isinstance(top, bool) or top < 1:
        raise PisteError(f"top={top!r} is wrong: a whole number above 0 is wanted.")
    name = score or e.ranking
    numbers, spread = e.score(name, label), e.error(name, label)
    kinds = reading.kinds(e)
    chosen = reading.by_size(np.array([numbers[kind.first] for kind in kinds]))[:top]
    first = [kinds[index].first for index in chosen]
    figure, axes = canvas((7.5, 1.5 + 0.27 * len(first)))
    places = np.arange(len(first))[::-1]
    axes.barh(
        places, numbers[first], height=0.72, zorder=2,
        color=shades(colours.strengths(numbers)[first]),
    )  # fmt: skip
    axes.errorbar(
        numbers[first], places, xerr=bounded(spread[first]), fmt="none", ecolor=INK,
        elinewidth=0.9, capsize=2, zorder=3,
    )  # fmt: skip
    axes.axvline(0, color=INK, lw=0.8, zorder=4)
    axes.set_yticks(places, [writable(kinds[index].title) for index in chosen])
    for tick in axes.get_yticklabels():
        tick.set(parse_math=False, family=families(), color=INK)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    above, below = reading.score_sides(e, name, label)
    axes.set_xlabel(f"{name}: {reading.meaning(e, name)}\n← {below} · {above} →")
    axes.set_ylim(-0.7, len(first) - 0.3)
    _title(axes, e, label)
    return figure


KINDS: Mapping[str, Callable[..., Figure]] = {
    "plane": plane,
    "text": text,
    "heat": heat,
    "bars": bars,
}


def _title(axes: Axes, e: Explanation, label: str | int | None) -> None:
    title, under = heading(e, label)
    axes.set_title(
        writable(title), loc="left", fontsize=13, fontweight="bold", color=INK, pad=24,
        parse_math=False, family=families(),
    )  # fmt: skip
    axes.annotate(
        writable(under), (0, 1), (0, 8), xycoords="axes fraction", textcoords="offset points",
        fontsize=9, color=FAINT, parse_math=False, family=families(),
    )  # fmt: skip


def _limits(axes: Axes, x: Floats, y: Floats) -> None:
    """Room around the dots for labels; both zero lines in view."""
    for numbers, limit in ((x, axes.set_xlim), (y, axes.set_ylim)):
        low, high = min(float(numbers.min()), 0.0), max(float(numbers.max()), 0.0)
        room = 0.12 * (high - low) or 1.0
        limit(low - room, high + room)


def _quadrants(axes: Axes) -> list[Text]:
    """The quadrants named in their corners, lightly, where they are wide enough."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    named: list[Text] = []
    for x, y, words in (
        (1, 1, "for, heavy"), (0, 1, "against, heavy"),
        (1, 0, "for, light"), (0, 0, "against, light"),
    ):  # fmt: skip
        wide = (right if x else -left) / (right - left) > 0.2
        high = (top if y else -bottom) / (top - bottom) > 0.1
        if wide and high:
            corner = axes.annotate(
                words, (x, y), (-6 if x else 6, -12 if y else 6), xycoords="axes fraction",
                textcoords="offset points", ha="right" if x else "left", fontsize=8.5,
                color="#9aa2ab", style="italic", zorder=0,
            )  # fmt: skip
            named.append(corner)
    return named
