"""The pieces of an answer that a reader can select, and their explanations."""

from __future__ import annotations

from bisect import bisect_right

from piste.answer import Answer
from piste.classifiers.text.units import sentence_spans
from piste.engine import Progress
from piste.errors import PisteError
from piste.explanation import Explanation

MOST = 48
"""Spans that are explained beforehand; each takes a tenth of a second to half a second."""
_LONGEST_WORD = 30
"""Characters; texts without blanks have longer ones, and are selected token by token."""

Span = tuple[int, int]


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
    found = {}
    with _Spans() as shown:
        shown.plan(len(wanted))
        for first, last in wanted:
            try:
                found[first, last] = e.of((all_words[first][0], all_words[last][1]))
            except PisteError as problem:
                return {}, str(problem)
            shown.advance(1)
    return found, None


class _Spans(Progress):
    title = "explaining words of the answer"
