"""Where in one input a class reacts to concepts: marked texts, heat maps, figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from piste.concepts.localization import ConceptMap
from piste.explanation import Explanation, Fidelity, Output
from piste.image import ImageInput
from piste.show import colours, wording
from piste.show.colours import TerminalCapabilities, step
from piste.show.figures.canvas import (
    INK,
    add_title,
    canvas,
    families,
    format_of,
    panels,
    save,
    writable,
)
from piste.show.heat_colours import SMALL, Heat, Scale, painted
from piste.show.html import explanation_html, image_html, page_shell
from piste.show.prompt_parts import Piece
from piste.show.terminal import image_blocks
from piste.show.wording import printable
from piste.surrogates import AdditiveSurrogate
from piste.target import Target

STYLES = ("image.css",)
_MOST_WORDS = 28
"""Words in the figure of a text: those that carry most."""
_ACROSS = 5
"""Images in a row of a figure."""


def title(found: ConceptMap) -> str:
    """What a map shows."""
    where = "the embeddings" if found.layer == 0 else f"layer {found.layer}"
    how = "" if found.kind == "attention" else ", not weighted by attention"
    return f"Where more of a concept would move {found.target} (in {where}{how})"


def ends(found: ConceptMap) -> tuple[str, str]:
    """What the two colours mean."""
    return f"more of it raises {found.target}", f"more of it lowers {found.target}"


def _view(found: ConceptMap, concept: str) -> Explanation:
    """One concept's numbers as those who draw units take them. It is no explanation to give away:
    its numbers predict nothing.
    """
    scores = found.scores[concept]
    return Explanation(
        method="concept",
        input=found.input,
        units=found.units,
        scores={concept: scores},
        errors={},
        target=Target("function", found.target),
        output=Output((0.0,), None, (found.target,), 0.0),
        fidelity=Fidelity(float("nan"), float("nan"), 0),
        calls=0,
        seconds=0.0,
        settings={"input": dict(found.notes)},
        surrogate=AdditiveSurrogate(0.0, concept),
        classifier={},
        versions={},
        ranking=concept,
    )


def _heat(found: ConceptMap, concept: str) -> Heat:
    """All concepts share one scale, so that their colours can be compared."""
    every = np.concatenate(list(found.scores.values()))
    scale = Scale.of("value", every)
    scores = found.scores[concept]
    return Heat(concept, scores, scale.strengths(scores), scale, ends(found), wording.digits(every))


# -- terminal ------------------------------------------------------------------------------------


def render(found: ConceptMap) -> RenderableType:
    """Every concept's units, marked in the text or painted over the image."""
    return _Rendered(found)


@dataclass(frozen=True)
class _Rendered:
    found: ConceptMap

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        found, terminal = self.found, TerminalCapabilities.of(console)
        yield Text(printable(title(found)), style="bold")
        if isinstance(found.input, ImageInput):
            yield from self._image(terminal, options)
            return
        for concept in found.scores:
            heat = _heat(found, concept)
            yield Text(printable(concept), style="dim")
            for part in wording.texts(_view(found, concept)):
                yield Padding(_highlighted(part, heat, terminal), (0, 2, 1, 2))
        above, below = ends(found)
        yield Text(f"blue, +: {above}   orange, -: {below}", style="dim")

    def _image(self, terminal: TerminalCapabilities, options: ConsoleOptions) -> RenderResult:
        found, room = self.found, options.max_width - 4
        heats = [_heat(found, concept) for concept in found.scores]
        boards = [
            image_blocks.board(_view(found, heat.name), heat, terminal, options, room)
            for heat in heats
        ]
        yield from image_blocks.rows([printable(heat.name) for heat in heats], boards, room)
        if image_blocks.signs_only(terminal, options):
            yield Text(image_blocks.sign_key(heats[0]), style="dim")
        else:
            yield image_blocks.keys(heats[:1])


def _highlighted(part: Sequence[Piece], heat: Heat, terminal: TerminalCapabilities) -> Text:
    """A text whose units have the colours of a scale that other concepts share."""
    text = Text()
    for piece in part:
        if piece.unit is None:
            text.append(printable(piece.text), style="strike dim" if piece.unread else "")
            continue
        strength = float(heat.strengths[piece.unit])
        signs = ("+" if strength > 0 else "-") * step(strength) if terminal.plain else ""
        text.append(printable(piece.text) + signs, style=terminal.style(strength))
    return text


# -- pages ---------------------------------------------------------------------------------------


def section(found: ConceptMap) -> str:
    """A part of a page."""
    return f"<section><h2>{escape(title(found))}</h2>{_body(found)}</section>"


def fragment(found: ConceptMap) -> str:
    """For a notebook: styles touch nothing outside."""
    sheets = "".join(page_shell.asset(name) for name in ("parts.css", *STYLES))
    return (
        f'<style>{sheets}</style><div class="piste piste-fragment"><p><strong>'
        f"{escape(title(found))}</strong></p>{_body(found)}</div>"
    )


def _body(found: ConceptMap) -> str:
    parts = []
    for concept in found.scores:
        view, heat = _view(found, concept), _heat(found, concept)
        kinds = wording.kinds(view)
        tips = [wording.number(float(heat.scores[kind.first]), heat.places) for kind in kinds]
        if isinstance(found.input, ImageInput):
            drawn = image_html.heat_map(view, kinds, [heat], image_html.unit_paths(view), tips)
            parts.append(
                f"<figure>{drawn}<figcaption>{escape(concept)}</figcaption>{image_html.scale(heat)}"
                "</figure>"
            )
        else:
            parts.append(f"<h3>{escape(concept)}</h3>{_text(view, heat)}")
    if isinstance(found.input, ImageInput):
        return f'<div class="piste-images piste-row">{"".join(parts)}</div>'
    return "".join(parts) + explanation_html.legend(ends(found))


def _text(view: Explanation, heat: Heat) -> str:
    """Every unit a span with its colour and its number."""
    image_blocks = []
    for part in wording.texts(view):
        spans = []
        for piece in part:
            words = escape(piece.text)
            if piece.unit is None:
                spans.append(f'<s class="piste-unread">{words}</s>' if piece.unread else words)
                continue
            number = wording.number(float(heat.scores[piece.unit]), heat.places)
            spans.append(
                f'<span class="piste-unit" title="{escape(number)}" '
                f'style="background:{heat.css(piece.unit)}">{words}</span>'
            )
        image_blocks.append(f'<p class="piste-text" dir="auto">{"".join(spans)}</p>')
    return "".join(image_blocks)


# -- figures -------------------------------------------------------------------------------------


def plot(found: ConceptMap, path: str | Path | None = None) -> Figure:
    """The image beside one heat map per concept, or words × concepts; saved if a path is given."""
    if path is not None:
        format_of(path)  # refused before the work
    figure = _images(found) if isinstance(found.input, ImageInput) else _words(found)
    if path is not None:
        save(figure, path)
    return figure


def _images(found: ConceptMap) -> Figure:
    image = found.input
    assert isinstance(image, ImageInput)
    drawn = {image.name: image.pixels}
    for concept in found.scores:
        drawn[concept] = painted(_view(found, concept), _heat(found, concept))
    across = min(len(drawn), _ACROSS)
    down = -(-len(drawn) // across)
    high = 0.35 + 2.7 * min(image.height / image.width, 2.0)
    figure, rows = panels((2.8 * across, 0.9 + high * down), down, across)
    places = [axes for row in rows for axes in row]
    sharp = "nearest" if max(image.width, image.height) < SMALL else "auto"
    for axes in places:
        axes.set_axis_off()
    for axes, (name, pixels) in zip(places, drawn.items(), strict=False):
        axes.imshow(pixels, interpolation=sharp)
        axes.set_title(
            writable(name), loc="left", fontsize=10, color=INK, parse_math=False,
            family=families(),
        )  # fmt: skip
    add_title(figure, title(found), "blue: " + " · orange: ".join(ends(found)))
    return figure


def _words(found: ConceptMap) -> Figure:
    """The words that carry most, in their order, a row for each and a column per concept."""
    matrix = np.stack(list(found.scores.values()), axis=1)
    strongest = np.argsort(-np.abs(matrix).max(axis=1), kind="stable")[:_MOST_WORDS]
    order = np.sort(strongest)
    strengths = colours.strengths(matrix)[order]
    figure, axes = canvas((2.6 + 1.0 * matrix.shape[1], 1.6 + 0.26 * len(order)))
    tints = [[colours.tint(float(one)) for one in row] for row in strengths]
    axes.imshow(np.array(tints, dtype=np.uint8), aspect="auto", interpolation="nearest")
    names = [writable(name) for name in found.scores]
    crowded = max(map(len, names)) > 10
    axes.set_xticks(
        range(len(names)), names, rotation=30 if crowded else 0, ha="left" if crowded else "center"
    )
    axes.xaxis.tick_top()
    units = [writable(wording.short(found.units[place].text)) for place in order]
    axes.set_yticks(range(len(order)), units)
    for tick in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        tick.set(parse_math=False, family=families(), color=INK)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    add_title(figure, title(found), "blue: " + " · orange: ".join(ends(found)))
    return figure
