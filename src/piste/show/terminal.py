"""An explanation in a terminal: headline, highlighted text or heat map, the strongest units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from piste.explanation import Explanation
from piste.show import blocks, colours, reading
from piste.show.look import GROUNDS, Look, printable, step
from piste.show.pieces import Piece, texts

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
        look = Look.of(console)
        yield from _header(e)
        for warning in reading.warnings(e):
            yield Text(f"Note: {warning}", style="bold yellow")
        yield ""
        if reading.of_picture(e):
            yield Padding(blocks.shown(e, look, options), (0, 2))
        for number, pieces in enumerate(texts(e), start=1):
            body = highlighted(e, pieces, look)
            if not isinstance(e.input, str):
                yield Text(f"text {number}", style="dim")
            yield Padding(body, (0, 2, 1, 2))
        if not reading.of_picture(e):
            yield Padding(legend(e, e.ranking, look), (0, 2))
        yield ""
        yield _table(e, options.max_width, options.ascii_only)
        yield Text(reading.how_to_read(e), style="italic")


def _header(e: Explanation) -> RenderResult:
    yield Text.assemble(("The model says ", ""), (reading.prediction(e), "bold"))
    lines = {
        "explained": reading.explained(e),
        "method": f"{e.method}, {e.calls:,} calls, {e.seconds:.1f} s",
        "trust": reading.trust(e),
    }
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, line in lines.items():
        grid.add_row(name, Text(line))
    yield grid


def _marked(text: str, strength: float) -> str:
    """Without colours, signs tell strength: great++, slow-."""
    sign = "+" if strength > 0 else "-"
    return text + sign * step(strength)


def highlighted(e: Explanation, pieces: list[Piece], look: Look, most: int = MOST_UNITS) -> Text:
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
            text.append(f"… ({left} more units not shown here)", style="dim")
            break
        strength = float(strengths[piece.unit])
        if look.plain:
            text.append(_marked(printable(piece.text), strength))
        else:
            text.append(printable(piece.text), style=look.style(strength))
    return text


def legend(e: Explanation, by: str, look: Look) -> Text:
    """What the two colours, or signs, mean."""
    above, below = reading.score_sides(e, e.ranking)
    if look.plain:
        return Text(f"word+++ {above}, word--- {below} (by {by})", style="dim")
    line = Text()
    for words, strength in ((above, 1.0), (below, -1.0)):
        line.append("  ", style=look.style(strength))
        line.append(f" {words}   ")
    line.append(f"by {by}", style="dim")
    return line


def _table(e: Explanation, width: int, ascii_only: bool) -> Table:
    """The strongest units; errors go first when the terminal is narrow, then the bar."""
    names = reading.main_scores(e)
    scores = {name: e.score(name) for name in names}
    errors = {name: e.error(name) for name in names}
    places = {name: reading.digits(scores[name]) for name in names}
    ranked, all_kinds = scores[e.ranking], reading.kinds(e)
    order = reading.by_size(np.array([ranked[kind.first] for kind in all_kinds]))[:ROWS]
    roomy = width >= 34 + 16 * len(names)
    bar = min(width - 30 - (16 if roomy else 9) * len(names), 20)
    left = len(all_kinds) - len(order)
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim", caption_style="dim")
    table.caption = f"weaker and not listed: {left}" if left else None
    table.caption_justify = "left"
    table.add_column(reading.part(e), overflow="ellipsis", no_wrap=True, max_width=24, min_width=6)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    if bar >= 4:
        table.add_column("", no_wrap=True)
    finite = np.abs(ranked[np.isfinite(ranked)])
    most = float(finite.max(initial=0)) or 1.0
    for place in order:
        kind, unit = all_kinds[place], all_kinds[place].first
        row = [Text(printable(kind.title))]
        for name in names:
            value, error = float(scores[name][unit]), float(errors[name][unit])
            shown = reading.with_error(value, error if roomy else np.nan, places[name])
            row.append(Text(shown))
        if bar >= 4:
            row.append(_bar(float(np.nan_to_num(ranked[unit])) / most, bar, ascii_only))
        table.add_row(*row)
    return table


def _bar(share: float, width: int, ascii_only: bool) -> Text:
    length = round(abs(share) * width)
    colour = GROUNDS[1 if share >= 0 else -1][2]
    return Text(("#" if ascii_only else "━") * length, style=colour)
