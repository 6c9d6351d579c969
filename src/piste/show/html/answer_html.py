"""The answer of a language model as a part of a page: its words can be selected.

The explanations of words and sentences are made beforehand, unless a server makes them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from piste.answer import Answer
from piste.answer_spans import explain_spans
from piste.classifiers.text.units import sentence_spans
from piste.engine import Progress
from piste.errors import PisteError
from piste.explanation import Explanation
from piste.show import colours, score_terms, wording
from piste.show.html import plane_svg
from piste.show.score_terms import part_sums
from piste.show.summary import Summary

MOST = 120
"""Spans that are explained beforehand."""
_LONGEST_WORD = 30
"""Characters; texts without blanks have longer ones, and are selected token by token."""

Span = tuple[int, int]


def panel(e: Explanation) -> str:
    """The answer word by word, and what is said of the selected ones."""
    assert e.answer is not None
    text, at, parts = e.answer.text, 0, []
    for number, (start, end) in enumerate(words(e.answer)):
        parts.append(escape(text[at:start]))
        parts.append(f'<span class="piste-word" data-w="{number}">{escape(text[start:end])}</span>')
        at = max(at, end)
    parts.append(escape(text[at:]))
    return f"""<div class="piste-answer"><h3 id="piste-answer">The answer</h3>
<p class="piste-text" dir="auto" role="group" aria-labelledby="piste-answer">{"".join(parts)}</p>
<p class="piste-span" aria-live="polite"></p>
<p class="piste-faint piste-how" hidden></p></div>"""


def data(
    e: Explanation, kinds: Sequence[wording.Kind], *, live: bool = False, spans: bool = True
) -> dict[str, Any]:
    """What the script needs: the words, and explanations of spans unless a server makes them."""
    assert e.answer is not None
    known: dict[Span, Explanation] = {}
    problem: str | None = None
    if spans and not live:
        known, problem = explained(e)
    elif not live:
        problem = "On the page that to_html writes, words of the answer can be selected."
    own = selected(e)
    return {
        "words": [list(span) for span in words(e.answer)],
        "sentences": [list(span) for span in sentences(e.answer)],
        "text": e.answer.text,
        "own": list(own),
        "back": "the whole answer" if wording.of_whole_answer(e) else wording.answer_name(e),
        "known": [{"words": list(place)} | span_data(one, kinds) for place, one in known.items()],
        "shown": {"words": list(own)} | span_data(e, kinds),
        "firsts": [kind.first for kind in kinds],
        "counts": [len(kind.units) for kind in kinds],
        "part": wording.part(e),
        "parts": {part.name: sorted(part.units) for part in part_sums(e)},
        "units": [wording.short(unit.text) for unit in e.units],
        "clip": colours.CLIP,
        "score": e.ranking,
        "live": live,
        "problem": problem,
    }


def span_data(e: Explanation, kinds: Sequence[wording.Kind] | None = None) -> dict[str, Any]:
    """An explanation of a span for the script.

    The score that ranks of every unit, and all scores of every kind of unit, for the plane and the
    table.
    """
    summary = Summary.of(e)
    shown = wording.kinds(e) if kinds is None else list(kinds)
    firsts = [kind.first for kind in shown]
    names = dict.fromkeys((*score_terms.main_scores(e), *e.scores))
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
        "columns": [
            {
                "name": name,
                "title": plane_svg.axis_title(e, name) if name in score_terms.BRIEF else name,
                "scores": _numbers(e.score(name)[firsts]),
                "errors": _numbers(e.error(name)[firsts]),
                "places": wording.digits(e.score(name)),
            }
            for name in names
        ],
        "plane": score_terms.plane_scores(e),
        "order": score_terms.named(e, shown),
        "heading": score_terms.plane_heading(score_terms.is_determined(e)),
        "note": score_terms.plane_legend(e),
        "sum_heading": score_terms.plane_heading(False),
        "sum_note": "To the right: the log-probability that is expected of the unit alone. "
        "Upwards: its share. Both are sums over the selected words.",
    }


def _numbers(values: Any) -> list[float | None]:
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]


def words(answer: Answer) -> list[Span]:
    """What can be clicked: words, or tokens of a text without blanks between words."""
    found = list(answer.words)
    if all(end - start <= _LONGEST_WORD for start, end in found):
        return found
    return [(a, b) for a, b in answer.spans if answer.text[a:b].strip()]


def sentences(answer: Answer) -> list[Span]:
    """Sentences of the answer as numbers of their first and last words."""
    ends = [end for _, end in sentence_spans(answer.text)]
    found: list[Span] = []
    last = -1
    for number, (start, _) in enumerate(words(answer)):
        sentence = bisect_right(ends, start)
        if found and sentence == last:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
        last = sentence
    return found


def selected(e: Explanation) -> Span:
    """The first and last word of what an explanation is of."""
    assert e.answer is not None
    spans = [e.answer.spans[token] for token in e.target.indices]
    start, end = spans[0][0], spans[-1][1]
    inside = [n for n, (a, b) in enumerate(words(e.answer)) if a < end and b > start]
    return (inside[0], inside[-1]) if inside else (0, len(words(e.answer)) - 1)


def explained(e: Explanation) -> tuple[dict[Span, Explanation], str | None]:
    """Explanations of words and sentences by their first and last words; or why there are none.

    Of an answer with many words, sentences only.
    """
    assert e.answer is not None
    all_words, all_sentences = words(e.answer), sentences(e.answer)
    singles = [(number, number) for number in range(len(all_words))]
    wanted = list(dict.fromkeys([*singles, *all_sentences]))
    if len(wanted) > MOST:
        wanted = all_sentences[:MOST]
    places = [(all_words[first][0], all_words[last][1]) for first, last in wanted]
    with _Spans() as shown:
        shown.plan(len(wanted))
        try:
            found = explain_spans(e, places)
        except PisteError as problem:
            return {}, str(problem)
        shown.advance(len(wanted))
    return dict(zip(wanted, found, strict=True)), None


class _Spans(Progress):
    title = "explaining words of the answer"
