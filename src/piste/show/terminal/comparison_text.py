"""Explanations of one input by several methods, side by side, in a terminal."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from piste.comparison import Comparison
from piste.show import wording
from piste.show.alignment import FIGURES, SCALED, SideBySide
from piste.show.colours import TerminalCapabilities
from piste.show.heat_colours import Heat, image_of
from piste.show.terminal import image_blocks
from piste.show.terminal.explanation_text import (
    MOST_UNITS,
    highlighted,
    legend,
    summary_line,
    together,
)
from piste.show.wording import printable

ROWS = 14
_LEAST_UNITS = 60
"""So much of a text is always shown, however many methods there are."""


def render(comparison: Comparison) -> RenderableType:
    """Verdicts, the input as every method sees it, and the strongest units, for a terminal."""
    return Report(SideBySide.of_comparison(comparison))


@dataclass(frozen=True)
class Report:
    """Rendered late, when the console's width and colours are known."""

    sides: SideBySide

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        sides, terminal = self.sides, TerminalCapabilities.of(console)
        first = sides.first
        yield summary_line(first)
        yield Text(sides.verdict())
        yield Text(f"explained: {wording.explained(first)}", style="dim")
        for warning in wording.input_warnings(first):
            yield Text(f"Note: {warning}", style="bold yellow")
        yield ""
        yield from _images(sides, terminal, options)
        most = max(MOST_UNITS // len(sides.explanations), _LEAST_UNITS)
        for e in [] if wording.of_image(first) else sides.explanations:
            yield Text.assemble((e.method, "bold"), (f"  {sides.badge(e)}", "dim"))
            for block in wording.blocks(e):
                yield Padding(highlighted(e, block.pieces, terminal, most), (0, 2))
            yield from together(e, options)
            yield ""
        if not wording.of_image(first):
            yield Padding(legend(first, "every method's own ranking", terminal), (0, 2))
            yield ""
        for chunk in _chunks(sides.methods, options.max_width):
            yield _units(sides, chunk, terminal)
            yield ""
        yield Text(SCALED, style="dim")
        yield ""
        yield _verdicts(sides, options.max_width)
        for words in sides.left_out:
            yield Text(words, style="dim")


def _images(
    sides: SideBySide, terminal: TerminalCapabilities, options: ConsoleOptions
) -> RenderResult:
    """One heat map per method, as many side by side as fit, then their keys; none of a text."""
    if not wording.of_image(sides.first):
        return
    room = options.max_width - 4
    heats = [Heat.of(e) for e in sides.explanations]
    boards = [
        image_blocks.board(e, heat, terminal, options, room)
        for e, heat in zip(sides.explanations, heats, strict=True)
    ]
    titles = [f"{e.method}\n{sides.badge(e)}" for e in sides.explanations]
    if not image_blocks.signs_only(terminal, options):
        image = image_of(sides.first)
        titles.insert(0, f"{printable(image.name)}\nthe image itself")
        boards.insert(0, image_blocks.plain_board(image, image_blocks.columns(sides.first, room)))
    for table in image_blocks.rows(titles, boards, room):
        yield Padding(table, (0, 2, 1, 2))
    if image_blocks.signs_only(terminal, options):
        # Methods differ in their numbers, not in what their signs mean.
        keys = dict.fromkeys(image_blocks.sign_key(heat, numbered=False) for heat in heats)
        yield Padding(Text("\n".join(keys), style="dim"), (0, 2, 1, 2))
    else:
        named = zip(heats, sides.methods, strict=True)
        keyed = [replace(heat, name=method) for heat, method in named]
        yield Padding(image_blocks.keys(keyed), (0, 2, 1, 2))


def _heading(method: str) -> str:
    """A method's name as a narrow heading: it breaks behind underscores."""
    return method.replace("_", "_\n")


def _chunks(methods: list[str], width: int) -> list[list[str]]:
    """Methods cut into tables that fit the width, as even as they can be."""
    widest = max(len(part) for method in methods for part in _heading(method).split("\n"))
    fit = max((width - 24) // (max(widest, 5) + 2), 1)
    count = -(-len(methods) // fit)
    size = -(-len(methods) // count)
    return [methods[start : start + size] for start in range(0, len(methods), size)]


def _quiet() -> Table:
    return Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")


def _units(sides: SideBySide, methods: list[str], terminal: TerminalCapabilities) -> Table:
    """The strongest units with their scaled scores, coloured as the text is."""
    table = _quiet()
    table.add_column(
        wording.part(sides.first), overflow="ellipsis", no_wrap=True, max_width=22, min_width=6
    )
    for method in methods:
        table.add_column(_heading(method), justify="right", vertical="bottom")
    rows = [sides.methods.index(method) for method in methods]
    for index in sides.strongest(ROWS):
        kind = sides.kinds[index]
        cells = []
        for row in rows:
            value = float(sides.scaled[row, kind.first])
            cells.append(
                Text(f" {wording.number(value)} ", style=terminal.style(np.nan_to_num(value)))
            )
        table.add_row(Text(printable(kind.title)), *cells)
    return table


def _verdicts(sides: SideBySide, width: int) -> Table:
    """What was measured of every method, the best of each column in bold."""
    table = _quiet()
    table.add_column("method", no_wrap=True, overflow="ellipsis")
    names = sides.known_figures()
    short = width < 24 + 17 * len(names)
    for name in names:
        title = FIGURES[name].title
        table.add_column(title.replace(" ", "\n") if short else title, justify="right")
    for e in sides.explanations:
        cells = [
            Text(sides.shown(e.method, name), "bold" if e.method in sides.best(name) else "")
            for name in names
        ]
        table.add_row(Text(e.method), *cells)
    return table
