"""Several methods on one input as a figure: the text or the image once per method."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from piste.comparison import Comparison
from piste.show import colours, score_terms, wording
from piste.show.alignment import SCALED, SideBySide
from piste.show.figures.canvas import FAINT, INK, RULE, saved, writable
from piste.show.figures.heatmap_figure import GAP, KEY, Shape, key, show
from piste.show.figures.text_figure import DPI, LINE, MARGIN, MOST_LINES, Page, flowed
from piste.show.heat_colours import Heat, areas_of, image_of, outlines, painted

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
_PANEL = 250.0
"""Pixels of an image's width."""
_ACROSS = 4
"""Images in a row."""


def plot(comparison: Comparison, path: str | Path | None = None) -> Figure:
    """The text or the image once per method, with its scores; saved if a path is given."""
    sides = SideBySide.of_comparison(comparison)
    return saved(lambda: draw(sides), path)


def draw(sides: SideBySide) -> Figure:
    """One block per method: name and fidelity, the highlighted text, bars of shared units.

    Methods on an image have a panel each.
    """
    if wording.of_image(sides.first):
        return _images(sides)
    across = _WIDTH * DPI
    text_width = across - 2 * MARGIN - _SIDE - 30
    words, lines = flowed(sides.first, text_width)
    lines = min(lines, max(MOST_LINES // len(sides.explanations), _LEAST_LINES))
    strongest = sides.strongest(UNITS)
    block = _HEAD + max(lines * LINE, len(strongest) * _BAR) + _GAP
    top, foot = MARGIN + 56, 46.0 + 16.0 * bool(sides.skipped)
    page = Page.of(_WIDTH, top + block * len(sides.explanations) + foot + MARGIN)
    _title(page, sides)
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
    sides_named = score_terms.sides(sides.first, sides.first.ranking)
    page.legend(bottom - 24, sides_named, "every method's own ranking")
    note = f" {left} more words not shown." if left else ""
    page.write(MARGIN, bottom, f"{SCALED} {sides.caution.partition(':')[0]}.{note}", 8, FAINT)
    _skipped(page, sides, bottom - 48)
    return page.figure


def _images(sides: SideBySide) -> Figure:
    """The image, then one heat map per method under its name and fidelity, each with a key."""
    e = sides.first
    image = image_of(e)
    count = 1 + len(sides.explanations)
    across = min(count, _ACROSS)
    shape = Shape.of(image, _PANEL)
    block = _HEAD + 16 + shape.height + KEY + _GAP
    top = MARGIN + 56
    width = 2 * MARGIN + across * _PANEL + (across - 1) * GAP
    page = Page.of(width / DPI, top + block * -(-count // across) + 36 + MARGIN)
    _title(page, sides)
    loops = outlines(areas_of(image), len(e.units))
    for place in range(count):
        x = MARGIN + place % across * (_PANEL + GAP)
        y = top + place // across * block + _HEAD + 16
        if not place:
            page.write(x, y - 12, writable(wording.short(image.name, 34)), 9, FAINT)
            show(page, x, y, shape, image.pixels)
            continue
        one = sides.explanations[place - 1]
        heat = Heat.of(one)
        page.write(x, y - 30, writable(wording.short(one.method, 34)), 11, INK, weight="bold")
        page.write(x, y - 12, writable(sides.badge(one)), 8.5, FAINT)
        show(page, x, y, shape, painted(one, heat), borders=loops)
        key(page, x, y + shape.height + 10, _PANEL, heat)
    bottom = page.height - MARGIN
    page.write(MARGIN, bottom, sides.caution.partition(":")[0] + ".", 8, FAINT)
    _skipped(page, sides, bottom - 20)
    return page.figure


def _title(page: Page, sides: SideBySide) -> None:
    title = f"{wording.prediction(sides.first)}, explained by {_count(sides)}"
    page.write(MARGIN, MARGIN + 6, writable(title), 13, INK, weight="bold")
    page.write(MARGIN, MARGIN + 30, writable(wording.explained(sides.first)), 9, FAINT)


def _skipped(page: Page, sides: SideBySide, y: float) -> None:
    if sides.skipped:
        names = ", ".join(sides.skipped)
        page.write(MARGIN, y, writable(f"Could not explain this: {names}."), 8, FAINT)


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
        name = writable(wording.short(kind.title, 16))
        page.write(x + _NAMES - 10, middle, name, 8.5, INK, align="right", gid="unit")
        length = abs(value) * half
        colour = colours.to_hex(colours.tint(np.copysign(1.0, value)))
        page.box(zero if value >= 0 else zero - length, middle - 5, length, 10, colour)
    page.box(zero - 0.5, y, 1, _BAR * len(strongest), FAINT)
