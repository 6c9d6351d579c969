"""The highlighted text and its legend, as parts of a page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from piste.explanation import Explanation
from piste.show import colours, wording
from piste.show.text_pieces import texts


def text(e: Explanation, kinds: Sequence[wording.Kind], tips: Sequence[str]) -> str:
    """Every unit a span with its kind, its colour and, for readers without script, its tip."""
    kind_of = {unit: index for index, kind in enumerate(kinds) for unit in kind.units}
    strengths = colours.strengths(e.score())
    blocks = []
    for number, pieces in enumerate(texts(e), start=1):
        parts = []
        for piece in pieces:
            words = escape(piece.text)
            if piece.unit is None:
                parts.append(f'<s class="piste-unread">{words}</s>' if piece.unread else words)
                continue
            kind, colour = kind_of[piece.unit], colours.css(float(strengths[piece.unit]))
            parts.append(
                f'<span class="piste-unit" data-k="{kind}" data-u="{piece.unit}" '
                f'title="{escape(tips[kind])}" style="background:{colour}">{words}</span>'
            )
        if not isinstance(e.input, str):
            blocks.append(f'<p class="piste-faint">Text {number}</p>')
        blocks.append(f'<p class="piste-text" dir="auto">{"".join(parts)}</p>')
    return f'<div class="piste-marked">{"".join(blocks)}</div>'


def legend(sides: tuple[str, str]) -> str:
    """What the two colours mean."""
    above, below = sides
    steps = (-1.0, -0.6, -0.25, 0.25, 0.6, 1.0)
    swatches = "".join(f'<i style="background:{colours.css(step)}"></i>' for step in steps)
    return (
        f'<p class="piste-legend"><span class="piste-below">{escape(below)}</span> '
        f'<span class="piste-steps">{swatches}</span> '
        f'<span class="piste-above">{escape(above)}</span></p>'
    )


def answer(e: Explanation) -> str:
    """The model's answer as a heading."""
    chance = e.output.probability
    said = wording.prediction(e) if chance is None else e.output.label
    percent = "" if chance is None else f" <small>{escape(wording.percent(chance))}</small>"
    return f"<h1>{escape(said)}{percent}</h1>"


def reasons(e: Explanation) -> str:
    """What the answer is mostly due to, as a sentence of its own."""
    said = _emphasised(wording.summary(e))
    return said[:1].upper() + said[1:]


def summary_line(e: Explanation) -> str:
    """The answer and its reasons in one line."""
    summary = wording.summary(e)
    return f"<strong>{escape(summary.answer)}</strong>: {_emphasised(summary)}"


def _emphasised(summary: wording.Summary) -> str:
    return "".join(
        f'<em dir="auto">{escape(words)}</em>' if name else escape(words)
        for words, name in summary.pieces
    )


def warnings(e: Explanation) -> str:
    """What a reader must not miss."""
    return "".join(f'<p class="piste-note">{escape(words)}</p>' for words in wording.warnings(e))
