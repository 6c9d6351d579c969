"""An explanation in a terminal: headline, highlighted text or heat map, the strongest units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from piste.explanation import Explanation
from piste.show import colours, pair_terms, score_terms, wording
from piste.show.colours import GROUNDS, TerminalCapabilities, step
from piste.show.prompt_parts import Piece
from piste.show.score_terms import PartSum, part_sums, strongest
from piste.show.summary import Summary
from piste.show.terminal import image_blocks
from piste.show.wording import blocks, printable

ROWS = 12
MOST_UNITS = 400
"""Units of highlighted text before the rest is left out, with a note."""


def render(e: Explanation) -> RenderableType:
    """Everything a reader needs at a glance, fitted to the terminal's width and colours."""
    return _Report(e)


@dataclass(frozen=True)
class _Report:
    """Rendered late, when the console's width and colours are known."""

    e: Explanation

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        e = self.e
        terminal = TerminalCapabilities.of(console)
        yield summary_line(e)
        yield Text(Summary.of(e).trust)
        for warning in wording.warnings(e):
            yield Text(f"Note: {warning}", style="bold yellow")
        yield ""
        if wording.of_image(e):
            yield Padding(image_blocks.shown(e, terminal, options), (0, 2))
        for block in blocks(e):
            if block.title is not None:
                yield Text(printable(block.title), style="dim")
            body = highlighted(e, block.pieces, terminal)
            if block.is_pinned:
                body.stylize("dim")
            yield Padding(body, (0, 2, 1, 2))
        if e.answer is not None:
            yield Text("the answer", style="dim")
            yield Padding(Text(printable(e.answer.text), style="bold"), (0, 2, 1, 2))
        if not wording.of_image(e):
            yield Padding(legend(e, e.ranking, terminal), (0, 2))
            if e.pairs or e.settings.get("phrases"):
                yield from together(e, options)
        yield ""
        sums = part_sums(e)
        if sums:
            yield _parts_table(e, sums, options.max_width, options.ascii_only)
            yield ""
        yield _table(e, options.max_width, options.ascii_only)
        yield ""
        yield _glossary(e)


def summary_line(e: Explanation) -> Text:
    """The answer and its reasons."""
    summary = Summary.of(e)
    line = Text.assemble((printable(summary.answer), "bold"), ": ")
    for words, name in summary.pieces:
        line.append(printable(words), style="italic bold" if name else "")
    return line


def _glossary(e: Explanation) -> Table:
    lines = score_terms.glossary(e) | {"explained": score_terms.made(e)}
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(style="dim", overflow="fold")
    for name, line in lines.items():
        grid.add_row(Text(name), Text(printable(line)))
    return grid


def _marked(text: str, strength: float) -> str:
    """Without colours, signs tell strength: great++, slow-."""
    sign = "+" if strength > 0 else "-"
    return text + sign * step(strength)


def highlighted(
    e: Explanation, pieces: Sequence[Piece], terminal: TerminalCapabilities, most: int = MOST_UNITS
) -> Text:
    """One text with every unit marked by its strength, at most so many of them."""
    strengths = colours.strengths(e.score())
    text, shown = Text(), 0
    for piece in pieces:
        if piece.unit is None:
            text.append(printable(piece.text), style="strike dim" if piece.unread else "")
            continue
        shown += 1
        if shown > most:
            left = sum(piece.unit is not None for piece in pieces) - most
            text.append(f"… ({left} more {wording.part(e)}s not shown here)", style="dim")
            break
        strength = float(strengths[piece.unit])
        if terminal.plain:
            text.append(_marked(printable(piece.text), strength))
        else:
            text.append(printable(piece.text), style=terminal.style(strength))
    return text


def legend(e: Explanation, by: str, terminal: TerminalCapabilities) -> Text:
    """What the two colours, or signs, mean."""
    above, below = score_terms.sides(e, e.ranking)
    if terminal.plain:
        return Text(f"word+++ {above}, word--- {below} (by {by})", style="dim")
    line = Text()
    for words, strength in ((above, 1.0), (below, -1.0)):
        line.append("  ", style=terminal.style(strength))
        line.append(f" {words}   ")
    line.append(f"by {by}", style="dim")
    return line


def together(e: Explanation, options: ConsoleOptions) -> RenderResult:
    """The pairs of units that act together, on one line, and the phrases that were joined."""
    joined = ", ".join(f"“{phrase}”" for phrase in pair_terms.joined(e))
    for line in (joined and f"joined: {joined}", pair_terms.line(e, options.max_width - 4)):
        if line:
            text = Text(printable(line), overflow="ellipsis", no_wrap=True)
            text.stylize("dim", 0, line.index(":") + 1)
            yield Padding(text, (0, 2))


def _table(e: Explanation, width: int, ascii_only: bool) -> Table:
    """The strongest units; in a narrow terminal the bar goes first, then the errors."""
    names = score_terms.main_scores(e)
    scores = {name: e.score(name) for name in names}
    ranked, all_kinds = scores[e.ranking], wording.kinds(e)
    order = wording.by_size(np.array([ranked[kind.first] for kind in all_kinds]))[:ROWS]
    some = [all_kinds[place] for place in order]
    titles = [printable(kind.title) for kind in some]
    numbers = [_cells(e, name, some, errors=True) for name in names]
    wide = min(max(map(cell_len, (*titles, wording.part(e)))), 24)
    if _width(names, numbers) + min(wide, 12) > width:
        numbers = [_cells(e, name, some, errors=False) for name in names]
    left = len(all_kinds) - len(order)
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim", caption_style="dim")
    table.caption = f"weaker and not listed: {left}" if left else None
    table.caption_justify = "left"
    table.add_column(wording.part(e), overflow="ellipsis", no_wrap=True, max_width=24, min_width=6)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    bar = min(width - wide - _width(names, numbers) - _SPACE, 20)
    if bar >= 4:
        table.add_column("", no_wrap=True)
    finite = np.abs(ranked[np.isfinite(ranked)])
    most = float(finite.max(initial=0)) or 1.0
    for row, kind in enumerate(some):
        cells = [Text(titles[row]), *(Text(column[row]) for column in numbers)]
        if bar >= 4:
            share = float(np.nan_to_num(ranked[kind.first])) / most
            cells.append(_bar(share, bar, ascii_only))
        table.add_row(*cells)
    return table


def _parts_table(e: Explanation, sums: list[PartSum], width: int, ascii_only: bool) -> Table:
    """Parts of the prompt, the largest sum first."""
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    table.add_column("part", overflow="ellipsis", no_wrap=True, max_width=24, min_width=6)
    table.add_column(f"{e.ranking} in sum", justify="right", no_wrap=True)
    bar = 20 if width >= 90 else 0
    if bar:
        table.add_column("", no_wrap=True)
    table.add_column("strongest in it", overflow="ellipsis", no_wrap=True)
    most = max(abs(part.total) for part in sums) or 1.0
    places = wording.digits(np.array([part.total for part in sums]))
    for part in sums:
        cells = [Text(printable(part.name)), Text(wording.number(part.total, places))]
        if bar:
            cells.append(_bar(part.total / most, bar, ascii_only))
        table.add_row(*cells, Text(printable(strongest(e, part)), style="dim"))
    return table


_SPACE = 2
"""Between two columns."""


def _cells(e: Explanation, name: str, some: list[wording.Kind], *, errors: bool) -> list[str]:
    """A score of these kinds as text."""
    scores, spread = e.score(name), e.error(name)
    places = wording.digits(scores)
    return [
        wording.with_error(
            float(scores[kind.first]), float(spread[kind.first]) if errors else np.nan, places
        )
        for kind in some
    ]


def _width(names: list[str], columns: list[list[str]]) -> int:
    """What columns of numbers need, with the space before each."""
    pairs = zip(names, columns, strict=True)
    return sum(max(map(len, (name, *column))) + _SPACE for name, column in pairs)


def _bar(share: float, width: int, ascii_only: bool) -> Text:
    length = round(abs(share) * width)
    colour = GROUNDS[1 if share >= 0 else -1][2]
    return Text(("#" if ascii_only else "━") * length, style=colour)
