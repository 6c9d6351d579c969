"""Units that are spans of the user's own; the text outside them is pinned."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from piste.classifiers.outputs import call
from piste.classifiers.text.units import Token
from piste.errors import PisteError
from piste.subject import SpanFunction, Spans, read_spans

Placed: TypeAlias = tuple[int, int, int]
"""A span with the number of its text: segment, start, end."""


def place_spans(units: Spans | SpanFunction, texts: Sequence[str]) -> list[Placed]:
    """Spans in the order of the text; a function is called with every text.

    Those that are empty, overlap or reach out of the text are refused.

    >>> place_spans([(4, 7), (0, 3)], ["one two"]), place_spans(lambda t: [(0, 3)], ["one", "two"])
    ([(0, 0, 3), (0, 4, 7)], [(0, 0, 3), (1, 0, 3)])
    """
    spans: list[Placed] = []
    if callable(units):
        for segment, text in enumerate(texts):
            given: object = call(units, "units", text)
            items = list(given) if isinstance(given, Iterable) else []
            # A text without spans is pinned whole, if the other one of the pair has some.
            found = read_spans(items, given) if items or len(texts) == 1 else ()
            spans += [_placed(span[-2:], texts, segment) for span in found]
        if not spans:
            raise PisteError("units: expected at least one span, got none from the function.")
    else:
        spans = [_placed(span, texts) for span in units]
    spans.sort()
    for one, other in pairwise(spans):
        if one[0] == other[0] and other[1] < one[2]:
            raise PisteError(
                f"units: expected spans that do not overlap, got {one[1:]} and {other[1:]}."
            )
    return spans


def _placed(span: Sequence[int], texts: Sequence[str], segment: int | None = None) -> Placed:
    if segment is None:
        if len(span) == 2 and len(texts) > 1:
            raise PisteError(
                f"units: expected (segment, start, end) for a pair of texts, got {tuple(span)}."
            )
        segment = span[0] if len(span) == 3 else 0
    start, end = span[-2:]
    if not (0 <= segment < len(texts) and 0 <= start < end <= len(texts[segment])):
        size = len(texts[segment]) if 0 <= segment < len(texts) else len(texts[0])
        raise PisteError(
            f"units: expected spans (start, end) with 0 ≤ start < end ≤ {size}, the length of the "
            f"text, got {tuple(span)}."
        )
    if not texts[segment][start:end].strip():
        raise PisteError(f"units: expected spans with some text, got {tuple(span)}, all blank.")
    return segment, start, end


def as_given(spans: Sequence[Placed], texts: Sequence[str]) -> list[tuple[int, ...]]:
    """Spans as a user gives them: of a single text without the number of the text."""
    return [span if len(texts) > 1 else span[1:] for span in spans]


@dataclass(frozen=True)
class SpanGroups:
    """Which tokens belong to which span, and what became of the others."""

    tokens: list[Token]
    """All tokens; those outside the spans are fixed."""
    groups: list[list[int]]
    """Positions of the tokens of each span that has some."""
    spans: list[Placed]
    """The spans that have tokens."""
    empty: list[Placed]
    """Those that have none."""
    widened: list[Placed]
    """Those that end within a token and were given the whole of it."""
    pinned: int
    """How many tokens of the text lie outside."""


def group_spans(
    tokens: Sequence[Token], texts: Sequence[str], spans: Sequence[Placed]
) -> SpanGroups:
    """Give every token to the span that holds most of it, or pin it if none holds any.

    Blank tokens belong to what they lead to, tokens that cover no character to what they follow.
    """
    owners = _owners(tokens, texts, spans)
    groups: list[list[int]] = [[] for _ in spans]
    marked = list(tokens)
    for position, owner in enumerate(owners):
        if owner is not None:
            groups[owner].append(position)
        elif not tokens[position].fixed:
            marked[position] = replace(tokens[position], fixed=True)
    widened = [
        span
        for span, group in zip(spans, groups, strict=True)
        if any(_reaches_out(tokens[p], texts, span) for p in group)
    ]
    return SpanGroups(
        marked,
        [group for group in groups if group],
        [span for span, group in zip(spans, groups, strict=True) if group],
        [span for span, group in zip(spans, groups, strict=True) if not group],
        widened,
        sum(new.fixed and not old.fixed for new, old in zip(marked, tokens, strict=True)),
    )


def _owners(
    tokens: Sequence[Token], texts: Sequence[str], spans: Sequence[Placed]
) -> list[int | None]:
    starts = [(segment, start) for segment, start, _ in spans]
    owners: list[int | None] = [None] * len(tokens)
    waiting: list[int] = []  # blank tokens
    before: int | None = None
    for position, token in enumerate(tokens):
        if token.fixed:
            waiting = _settled(owners, waiting, before)
            before = None
            continue
        if not texts[token.segment][token.start : token.end].strip():
            if token.start == token.end and before is not None and not waiting:
                owners[position] = before
            else:
                waiting.append(position)
            continue
        before = _owner(token, starts, spans)
        waiting = _settled(owners, waiting, before)
        owners[position] = before
    _settled(owners, waiting, before)
    return owners


def _settled(owners: list[int | None], waiting: list[int], owner: int | None) -> list[int]:
    for position in waiting:
        owners[position] = owner
    return []


def _owner(token: Token, starts: Sequence[tuple[int, int]], spans: Sequence[Placed]) -> int | None:
    """The span with the largest share of a token, the first of equals."""
    first = max(bisect_right(starts, (token.segment, token.start)) - 1, 0)
    best, most = None, 0
    for number in range(first, len(spans)):
        segment, start, end = spans[number]
        if (segment, start) >= (token.segment, token.end):
            break
        shared = min(end, token.end) - max(start, token.start)
        if segment == token.segment and shared > most:
            best, most = number, shared
    return best


def _reaches_out(token: Token, texts: Sequence[str], span: Placed) -> bool:
    text = texts[token.segment]
    outside = (
        text[token.start : max(span[1], token.start)] + text[min(span[2], token.end) : token.end]
    )
    return bool(outside.strip()) and bool(text[token.start : token.end].strip())
