"""The highlighted text as a figure, wrapped by measured widths."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle

from piste.explanation import Explanation
from piste.show import colours, reading
from piste.show.canvas import FAINT, INK, blank, heading
from piste.show.fonts import families, writable

MOST_LINES = 150
"""Taller figures are no longer figures; the rest is left out, with a note."""

_DPI = 100
_FINE = 8
"""Text is measured this much larger: hinting rounds small widths to whole pixels."""
_SIZE = 11.5
_LINE = 27.0
_MARGIN = 30.0


@dataclass(frozen=True)
class _Word:
    """A stretch of one piece, or a punctuation mark, set at a place in pixels."""

    text: str
    piece: reading.Piece
    x: float
    line: int
    width: float


@dataclass
class _Flow:
    """Words set one after the other; what stands together without a blank stays together."""

    width: float
    renderer: RendererAgg
    font: FontProperties
    x: float = 0.0
    line: int = 0
    words: list[_Word] = field(default_factory=list)
    waiting: list[tuple[str, reading.Piece]] = field(default_factory=list)
    measured: dict[str, float] = field(default_factory=dict)

    def measure(self, text: str) -> float:
        if text not in self.measured:
            size = self.renderer.get_text_width_height_descent(text, self.font, ismath=False)  # type: ignore[no-untyped-call]  # matplotlib's
            self.measured[text] = float(size[0]) / _FINE
        return self.measured[text]

    def add(self, pieces: list[reading.Piece]) -> None:
        """Set one text, ending its last line."""
        for piece in pieces:
            for part in re.findall(r"\r\n|\s|\S+", piece.text):
                if not part.isspace():
                    self.waiting.append((writable(part), piece))
                    continue
                self._set()
                if part in ("\r\n", "\n", "\r"):
                    self._break()
                elif self.x:
                    self.x += self.measure("n n") - self.measure("nn")
        self._set()
        self._break()

    def _break(self) -> None:
        self.x, self.line = 0.0, self.line + 1

    def _set(self) -> None:
        """Set what waits, on a new line if it doesn't fit on this one."""
        total = sum(self.measure(text) for text, _ in self.waiting)
        if self.x and self.x + total > self.width:
            self._break()
        for text, piece in self.waiting:
            while text:
                if self.x and self.x + self.measure(text) > self.width:
                    self._break()
                part = self._fitting(text)
                width = self.measure(part)
                self.words.append(_Word(part, piece, self.x, self.line, width))
                self.x, text = self.x + width, text[len(part) :]
        self.waiting = []

    def _fitting(self, text: str) -> str:
        """The beginning of a text that fits on a whole line."""
        while len(text) > 1 and self.measure(text) > self.width:
            share = min(self.width / self.measure(text), 0.95)
            text = text[: max(int(len(text) * share), 1)]
        return text


def text(
    e: Explanation,
    *,
    score: str | None = None,
    label: str | int | None = None,
    width: float = 9.0,
) -> Figure:
    """The input with every unit coloured by a score (default: the one that ranks)."""
    name = score or e.ranking
    strengths = colours.strengths(e.score(name, label))
    _, renderer = blank((1, 1))
    font = FontProperties(family=families(), size=_SIZE * _FINE)
    flow = _Flow(width * _DPI - 2 * _MARGIN, renderer, font)
    for number, pieces in enumerate(reading.texts(e)):
        flow.line += bool(number)  # an empty line between the texts of a pair
        flow.add(pieces)
    lines = min(flow.line, MOST_LINES)
    page = _Page.of(width, 2 * _MARGIN + 84 + lines * _LINE)
    title, under = heading(e, label)
    page.write(_MARGIN, _MARGIN + 8, writable(title), 13, INK, weight="bold")
    page.write(_MARGIN, _MARGIN + 30, writable(under), 9, FAINT)
    for word in flow.words:
        if word.line >= lines:
            break
        x, y = _MARGIN + word.x, _MARGIN + 50 + (word.line + 0.5) * _LINE
        unit = word.piece.unit
        if unit is not None:
            page.mark(x, y, word.width, float(strengths[unit]))
        page.write(x, y, word.text, _SIZE, FAINT if word.piece.unread else INK)
    bottom = page.height - _MARGIN
    _legend(page, bottom, reading.score_sides(e, name, label), name)
    left = sum(word.line >= lines for word in flow.words)
    if left:
        note = f"{left} more words not shown"
        page.write(width * _DPI - _MARGIN, bottom, note, 8, FAINT, align="right")
    return page.figure


@dataclass(frozen=True)
class _Page:
    """A figure addressed in pixels from its top left."""

    figure: Figure
    width: float
    height: float

    @staticmethod
    def of(width: float, height: float) -> _Page:
        figure, _ = blank((width, height / _DPI))
        return _Page(figure, width * _DPI, height)

    def write(
        self,
        x: float,
        y: float,
        words: str,
        size: float,
        colour: str,
        *,
        weight: str = "normal",
        align: str = "left",
    ) -> None:
        self.figure.text(
            x / self.width, 1 - y / self.height, words, fontsize=size, color=colour, weight=weight,
            ha=align, va="center_baseline", family=families(), parse_math=False,
        )  # fmt: skip

    def mark(self, x: float, y: float, wide: float, strength: float) -> None:
        """A ground of a strength behind a word."""
        if abs(strength) < colours.VISIBLE:
            return
        self.figure.add_artist(
            Rectangle(
                ((x - 1.5) / self.width, 1 - (y + 10.5) / self.height),
                (wide + 3) / self.width, 21 / self.height,
                facecolor=colours.hexed(colours.tint(strength)), edgecolor="none",
                transform=self.figure.transFigure,
            ),
            clip=False,
        )  # fmt: skip


def _legend(page: _Page, y: float, sides: tuple[str, str], name: str) -> None:
    above, below = sides
    x = _MARGIN + 1.5
    for words, steps in ((below, (-1.0, -0.6, -0.25)), (above, (0.25, 0.6, 1.0))):
        for strength in steps:
            page.mark(x, y, 12, strength)
            x += 15
        page.write(x + 4, y, writable(words), 9, INK)
        x += 22 + 6.3 * len(words)
    page.write(x, y, f"by {name}", 9, FAINT)
