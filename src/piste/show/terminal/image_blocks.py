"""An image and its heat maps in a terminal: half blocks in colour, or signs and digits without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.color import Color
from rich.console import ConsoleOptions, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from piste.explanation import Explanation
from piste.image import ImageInput
from piste.show import score_terms
from piste.show.colours import TerminalCapabilities, step
from piste.show.heat_colours import Heat, Pixels, areas_of, image_of, paled, tinted
from piste.show.wording import printable

MOST = 34
"""Columns of a terminal that one image takes at most."""
GAP = 3
_CELL = 3
"""Columns of one cell where signs and digits stand for colours."""
_CELLS = 14
"""Cells from left to right where the parts are no grid."""


def shown(
    e: Explanation, terminal: TerminalCapabilities, options: ConsoleOptions
) -> RenderableType:
    """The image and its scores side by side, as many as there is room for, and their key."""
    image, room = image_of(e), options.max_width - 4
    names = score_terms.main_scores(e)
    if signs_only(terminal, options):
        heat = Heat.of(e)
        caption = Text(f"{sign_key(heat)}; by {heat.name}", style="dim")
        return Group(board(e, heat, terminal, options, room), Text(), caption)
    wide = columns(e, room)
    fit = max((room + GAP) // (wide + GAP), 1)
    # The ranking score comes first, then the image itself, then the others.
    heats = [Heat.of(e, name) for name in (names if fit > len(names) else names[-1:])]
    titles = [heat.name for heat in heats]
    boards = [board(e, heat, terminal, options, room) for heat in heats]
    if fit > 1:
        titles.insert(0, printable(image.name))
        boards.insert(0, plain_board(image, wide))
    return Group(*rows(titles, boards, room), Text(), keys(heats))


def signs_only(terminal: TerminalCapabilities, options: ConsoleOptions) -> bool:
    """Whether the terminal has too few colours, or no letters, for half blocks."""
    return terminal.plain or terminal.basic or options.ascii_only


def rows(titles: list[str], boards: list[Text], room: int) -> Iterator[Table]:
    """Boards next to each other, each under its title, in as many rows as they need."""
    wide = max(len(line) for board in boards for line in board.plain.split("\n"))
    fit = max((room + GAP) // (wide + GAP), 1)
    for start in range(0, len(boards), fit):
        grid = Table.grid(padding=(0, GAP, 0, 0))
        part = slice(start, start + fit)
        for _ in boards[part]:
            grid.add_column(no_wrap=True, overflow="ellipsis", max_width=wide)
        grid.add_row(*(Text(title, style="dim") for title in titles[part]))
        grid.add_row(*boards[part])
        yield grid


def columns(e: Explanation, room: int) -> int:
    """Columns of one board: a whole number for every part of a grid, where that is possible."""
    most = max(min(MOST, room), 1)
    size = _grid(e)
    if size is None or size[0] > most:
        return min(most, image_of(e).width)
    return size[0] * (most // size[0])


def board(
    e: Explanation, heat: Heat, terminal: TerminalCapabilities, options: ConsoleOptions, room: int
) -> Text:
    """A score painted over the image, or written in cells where there are too few colours."""
    image = image_of(e)
    if signs_only(terminal, options):
        return _signs(e, heat, terminal, options, room)
    wide = columns(e, room)
    high = _height(image, wide)
    greys = Image.fromarray(paled(image)).resize((wide, high), Image.Resampling.BOX)
    ground = np.repeat(np.asarray(greys)[:, :, None], 3, axis=2)
    strengths = np.append(heat.strengths, 0.0)[_sampled(image, wide, high)]
    return _half_blocks(tinted(ground, strengths, heat.scale.directed))


def keys(heats: list[Heat]) -> Table:
    """The colours of every score, with the numbers and the meaning of both ends."""
    grid = Table.grid(padding=(0, 1))
    for justify in ("left", "right", "right", "left", "left", "left"):
        grid.add_column(justify=justify)
    for heat in heats:
        ramp = Text(no_wrap=True)
        for red, green, blue in heat.scale.ramp(13).tolist():
            ramp.append(" ", Style(bgcolor=Color.from_rgb(red, green, blue)))
        (above, below), numbers = heat.ends, [words for _, words in heat.marks]
        cells = (heat.name, below, numbers[0], ramp, numbers[-1], above)
        grid.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells))
    return grid


def sign_key(heat: Heat, numbered: bool = True) -> str:
    """What signs and digits mean."""
    above, below = heat.ends
    high, low = "", ""
    if numbered:
        low, high = (f" ({words})" for _, words in (heat.marks[0], heat.marks[-1]))
    if heat.scale.directed:
        return f"+9 {above}{high}, -9 {below}{low}, . hardly either"
    return f"9 {above}{high}, 0 {below}{low}"


def plain_board(image: ImageInput, wide: int) -> Text:
    """The image itself, coarsely."""
    size = (wide, _height(image, wide))
    return _half_blocks(np.asarray(image.to_pil().resize(size, Image.Resampling.BOX)))


def _height(image: ImageInput, wide: int) -> int:
    """Pixels from top to bottom: two to a line, so an even number."""
    return max(2 * round(wide * image.height / image.width / 2), 2)


def _half_blocks(pixels: Pixels) -> Text:
    """Two rows of pixels to a line: the upper as the block's colour, the lower as its ground."""
    text = Text()
    for upper, lower in zip(pixels[::2].tolist(), pixels[1::2].tolist(), strict=True):
        if text:
            text.append("\n")
        for top, bottom in zip(upper, lower, strict=True):
            text.append("▀", Style(color=Color.from_rgb(*top), bgcolor=Color.from_rgb(*bottom)))
    return text


def _signs(
    e: Explanation, heat: Heat, terminal: TerminalCapabilities, options: ConsoleOptions, room: int
) -> Text:
    """One cell per part of a grid, or the part in the middle of each cell: +9 … -9, or 0 … 9."""
    image, most = image_of(e), max(room // _CELL, 1)
    size = _grid(e)
    if size is None or size[0] > most:
        across = min(_CELLS, most)
        # A cell is half as wide again as it is high.
        down = max(round(1.5 * across * image.height / image.width), 1)
    else:
        across, down = size
    text = Text()
    for number, row in enumerate(_sampled(image, across, down).tolist()):
        if number:
            text.append("\n")
        for unit in row:
            strength = float(heat.strengths[unit]) if unit >= 0 else 0.0
            words = _written(strength, heat.scale.directed) if unit >= 0 else "  "
            text.append(words, style=terminal.style(strength))
            text.append(" ")
    return text


def _written(strength: float, directed: bool) -> str:
    """A strength in two signs; a dot where a text would leave the word unmarked."""
    digit = round(9 * abs(strength))
    if not directed:
        return f" {digit}"
    return f"{'+' if strength > 0 else '-'}{digit}" if step(strength) else " ."


def _sampled(image: ImageInput, across: int, down: int) -> NDArray[np.int32]:
    """The units in the middle of equal cells, rows × columns; −1 where none is."""
    rows = ((np.arange(down) + 0.5) * image.height / down).astype(int)
    places = ((np.arange(across) + 0.5) * image.width / across).astype(int)
    return areas_of(image)[np.ix_(rows, places)]


def _grid(e: Explanation) -> tuple[int, int] | None:
    """How many parts stand side by side and one above the other, if they are a grid."""
    boxes = [unit.box for unit in e.units if unit.box is not None]
    across, down = len({box[0] for box in boxes}), len({box[1] for box in boxes})
    return (across, down) if across * down == len(e.units) else None
