"""A figure inside a page: SVG in the page's own font, its colours set by the style sheet."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from html import escape

import matplotlib
from matplotlib.figure import Figure
from matplotlib.text import Text

from piste.show.figures.canvas import FAINT, INK, RULE, settle
from piste.show.labels import DARK

_GROUND = "#ffffff"
_LARGER = 1.4
_NO_NOTES = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def colours() -> str:
    """Style rules for every colour of methods, on light and dark grounds."""
    light = "".join(f"--c{hexed[1:]}:{hexed};" for hexed in DARK)
    dark = "".join(f"--c{hexed[1:]}:{other};" for hexed, other in DARK.items())
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"


def inline(figure: Figure, about: str) -> str:
    """The figure as an ``<svg>`` element; all its text is escaped, ``about`` is its alternative.

    It needs the rules of :func:`colours` and of charts.css. The figure is used up by it.
    """
    for text in figure.findobj(Text):
        text.set_path_effects([])  # the style sheet keeps lines off it
    settle(figure)
    figure.set_layout_engine("none")  # saving would do it once more
    buffer = io.StringIO()
    # The salt makes the ids of clipping paths follow from their content alone.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "piste"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=_NO_NOTES)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].rstrip()
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    box = re.search(r'viewBox="[^"]*"', svg)
    assert box is not None  # matplotlib always writes one
    inside = svg[svg.index(">") + 1 :]
    # Text has about the size of the page's own, however wide the figure is.
    most = f"{_LARGER * 72 * float(figure.get_size_inches()[0]):.0f}px"
    names = _names()
    inside = re.sub(
        r"(?<=: )#[0-9a-f]{6}\b", lambda found: names.get(found.group(), found.group()), inside
    )
    return (
        f'<svg class="piste-chart" style="max-width:{most}" {box.group()} role="img" '
        f'aria-label="{escape(about)}">{inside}'
    )


def _names() -> Mapping[str, str]:
    quiet = {INK: "var(--ink)", FAINT: "var(--faint)", RULE: "var(--rule)", _GROUND: "var(--card)"}
    return quiet | {hexed: f"var(--c{hexed[1:]})" for hexed in DARK}
