"""A prompt as the text a model reads, with the parts of it that have names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A named part of a prompt: a document, a field, an example, a turn of a chat.

    Parts that are not ``removable`` are pinned: they stand in every question.
    """

    name: str
    start: int
    end: int
    removable: bool = True


class PromptText(str):
    """A text that knows its parts, in order; what lies between them is never removed.

    >>> text = PromptText("Question: Who?", [Part("question", 10, 14)])
    >>> text[text.parts[0].start : text.parts[0].end]
    'Who?'
    """

    parts: tuple[Part, ...]
    is_chat: bool
    """Whether a chat template wrote it, with all special tokens there are."""

    def __new__(cls, text: str, parts: Sequence[Part] = (), is_chat: bool = False) -> PromptText:
        made = super().__new__(cls, text)
        made.parts, made.is_chat = tuple(parts), is_chat
        return made

    def __getnewargs__(self) -> tuple[str, tuple[Part, ...], bool]:  # type: ignore[override]
        return str(self), self.parts, self.is_chat  # for copies

    @property
    def removable(self) -> tuple[Part, ...]:
        """The parts that have units."""
        return tuple(part for part in self.parts if part.removable)
