"""An answer a language model gave, and how likely its tokens were in every question asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from piste.errors import PisteError, shorten
from piste.target import Target
from piste.types import Floats, Ints

SpanChoice: TypeAlias = str | tuple[int, int]
"""A piece of an answer: its text, or where it starts and ends."""


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer that is explained, token by token.

    ``log_probabilities`` has a row for every question (``sequences`` of units that were kept) and
    a column for every token, given the kept part of the prompt and the tokens before it; behind
    those of the answer stand the tokens of ``against``. From these numbers any span of the answer
    can be explained without asking the model again.
    """

    text: str
    spans: tuple[tuple[int, int], ...]
    """Where each token of the answer stands in its text."""
    against: str | None = None
    tokens: tuple[int, ...] = ()
    """The tokens of the answer; empty in results of earlier versions."""
    types: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The types of the units, which methods share scores by."""
    can_be_empty: bool = True
    sequences: tuple[tuple[int, ...], ...] = ()
    log_probabilities: Floats = field(default_factory=lambda: np.empty((0, 0)))
    method: str = "slalom"
    options: Mapping[str, Any] = field(default_factory=dict)
    """The method that asked, and its options."""

    def target(self, span: SpanChoice | None = None, columns: int | None = None) -> Target:
        """The log-probability of the answer or a span of it, less that of ``against``.

        >>> answer = Answer("It was 1969.", ((0, 2), (2, 6), (6, 11), (11, 12)))
        >>> answer.target("1969").indices
        (2,)
        """
        everything = tuple(range(len(self.spans)))
        if span is None:
            total = len(self.spans) if columns is None else columns
            minus = tuple(range(len(self.spans), total)) if self.against is not None else ()
            name = f"log-probability of {shorten(self.text, 60)}"
            if minus:
                name += f" over {shorten(self.against, 60)}"
            return Target("answer", name, everything, (self.text,), minus=minus)
        start, end = self._place(span)
        chosen = tuple(k for k in everything if self.spans[k][0] < end and self.spans[k][1] > start)
        text = self.text[self.spans[chosen[0]][0] : self.spans[chosen[-1]][1]].strip()
        return Target("answer", f"log-probability of {shorten(text, 60)}", chosen, (text,))

    def _place(self, span: SpanChoice) -> tuple[int, int]:
        if isinstance(span, str):
            text = span.strip()
            start = self.text.find(text) if text else -1
            if start >= 0:
                return start, start + len(text)
        elif len(span) == 2 and 0 <= span[0] < span[1] <= len(self.text):
            inside = [one for one in self.spans if one[0] < span[1] and one[1] > span[0]]
            if inside:
                return int(span[0]), int(span[1])
        raise PisteError(
            f"Expected a piece of the answer {shorten(self.text, 80)}, or its start and end, got "
            f"{shorten(span)}."
        )

    @property
    def words(self) -> tuple[tuple[int, int], ...]:
        """Spans of the answer's words: what blanks part, as whole tokens."""
        found: list[tuple[int, int]] = []
        for start, end in self.spans:
            piece = self.text[start:end]
            if found and piece.strip() and not piece[0].isspace() and found[-1][1] == start:
                found[-1] = (found[-1][0], end)
            elif piece.strip():
                found.append((start + len(piece) - len(piece.lstrip()), end))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "text": self.text,
            "spans": [list(span) for span in self.spans],
            "against": self.against,
            "tokens": list(self.tokens),
            "types": self.types.tolist(),
            "can_be_empty": self.can_be_empty,
            "sequences": [list(sequence) for sequence in self.sequences],
            "log_probabilities": self.log_probabilities.round(9).tolist(),
            "method": self.method,
            "options": {
                name: value
                for name, value in self.options.items()
                if isinstance(value, (str, int, float, bool, type(None)))
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Answer:
        """What :meth:`to_dict` wrote."""
        return cls(
            text=str(data["text"]),
            spans=tuple((int(start), int(end)) for start, end in data["spans"]),
            against=data["against"],
            tokens=tuple(map(int, data.get("tokens", ()))),
            types=np.array(data["types"], dtype=np.int64),
            can_be_empty=bool(data["can_be_empty"]),
            sequences=tuple(tuple(map(int, sequence)) for sequence in data["sequences"]),
            log_probabilities=np.array(data["log_probabilities"], dtype=np.float64),
            method=str(data["method"]),
            options=dict(data["options"]),
        )
