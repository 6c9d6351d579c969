"""A prompt as the text a model reads, with the parts of it that have names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Part:
    """A named part of a prompt: a document, a field, an example, a turn of a chat.

    Parts that are not ``removable`` are pinned: they stand in every question.
    """

    name: str
    start: int
    end: int
    removable: bool = True


Message: TypeAlias = tuple[str, int, int]
"""The role of a message, and where its content starts and ends."""


class PromptText(str):
    """A text that knows its parts, in order; what lies between them is never removed.

    >>> text = PromptText("Question: Who?", [Part("question", 10, 14)])
    >>> text[text.parts[0].start : text.parts[0].end]
    'Who?'
    """

    parts: tuple[Part, ...]
    is_chat: bool
    """Whether a chat template wrote it, with all special tokens there are."""
    messages: tuple[Message, ...]
    """What a server is sent as messages of a chat; empty where the text is read as it stands."""

    def __new__(
        cls,
        text: str,
        parts: Sequence[Part] = (),
        is_chat: bool = False,
        messages: Sequence[Message] = (),
    ) -> PromptText:
        made = super().__new__(cls, text)
        made.parts, made.is_chat, made.messages = tuple(parts), is_chat, tuple(messages)
        return made

    def __getnewargs__(  # type: ignore[override]  # more than a text
        self,
    ) -> tuple[str, tuple[Part, ...], bool, tuple[Message, ...]]:
        return str(self), self.parts, self.is_chat, self.messages  # for copies

    @property
    def removable(self) -> tuple[Part, ...]:
        """The parts that have units."""
        return tuple(part for part in self.parts if part.removable)
