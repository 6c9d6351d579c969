"""Heat maps as a figure: the image, then one panel per score with its key."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from piste.errors import PisteError
from piste.explanation import Explanation
from piste.image import ImageInput
from piste.show import score_terms, wording
from piste.show.figures.canvas import FAINT, INK, RULE, writable
from piste.show.figures.text_figure import DPI, MARGIN, Head, Page
from piste.show.heat_colours import (
    SMALL,
    Heat,
    Loop,
    Pixels,
    areas_of,
    image_of,
    named,
    outlines,
    painted,
)

PANEL = 290.0
"""Pixels of a panel's width."""
GAP = 26.0
HEAD = 26.0
"""Pixels for a panel's name, above it."""
KEY = 76.0
"""Pixels for a scale with its numbers and words, below a panel."""

_BORDER = (0.0, 0.0, 0.0, 0.22)


def heat(
    e: Explanation,
    *,
    score: str | None = None,
    label: str | int | None = None,
    width: float | None = None,
) -> Figure:
    """The image beside its main scores, or beside one ``score``, each painted over its greys."""
    image = image_of(e)
    if width is not None and not width >= 2:
        raise PisteError(f"width: expected at least 2 inches, got {width!r}.")
    wording.shown_class(e, label)  # refuses a class that isn't there
    heats = [Heat.of(e, name, label) for name in ([score] if score else score_terms.main_scores(e))]
    count = 1 + len(heats)
    panel = PANEL
    if width is not None:
        panel = (width * DPI - 2 * MARGIN - (count - 1) * GAP) / count
    shape = Shape.of(image, panel)
    wide = (2 * MARGIN + count * panel + (count - 1) * GAP) / DPI
    head = Head.of(e, label, wide)
    y = MARGIN + head.height + HEAD
    page = Page.of(wide, y + shape.height + KEY + MARGIN / 2)
    page.head(head)
    page.write(MARGIN, y - 11, "the image", 10.5, INK)
    show(page, MARGIN, y, shape, image.pixels)
    for line, words in enumerate(textwrap.wrap(writable(named(e)), int(panel / 6))[:3]):
        page.write(MARGIN, y + shape.height + 14 + 14 * line, words, 8, FAINT)
    loops = outlines(areas_of(image), len(e.units))
    for place, one in enumerate(heats, start=1):
        x = MARGIN + place * (panel + GAP)
        name = page.write(x, y - 11, writable(one.name), 10.5, INK)
        end = float(name.get_window_extent().x1)
        page.write(end + 9, y - 11, score_terms.BRIEF.get(one.name, ""), 8.5, FAINT)
        show(page, x, y, shape, painted(e, one), borders=loops)
        key(page, x, y + shape.height + 10, panel, one)
    return page.figure


@dataclass(frozen=True)
class Shape:
    """An image's place in a figure, in pixels, and its own size."""

    width: float
    height: float
    columns: int
    rows: int

    @staticmethod
    def of(image: ImageInput, width: float) -> Shape:
        """So wide; an image much higher than wide is made narrower instead of endless."""
        height = min(width * image.height / image.width, 2 * width)
        return Shape(height * image.width / image.height, height, image.width, image.height)


def show(
    page: Page,
    x: float,
    y: float,
    shape: Shape,
    pixels: Pixels,
    borders: Sequence[Sequence[Loop]] = (),
) -> Axes:
    """Pixels as a panel, small images unsmoothed, with thin borders between the parts."""
    axes = _axes(page, x, y, shape.width, shape.height)
    smooth = "auto" if max(shape.columns, shape.rows) >= SMALL else "nearest"
    extent = (0.0, float(shape.columns), float(shape.rows), 0.0)
    axes.imshow(pixels, interpolation=smooth, extent=extent, aspect="auto")
    lines = [[*loop, loop[0]] for loops in borders for loop in loops]
    if lines:
        axes.add_collection(LineCollection(lines, colors=[_BORDER], linewidths=0.5))
    return axes


def key(page: Page, x: float, y: float, wide: float, heat: Heat) -> None:
    """A scale: its colours, its numbers, and what its ends mean."""
    bar = _axes(page, x, y, wide, 10)
    bar.imshow(heat.scale.ramp()[None, :, :], aspect="auto", extent=(0.0, 1.0, 0.0, 1.0))
    bar.set_axis_on()
    bar.set(xticks=[], yticks=[])
    for spine in bar.spines.values():
        spine.set_color(RULE)
    for place, number in heat.marks:
        align = {0.0: "left", 1.0: "right"}.get(place, "center")
        page.write(x + place * wide, y + 20, number, 8, FAINT, align=align)
    above, below = heat.ends
    for words, place, align in ((below, 0.0, "left"), (above, 1.0, "right")):
        lines = textwrap.wrap(wording.short(writable(words), 40), max(int(wide / 14), 8))
        for row, line in enumerate(lines[:3]):
            page.write(x + place * wide, y + 35 + 13 * row, line, 8, INK, align=align)


def _axes(page: Page, x: float, y: float, wide: float, high: float) -> Axes:
    """Axes at a place in pixels, without frame and ticks."""
    box = (x / page.width, 1 - (y + high) / page.height, wide / page.width, high / page.height)
    axes = page.figure.add_axes(box)
    axes.set_axis_off()
    return axes
