"""The answer of a language model as a part of a page: its words can be selected."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from piste.explanation import Explanation
from piste.show import answer_spans, colours, score_terms, wording
from piste.show.score_terms import part_sums


def panel(e: Explanation) -> str:
    """The answer word by word, and what is said of the selected ones."""
    assert e.answer is not None
    text, at, parts = e.answer.text, 0, []
    for number, (start, end) in enumerate(answer_spans.words(e.answer)):
        parts.append(escape(text[at:start]))
        parts.append(f'<span class="piste-word" data-w="{number}">{escape(text[start:end])}</span>')
        at = max(at, end)
    parts.append(escape(text[at:]))
    return f"""<div class="piste-answer"><h3 id="piste-answer">The answer</h3>
<p class="piste-text" dir="auto" role="group" aria-labelledby="piste-answer">{"".join(parts)}</p>
<p class="piste-span" aria-live="polite"></p>
<p class="piste-faint piste-how" hidden></p></div>"""


def note(e: Explanation) -> str:
    """What stands where a selection changes nothing, and is shown once something is selected."""
    whole = "the whole answer" if wording.of_whole_answer(e) else wording.answer_name(e)
    return f'<p class="piste-faint piste-of-whole" hidden>Of {escape(whole)}.</p>'


def data(
    e: Explanation, kinds: Sequence[wording.Kind], *, live: bool = False, spans: bool = True
) -> dict[str, Any]:
    """What the script needs: the words, and explanations of spans unless a server makes them."""
    assert e.answer is not None
    known: dict[answer_spans.Span, Explanation] = {}
    problem: str | None = None
    if spans and not live:
        known, problem = answer_spans.explained(e)
    elif not live:
        problem = "On the page that to_html writes, words of the answer can be selected."
    own = answer_spans.selected(e)
    return {
        "words": [list(span) for span in answer_spans.words(e.answer)],
        "sentences": [list(span) for span in answer_spans.sentences(e.answer)],
        "text": e.answer.text,
        "own": list(own),
        "back": "the whole answer" if wording.of_whole_answer(e) else wording.answer_name(e),
        "known": [{"words": list(place)} | span_data(one) for place, one in known.items()],
        "shown": {"words": list(own)} | span_data(e),
        "firsts": [kind.first for kind in kinds],
        "parts": {part.name: sorted(part.units) for part in part_sums(e)},
        "units": [wording.short(unit.text) for unit in e.units],
        "clip": colours.CLIP,
        "score": e.ranking,
        "live": live,
        "problem": problem,
    }


def span_data(e: Explanation) -> dict[str, Any]:
    """An explanation of a span for the script: the score that ranks, of every unit."""
    summary = wording.summary(e)
    return {
        "said": summary.answer,
        "value": float(e.output.logits[0]),
        "reasons": [[words, is_name] for words, is_name in summary.pieces],
        "trust": summary.trust,
        "warnings": list(wording.warnings(e)),
        "r2": float(e.fidelity.r2) if np.isfinite(e.fidelity.r2) else None,
        "scores": _numbers(e.score()),
        "errors": _numbers(e.error()),
        "places": wording.digits(e.score()),
        "sides": list(score_terms.sides(e, e.ranking)),
    }


def _numbers(values: Any) -> list[float | None]:
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]
