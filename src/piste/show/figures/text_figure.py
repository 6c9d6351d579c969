"""The highlighted text as a figure, wrapped by measured widths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from piste.explanation import Explanation
from piste.show import colours, score_terms
from piste.show.figures.canvas import FAINT, INK, blank, families, heading, writable
from piste.show.prompt_parts import Piece
from piste.show.wording import blocks
from piste.types import Floats

MOST_LINES = 150
"""Taller figures are no longer figures; the rest is left out, with a note."""

DPI = 100
_FINE = 8
"""Text is measured this much larger: hinting rounds small widths to whole pixels."""
_LONGEST = 400
"""Signs that are measured at once: hardly a line holds more, and the time would grow with their
square."""
_SIZE = 11.5
LINE = 27.0
MARGIN = 30.0


@dataclass(frozen=True)
class Word:
    """A stretch of one piece, or a punctuation mark, set at a place in pixels."""

    text: str
    piece: Piece
    x: float
    line: int
    width: float


@dataclass
class Flow:
    """Words set one after the other; what stands together without a blank stays together."""

    width: float
    renderer: RendererAgg
    font: FontProperties
    x: float = 0.0
    line: int = 0
    words: list[Word] = field(default_factory=list)
    waiting: list[tuple[str, Piece]] = field(default_factory=list)
    measured: dict[str, float] = field(default_factory=dict)

    def measure(self, text: str) -> float:
        if text not in self.measured:
            size = self.renderer.get_text_width_height_descent(text, self.font, ismath=False)  # type: ignore[no-untyped-call]  # matplotlib's
            self.measured[text] = float(size[0]) / _FINE
        return self.measured[text]

    def add(self, pieces: Sequence[Piece]) -> None:
        """Set one text, ending its last line."""
        for piece in pieces:
            for part in re.findall(r"\r\n|\s|\S+", piece.text):
                if not part.isspace():
                    shown = writable(part)
                    stretches = range(0, len(shown), _LONGEST)
                    self.waiting += [(shown[at : at + _LONGEST], piece) for at in stretches]
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
                self.words.append(Word(part, piece, self.x, self.line, width))
                self.x, text = self.x + width, text[len(part) :]
        self.waiting = []

    def _fitting(self, text: str) -> str:
        """The beginning of a text that fits on a whole line."""
        while len(text) > 1 and self.measure(text) > self.width:
            share = min(self.width / self.measure(text), 0.95)
            text = text[: max(int(len(text) * share), 1)]
        return text


def flowed(e: Explanation, width: float) -> tuple[list[Word], int]:
    """The input's words set in lines of a width in pixels, and the number of lines."""
    _, renderer = blank((1, 1))
    font = FontProperties(family=families(), size=_SIZE * _FINE)
    flow = Flow(width, renderer, font)
    for number, block in enumerate(blocks(e)):
        flow.line += bool(number)  # an empty line between the texts of a pair, or parts of a prompt
        if block.title is not None and isinstance(e.input, str):
            flow.add([_label(block.title)])
        flow.add(block.pieces)
    if e.answer is not None:
        flow.line += 1
        flow.add([_label("the answer")])
        flow.add([Piece(e.answer.text, None)])
    return flow.words, flow.line


def _label(name: str) -> Piece:
    """A name above what it names, as faint as what the model doesn't read."""
    return Piece(name, None, unread=True)


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
    words, lines = flowed(e, width * DPI - 2 * MARGIN)
    lines = min(lines, MOST_LINES)
    head = Head.of(e, label, width)
    page = Page.of(width, 2 * MARGIN + head.height + 34 + lines * LINE)
    page.head(head)
    left = page.flow(MARGIN, MARGIN + head.height, words, strengths, lines)
    bottom = page.height - MARGIN
    page.legend(bottom, score_terms.sides(e, name, label), name)
    if left:
        note = f"{left} more words not shown"
        page.write(width * DPI - MARGIN, bottom, note, 8, FAINT, align="right")
    return page.figure


@dataclass(frozen=True)
class Head:
    """The answer, and below it the reasons and how far to trust them, wrapped."""

    title: str
    lines: tuple[str, ...]

    @staticmethod
    def of(e: Explanation, label: str | int | None, width: float) -> Head:
        """For a page so many inches wide."""
        title, under = heading(e, label, int(15 * (width - 2 * MARGIN / DPI)))
        return Head(title, tuple(under))

    @property
    def height(self) -> float:
        """Pixels from the margin to what follows."""
        return 38.0 + 17.0 * len(self.lines)


@dataclass(frozen=True)
class Page:
    """A figure addressed in pixels from its top left."""

    figure: Figure
    width: float
    height: float

    @staticmethod
    def of(width: float, height: float) -> Page:
        """A page so many inches wide and pixels high."""
        figure, _ = blank((width, height / DPI))
        return Page(figure, width * DPI, height)

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
        gid: str | None = None,
    ) -> Text:
        return self.figure.text(
            x / self.width, 1 - y / self.height, words, fontsize=size, color=colour, weight=weight,
            ha=align, va="center_baseline", family=families(), parse_math=False, gid=gid,
        )  # fmt: skip

    def head(self, head: Head) -> None:
        """The summary at the top."""
        self.write(MARGIN, MARGIN + 8, writable(head.title), 13, INK, weight="bold")
        for row, words in enumerate(head.lines):
            self.write(MARGIN, MARGIN + 32 + 17 * row, writable(words), 9, INK)

    def mark(self, x: float, y: float, wide: float, strength: float) -> None:
        """A ground of a strength behind a word."""
        if abs(strength) >= colours.VISIBLE:
            self.box(x - 1.5, y - 10.5, wide + 3, 21, colours.to_hex(colours.tint(strength)))

    def box(self, x: float, y: float, wide: float, high: float, colour: str) -> None:
        """A filled rectangle, its corner at the top left."""
        self.figure.add_artist(
            Rectangle(
                (x / self.width, 1 - (y + high) / self.height),
                wide / self.width, high / self.height,
                facecolor=colour, edgecolor="none", transform=self.figure.transFigure,
            ),
            clip=False,
        )  # fmt: skip

    def flow(self, x: float, y: float, words: list[Word], strengths: Floats, lines: int) -> int:
        """Highlighted words from a corner on; how many are left over after so many lines."""
        for word in words:
            if word.line >= lines:
                break
            at, middle = x + word.x, y + (word.line + 0.5) * LINE
            unit = word.piece.unit
            if unit is not None:
                self.mark(at, middle, word.width, float(strengths[unit]))
            self.write(at, middle, word.text, _SIZE, FAINT if word.piece.unread else INK)
        return sum(word.line >= lines for word in words)

    def legend(self, y: float, sides: tuple[str, str], name: str) -> None:
        """What the two colours mean, in a line."""
        above, below = sides
        x = MARGIN + 1.5
        for words, steps in ((below, (-1.0, -0.6, -0.25)), (above, (0.25, 0.6, 1.0))):
            for strength in steps:
                self.mark(x, y, 12, strength)
                x += 15
            self.write(x + 4, y, writable(words), 9, INK)
            x += 22 + 6.3 * len(words)
        self.write(x, y, f"by {name}", 9, FAINT)
