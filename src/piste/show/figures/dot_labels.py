"""Labels beside the dots of a figure, measured and placed so that nothing overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.patheffects import withStroke
from matplotlib.text import Text

from piste.show import label_placement
from piste.show.figures.canvas import FAINT, INK, families, settle, writable
from piste.types import Floats


def write(
    axes: Axes,
    names: Sequence[str],
    points: Floats,
    areas: Floats,
    order: Sequence[int],
    *,
    free: Sequence[Artist] = (),
    colours: Sequence[str] | None = None,
    size: float = 8.5,
) -> int:
    """Write the names of points (n × 2, dots of these areas) in an order; how many had no room.

    Labels keep off the dots, each other, and what must stay ``free``.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None  # the axes were just made on one
    settle(figure)
    # Measured apart from the figure's own canvas, which may be of any kind.
    width, height = figure.bbox.size
    renderer = RendererAgg(width, height, figure.dpi)  # type: ignore[no-untyped-call]  # matplotlib's
    dots = axes.transData.transform(points)
    written = {
        index: axes.text(
            0, 0, writable(names[index]), fontsize=size, parse_math=False,
            color=INK if colours is None else colours[index],
            family=families(), ha="center", va="center", transform=None, zorder=5,
            path_effects=[withStroke(linewidth=2, foreground="white")], gid="label",
        )
        for index in order
    }  # fmt: skip
    sizes = np.zeros((len(names), 2))
    for index, item in written.items():
        box = item.get_window_extent(renderer)
        sizes[index] = box.width + 3, box.height + 1
    radii = np.sqrt(areas / np.pi) * figure.dpi / 72 + 1
    frame = axes.get_window_extent(renderer).extents
    blocked = [artist.get_window_extent(renderer).extents for artist in free]
    places = label_placement.place(dots, radii, sizes, order, frame, blocked)
    back = axes.transData.inverted()
    for index, item in written.items():
        place = places[index]
        if place is None:
            item.remove()
            continue
        _fix(axes, item, place, points[index], back)
    return len(names) - sum(place is not None for place in places)


def _fix(axes: Axes, item: Text, place: label_placement.Label, point: Floats, back: Any) -> None:
    """Tie a label to data coordinates, so that it stays right in every format and size."""
    item.set_transform(axes.transData)
    item.set_position(tuple(back.transform(place.centre)))
    if place.leader is not None:
        end = back.transform(place.leader)
        axes.plot(
            [point[0], end[0]], [point[1], end[1]], color=FAINT, lw=0.5, zorder=2,
            scalex=False, scaley=False,
        )  # fmt: skip
