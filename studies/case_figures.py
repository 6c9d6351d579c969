"""Figures of the study ``case-study``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from piste.show.figures import dot_labels
from piste.show.figures.canvas import FAINT, RULE, panels
from piste.types import Floats
from studies.planting import CONTROL, METHODS, SHORTCUT, WORDS, Case

_COLOURS = {SHORTCUT: "#c8501e", CONTROL: "#2f6db3"}
_LABELLED = 12


def changes(one: Any, word: str) -> Floats:
    """By how much the answers to the explained texts really fall without the word."""
    fall = np.array(one["with"]) - np.array(one["without"][word])
    return np.asarray(fall[: len(one["plane"][word])])


def draw_planes(clean: Any, planted: Any, case: Case) -> Figure:
    """The words of all texts in the plane, of the clean model and of the case."""
    figure, (axes,) = panels((11.0, 5.0), 1, 2, sharex=True, sharey=True)
    drawn = [(case.clean, clean["corpus"]), (case, planted["corpus"])]
    for own, (one, rows) in zip(axes, drawn, strict=True):
        own.axvline(0, color=RULE, lw=1, zorder=0)
        own.axhline(0, color=RULE, lw=1, zorder=0)
        for row in rows:
            marked = row["word"] in WORDS
            own.errorbar(
                row["value"]["centre"], row["importance"]["centre"],
                xerr=_reach(row["value"]), yerr=_reach(row["importance"]),
                fmt="o", ms=5 if marked else 3, color=_COLOURS.get(row["word"], FAINT),
                ecolor=RULE, elinewidth=0.7, zorder=3 if marked else 2,
            )  # fmt: skip
        own.set_title(f"shortcut in positive / negative: {one.planted}", loc="left", fontsize=10)
        own.set_xlabel("median value (← negative · positive →)")
    axes[0].set_ylabel("median importance")
    # The dots rule the frame: intervals of words that hardly weigh would leave them no room.
    _frame(axes[0], np.concatenate([_points(rows) for _, rows in drawn]))
    for own, (_, rows) in zip(axes, drawn, strict=True):
        _name(own, rows)
    return figure


def _reach(one: Any) -> list[list[float]]:
    """How far an interval goes below and above its centre, as matplotlib wants it."""
    return [[one["centre"] - one["low"]], [one["high"] - one["centre"]]]


def _points(rows: Sequence[Any]) -> Floats:
    return np.array([(row["value"]["centre"], row["importance"]["centre"]) for row in rows])


def _frame(axes: Axes, points: Floats) -> None:
    low, high = points.min(axis=0), points.max(axis=0)
    room = 0.12 * (high - low)
    axes.set_xlim(low[0] - room[0], high[0] + room[0])
    axes.set_ylim(low[1] - room[1], high[1] + room[1])


def _name(axes: Axes, rows: Sequence[Any]) -> None:
    """Write the planted words and the strongest others beside their dots."""
    names = [row["word"] for row in rows]
    order = [names.index(word) for word in WORDS]
    order += [number for number in range(len(rows)) if number not in order][:_LABELLED]
    colours = [_COLOURS.get(name, FAINT) for name in names]
    dot_labels.write(axes, names, _points(rows), np.full(len(rows), 20.0), order, colours=colours)


def draw_removal(one: Any) -> Figure:
    """What explanations predict of removing the words, against what it really does."""
    figure, (axes,) = panels((11.0, 3.9), 1, len(METHODS) - 1, sharex=True, sharey=True)
    ends = np.array([0.0, changes(one, SHORTCUT).max()])
    for own, method in zip(axes, METHODS, strict=False):  # occlusion is on the line
        own.plot(ends, ends, "--", color=RULE, zorder=0)
        for word in WORDS:
            own.plot(
                changes(one, word), one["predicted"][method][word], "o", ms=4, alpha=0.7,
                color=_COLOURS[word], label=f'"{word}"',
            )  # fmt: skip
        own.set_title(method, loc="left", fontsize=10)
        own.set_xlabel("real fall of the log-odds without it")
    axes[0].set_ylabel("predicted fall")
    axes[0].legend(frameon=False, fontsize=8)
    return figure
