"""Several methods on one input as a figure: the text once per method, and its strongest units."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from piste.show import colours, reading
from piste.show.canvas import FAINT, INK, RULE
from piste.show.fonts import writable
from piste.show.side_by_side import ONE_TEXT, SCALED, SideBySide
from piste.show.textflow import DPI, LINE, MARGIN, MOST_LINES, Page, flowed

UNITS = 5
"""Units that get a bar beside the text, the same for every method."""

_WIDTH = 12.0
_SIDE = 300.0
"""Pixels for the bars, right of the text."""
_NAMES = 110.0
_BAR = 16.0
_HEAD = 30.0
_GAP = 18.0
_LEAST_LINES = 4


def draw(sides: SideBySide) -> Figure:
    """One block per method: name and fidelity, the highlighted text, bars of shared units."""
    across = _WIDTH * DPI
    text_width = across - 2 * MARGIN - _SIDE - 30
    words, lines = flowed(sides.first, text_width)
    lines = min(lines, max(MOST_LINES // len(sides.explanations), _LEAST_LINES))
    strongest = sides.strongest(UNITS)
    block = _HEAD + max(lines * LINE, len(strongest) * _BAR) + _GAP
    top, foot = MARGIN + 56, 46.0 + 16.0 * bool(sides.skipped)
    page = Page.of(_WIDTH, top + block * len(sides.explanations) + foot + MARGIN)
    title = f"{reading.prediction(sides.first)}, explained by {_count(sides)}"
    page.write(MARGIN, MARGIN + 6, writable(title), 13, INK, weight="bold")
    page.write(MARGIN, MARGIN + 30, writable(reading.explained(sides.first)), 9, FAINT)
    left = 0
    for row, e in enumerate(sides.explanations):
        y = top + row * block
        page.box(MARGIN, y, across - 2 * MARGIN, 1, RULE)
        name = page.write(MARGIN, y + 18, writable(e.method), 11, INK, weight="bold")
        end = float(name.get_window_extent().x1)
        page.write(end + 14, y + 18, writable(sides.badge(e)), 9, FAINT)
        left = page.flow(MARGIN, y + _HEAD, words, colours.strengths(e.score()), lines)
        _bars(page, sides, row, strongest, across - MARGIN - _SIDE, y + _HEAD)
    bottom = page.height - MARGIN
    sides_named = reading.score_sides(sides.first, sides.first.ranking)
    page.legend(bottom - 24, sides_named, "every method's own ranking")
    note = f" {left} more words not shown." if left else ""
    page.write(MARGIN, bottom, f"{SCALED} {ONE_TEXT.partition(':')[0]}.{note}", 8, FAINT)
    if sides.skipped:
        names = ", ".join(sides.skipped)
        page.write(MARGIN, bottom - 48, writable(f"Could not explain this: {names}."), 8, FAINT)
    return page.figure


def _count(sides: SideBySide) -> str:
    many = len(sides.explanations)
    return "one method" if many == 1 else f"{many} methods"


def _bars(
    page: Page, sides: SideBySide, row: int, strongest: list[int], x: float, y: float
) -> None:
    """A small bar per unit, right of zero if it speaks for the answer, left if against it."""
    half = (_SIDE - _NAMES) / 2
    zero = x + _NAMES + half
    for place, index in enumerate(strongest):
        kind, middle = sides.kinds[index], y + (place + 0.5) * _BAR
        value = float(np.nan_to_num(sides.scaled[row, kind.first], posinf=0.0, neginf=0.0))
        name = writable(reading.short(kind.title, 16))
        page.write(x + _NAMES - 10, middle, name, 8.5, INK, align="right", gid="unit")
        length = abs(value) * half
        colour = colours.hexed(colours.tint(np.copysign(1.0, value)))
        page.box(zero if value >= 0 else zero - length, middle - 5, length, 10, colour)
    page.box(zero - 0.5, y, 1, _BAR * len(strongest), FAINT)
