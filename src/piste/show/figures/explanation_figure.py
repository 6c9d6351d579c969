"""Figures of an explanation: the plane of two scores, text or heat maps, ranked bars."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.text import Text

from piste.errors import PisteError
from piste.explanation import Explanation
from piste.show import colours, score_terms, wording
from piste.show.figures import dot_labels
from piste.show.figures.canvas import (
    FAINT,
    INK,
    RULE,
    add_title,
    bounded,
    canvas,
    families,
    heading,
    saved,
    shades,
    writable,
)
from piste.show.label_placement import axis_range
from piste.types import Floats
from piste.views import VIEWS


def plot(
    e: Explanation, kind: str | None = None, path: str | Path | None = None, **options: Any
) -> Figure:
    """A figure of one of the kinds, also saved if ``path`` is given.

    Without a kind an image's heat maps, and of a text the plane, or bars where a method has one
    score only. Kinds are the views "plot_…" of :data:`piste.views.VIEWS`, ``options`` are theirs.
    The suffix of ``path`` chooses PNG, SVG or PDF.
    """
    if kind is None:
        kind = "bars" if score_terms.plane_scores(e) is None else "plane"
        kind = "heat" if wording.of_image(e) else kind
    kinds = [name.removeprefix("plot_") for name in VIEWS if name.startswith("plot_")]
    possible = [name for name in kinds if name != ("text" if wording.of_image(e) else "heat")]
    if kind not in possible:
        why = f"can't be drawn of this {wording.what(e)}" if kind in kinds else "is no figure"
        raise PisteError(f"kind={kind!r} {why}: choose {', '.join(possible)}.")
    draw = VIEWS[f"plot_{kind}"]
    known = list(inspect.signature(draw).parameters)[1:]
    for option in options:
        if option not in known:
            raise PisteError(
                f"The figure {kind!r} has no option {option!r}: it has {', '.join(known)}."
            )
    return saved(lambda: draw(e, **options), path)


def plane(
    e: Explanation,
    *,
    label: str | int | None = None,
    size: tuple[float, float] = (9.0, 6.4),
    ax: Axes | None = None,
) -> Figure:
    """What is expected of units alone (right: for the target) against their weight (up: more).

    Where weights are not determined, contributions take their place. One dot per kind of unit,
    larger the more often it occurs. Only units that say something have a name and error bars.
    ``ax`` draws into axes of a figure of your own, with the answer alone as title.
    """
    names = score_terms.plane_scores(e) or ("value", "importance")
    wording.shown_class(e, label)  # refuses a class that isn't there
    x, y = (e.score(name, label) for name in names)
    x_spread, y_spread = (e.error(name, label) for name in names)
    kinds = [k for k in wording.kinds(e) if np.isfinite(x[k.first]) and np.isfinite(y[k.first])]
    first = [kind.first for kind in kinds]
    shown = score_terms.named(e, kinds, label)
    quiet = np.setdiff1d(np.arange(len(kinds)), shown)
    figure, axes = canvas(size, ax)
    axes.axvline(0, color=RULE, lw=1, zorder=0)
    axes.axhline(0, color=RULE, lw=1, zorder=0)
    areas = 30.0 * np.sqrt([len(kind.units) for kind in kinds])
    areas[quiet] *= 0.3
    loud = [first[index] for index in shown]
    axes.errorbar(
        x[loud], y[loud], xerr=bounded(x_spread[loud]), yerr=bounded(y_spread[loud]),
        fmt="none", ecolor=RULE, elinewidth=0.8, zorder=1,
    )  # fmt: skip
    tints = to_rgba_array(shades(colours.strengths(e.score(None, label))[first]))
    tints[quiet, 3] = 0.4
    axes.scatter(x[first], y[first], s=areas, c=tints, edgecolors="white", linewidths=0.5, zorder=3)
    _limits(axes, x[first], y[first])
    _name_axes(axes, e, names, label)
    _title(axes, e, label, own=ax is None)
    parts = [] if wording.of_image(e) else ["larger dots: more occurrences"]
    parts.append("thin lines: standard errors")
    if len(quiet):
        parts.append(f"pale dots: {len(quiet)} of {len(kinds)} that say little")
    caption = axes.annotate(
        " · ".join(parts), (1, 0), (0, -62), xycoords="axes fraction", textcoords="offset points",
        ha="right", fontsize=8, color=FAINT,
    )  # fmt: skip
    named = names[1] == "importance" and not wording.of_answer(e)
    corners = _quadrants(axes) if named else []
    points = np.stack([x[first], y[first]], axis=1)
    titles = [kind.title for kind in kinds]
    missing = dot_labels.write(axes, titles, points, areas, shown, free=corners) - len(quiet)
    if missing:
        caption.set_text(" · ".join([*parts, f"{missing} more without a name, for want of room"]))
    return figure


def _name_axes(axes: Axes, e: Explanation, names: tuple[str, str], label: str | int | None) -> None:
    """Titles of the axes; below them why contributions are shown, where they are."""
    above, below = wording.sides(e, label)
    alone, upward = names
    about = f"{alone}: {score_terms.BRIEF[alone]}, {score_terms.scale(e, alone)}"
    across = f"{about}   (← {below} · {above} →)"
    axes.set_xlabel(writable(across), parse_math=False, family=families())
    axes.annotate(
        writable(score_terms.plane_note(e)), (1, 0), (0, -48), xycoords="axes fraction",
        textcoords="offset points", ha="right", fontsize=8.5, color=INK, parse_math=False,
        family=families(),
    )  # fmt: skip
    title = f"{upward}: {score_terms.BRIEF[upward]}"
    unit = score_terms.scale(e, upward)
    axes.set_ylabel(
        writable(title if unit in title else f"{title}, {unit}"),
        parse_math=False, family=families(),
    )  # fmt: skip


def bars(
    e: Explanation,
    *,
    score: str | None = None,
    top: int = 20,
    label: str | int | None = None,
    ax: Axes | None = None,
) -> Figure:
    """The units of the largest |score| with their standard errors, the largest at the top.

    ``ax`` draws into axes of a figure of your own, with the answer alone as title.
    """
    if not isinstance(top, int) or isinstance(top, bool) or top < 1:
        raise PisteError(f"top: expected a whole number above 0, got {top!r}.")
    name = score or e.ranking
    numbers, spread = e.score(name, label), e.error(name, label)
    kinds = wording.kinds(e)
    chosen = wording.by_size(np.array([numbers[kind.first] for kind in kinds]))[:top]
    first = [kinds[index].first for index in chosen]
    figure, axes = canvas((7.5, 1.5 + 0.27 * len(first)), ax)
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
    above, below = score_terms.sides(e, name, label)
    axes.set_xlabel(f"{name}: {score_terms.meaning(e, name)}\n← {below} · {above} →")
    axes.set_ylim(-0.7, len(first) - 0.3)
    _title(axes, e, label, own=ax is None)
    return figure


def _title(axes: Axes, e: Explanation, label: str | int | None, *, own: bool) -> None:
    """The answer and its reasons over the figure, or the answer alone over somebody's axes."""
    figure = axes.get_figure(root=True)
    assert figure is not None  # the axes were just made on one
    title, under = heading(e, label, int(16 * figure.get_size_inches()[0]))
    if own:
        add_title(figure, title, under)
    else:
        axes.set_title(
            writable(title), loc="left", fontsize=11, fontweight="bold", color=INK,
            parse_math=False, family=families(),
        )  # fmt: skip


def _limits(axes: Axes, x: Floats, y: Floats) -> None:
    """Room around the dots for labels; zero lines in view, unless all dots are far from one."""
    for numbers, limit in ((x, axes.set_xlim), (y, axes.set_ylim)):
        low, high = axis_range(numbers)
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
