"""Figures without pyplot: canvas, fonts, titles and saving."""

from __future__ import annotations

import functools
import io
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from piste.data import files
from piste.errors import PisteError, shorten
from piste.explanation import Explanation
from piste.show import colours, wording
from piste.show.summary import Summary
from piste.types import Floats
from piste.validation import as_path

# Asked for only where installed: matplotlib complains of every family it can't find.
_FALLBACKS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Hiragino Sans", "Microsoft YaHei",
    "WenQuanYi Zen Hei", "Malgun Gothic", "Noto Sans Arabic", "Noto Sans Devanagari",
    "Noto Emoji", "Segoe UI Emoji", "Segoe UI Symbol", "Arial Unicode MS",
)  # fmt: skip
_UNSEEN = {"\ufe0e", "\ufe0f", "\u200b", "\u200c", "\u200d", "\ufeff"}
MISSING = "□"


@functools.cache
def families() -> list[str]:
    """Families to write in: each sign is taken from the first font that has it."""
    installed = set(font_manager.fontManager.get_font_names())
    return ["DejaVu Sans", *(name for name in _FALLBACKS if name in installed)]


@functools.cache
def _known() -> frozenset[int]:
    """All signs the families have together."""
    codes: set[int] = set()
    for family in families():
        font = font_manager.get_font(font_manager.findfont(family))
        codes.update(font.get_charmap())
    return frozenset(codes)


def writable(text: str) -> str:
    """The text with a box for every sign no installed font has, and no control characters.

    >>> writable("plain")
    'plain'
    """
    if text.isascii() and text.isprintable():
        return text
    known = _known()
    return "".join(
        sign if ord(sign) in known and sign.isprintable() else MISSING
        for sign in text
        if sign not in _UNSEEN
    )


INK, FAINT, RULE = "#22262b", "#6b737c", "#c9ced4"
SUFFIXES = (".png", ".svg", ".pdf")


class Drawing(Figure):
    """A figure that shows itself in a notebook, without pyplot and its global state."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()


def blank(size: tuple[float, float]) -> tuple[Drawing, RendererAgg]:
    """An empty white figure, and the renderer that measures text on it."""
    figure = Drawing(figsize=size, dpi=100, facecolor="white")
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]  # matplotlib's
    return figure, renderer


def canvas(size: tuple[float, float], ax: Axes | None = None) -> tuple[Figure, Axes]:
    """A figure with quiet axes, or that of axes which a caller has."""
    if ax is None:
        figure, rows = panels(size, 1, 1)
        return figure, rows[0][0]
    root = ax.get_figure(root=True) if isinstance(ax, Axes) else None
    if root is None:
        raise PisteError(
            f"ax: expected axes of a matplotlib figure, got {shorten(ax)} of type "
            f"{type(ax).__name__}."
        )
    _make_quiet(ax)
    return root, ax


def panels(
    size: tuple[float, float], rows: int, columns: int, **options: Any
) -> tuple[Drawing, list[list[Axes]]]:
    """A figure with rows of quiet axes; options as for matplotlib's ``subplots``."""
    figure, _ = blank(size)
    figure.set_layout_engine("constrained", h_pad=0.08, w_pad=0.08)
    grid = figure.subplots(rows, columns, squeeze=False, **options)
    for axes in grid.flat:
        _make_quiet(axes)
    return figure, [list(row) for row in grid]


def _make_quiet(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(RULE)
    axes.tick_params(colors=FAINT, labelsize=9)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)


def settle(figure: Figure) -> None:
    """Give all axes their places, as drawing would, so that things can be measured."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)


def plain_ticks(axis: Axis) -> None:
    """0.1, 1, 10 on a log axis, not powers of ten."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def add_title(figure: Figure, title: str, under: str | Sequence[str]) -> None:
    """A title and lines below it at the figure's top left, with room for all of them.

    One string is wrapped; several are lines as they are.
    """
    width, height = (float(inches) for inches in figure.get_size_inches())
    given = textwrap.wrap(under, int(width * 14)) if isinstance(under, str) else under
    lines = [writable(line) for line in given] or [""]
    engine = figure.get_layout_engine()
    assert engine is not None  # set where the panels were made
    engine.set(rect=(0, 0, 1, 1 - (0.46 + 0.16 * len(lines)) / height))  # type: ignore[call-arg]  # the constrained one
    colour_under, size_under = (FAINT, 9.0) if isinstance(under, str) else (INK, 8.5)
    for words, down, size, weight, colour in (
        (writable(title), 0.14, 13, "bold", INK),
        ("\n".join(lines), 0.42, size_under, "normal", colour_under),
    ):
        figure.text(
            0.012, 1 - down / height, words, va="top", parse_math=False, family=families(),
            fontsize=size, fontweight=weight, color=colour,
        )  # fmt: skip


def heading(
    e: Explanation, label: str | int | None = None, most: int = 120
) -> tuple[str, list[str]]:
    """Title of a figure, and the lines below it: reasons, and how far to trust them."""
    shown, summary = wording.shown_class(e, label), Summary.of(e, label)
    of = "" if shown is None or shown == e.output.label else f" (scores of {shown})"
    lines = [
        line
        for words in (summary.reasons[:1].upper() + summary.reasons[1:], summary.trust)
        for line in textwrap.wrap(words, max(most, 20), max_lines=3, placeholder=" …")
    ]
    return f"{summary.answer}{of}", lines


def shades(strengths: Floats) -> list[str]:
    """Colours for dots and bars, which carry no text: even the weakest shows its sign."""
    sizes = (0.4 + 0.6 * np.abs(strengths)) / colours.STRONGEST
    return [colours.to_hex(colours.tint(float(s))) for s in np.copysign(sizes, strengths)]


def bounded(errors: Floats) -> Floats:
    """Errors as matplotlib can draw them: none where unknown or without bound."""
    return np.where(np.isfinite(errors), errors, np.nan)


def format_of(path: str | Path) -> str:
    """The format a path asks for; unknown ones are refused."""
    suffix = as_path("path", path).suffix.lower()
    if suffix not in SUFFIXES:
        raise PisteError(f"A figure can't be saved as {str(path)!r}: use {', '.join(SUFFIXES)}.")
    return suffix[1:]


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as PNG, SVG or PDF by its suffix, whole or not at all."""
    kind, buffer = format_of(path), io.BytesIO()
    # Without a date, the same explanation gives the same file.
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(buffer, format=kind, dpi=160, metadata=dates.get(kind))
    files.write_bytes(Path(path), buffer.getvalue())


def saved(draw: Callable[[], Figure], path: str | Path | None) -> Figure:
    """A figure, also written if a path is given; an unknown suffix is refused before the work."""
    if path is not None:
        format_of(path)
    figure = draw()
    if path is not None:
        save(figure, path)
    return figure
