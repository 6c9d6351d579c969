"""A prompt: fixed text with named fields, as one text or as messages of a chat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from string import Formatter
from typing import Any, TypeAlias
from unicodedata import east_asian_width

from piste.errors import PisteError, shorten
from piste.prompt_text import Part, PromptText

Message: TypeAlias = Mapping[str, str]
"""A message of a chat: ``{"role": "user", "content": "…"}``."""
Template: TypeAlias = str | Sequence[Message]
FieldValue: TypeAlias = str | Sequence[str] | Mapping[str, str]
"""A text, several (documents of a context, numbered), or several by name."""
Values: TypeAlias = str | Mapping[str, FieldValue]
"""What fills a prompt: a text if there is one field, else a value for each."""
ChatTemplate: TypeAlias = Callable[[list[dict[str, str]]], str]
"""Turns messages into the text a model reads, up to where its answer begins."""

_BETWEEN = "\n\n"
_OPENING = "([{<“‘«„"
# Private characters that stand for the contents while a chat template is read.
_OPEN, _CLOSE = "\ue000", "\ue001"


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a prompt. Pieces with a name are its parts; only removable ones have units."""

    text: str
    name: str | None = None
    removable: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """The content of one message in pieces; a prompt that is one text has one turn, no role."""

    role: str | None
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The whole content."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True)
class Prompt:
    r"""A template with fields in braces, few-shot examples, and what of it may be removed.

    ``template`` is a text, ``"Review: {text}\nSentiment:"``, or a list of messages whose
    contents may hold fields. ``{{`` and ``}}`` stand for braces. ``examples`` are pairs of an
    input and its label; they are written as the template writes an input, before it.
    ``pinned`` names parts that are never removed: fields, documents, "system", "examples".
    What the template itself says is never removed, and neither are system message and examples
    unless ``free`` names them.

    >>> prompt = Prompt("Review: {text}\nSentiment:", examples=[("Superb.", "positive")])
    >>> prompt.render("Too long.")
    'Review: Superb.\nSentiment: positive\n\nReview: Too long.\nSentiment:'
    """

    template: Template
    examples: Sequence[tuple[Values, str]] = ()
    pinned: Sequence[str] = ()
    free: Sequence[str] = ()

    def __post_init__(self) -> None:
        _check_template(self.template)
        for name in ("pinned", "free"):
            given = getattr(self, name)
            if isinstance(given, str) or not all(isinstance(one, str) for one in given):
                raise PisteError(f"{name}: expected a list of names, got {shorten(given)}.")
        for example in self.examples:
            if not isinstance(example, (tuple, list)) or len(example) != 2:
                raise PisteError(
                    f"examples: expected pairs of an input and its label, got {shorten(example)}."
                )

    @property
    def is_chat(self) -> bool:
        """Whether it is a list of messages."""
        return not isinstance(self.template, str)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields, in order."""
        contents = [self.template] if isinstance(self.template, str) else self._contents()
        names = [name for content in contents for _, name in _parsed(content) if name is not None]
        return tuple(dict.fromkeys(names))

    @property
    def shown(self) -> str:
        """The template as a reader sees it, messages with their roles."""
        if isinstance(self.template, str):
            return self.template
        return "\n".join(f"{one['role']}: {one['content']}" for one in self.template)

    def turns(self, values: Values) -> tuple[Turn, ...]:
        """The filled prompt: one turn for a text, one per message for a chat."""
        filled = self._filled(values)
        self._check_names(filled)
        if isinstance(self.template, str):
            pieces: list[Piece] = []
            for number, (example, label) in enumerate(self.examples, 1):
                name = f"example {number}"
                shown = self._text(self.template, self._filled(example))
                text = "".join(piece.text for piece in shown)
                whole = f"{text}{continuation(text, label)}"
                pieces += [Piece(whole, name, self._is_free("examples", name)), Piece(_BETWEEN)]
            return (Turn(None, (*pieces, *self._text(self.template, filled))),)
        return self._chat(filled)

    def render(self, values: Values, chat: ChatTemplate | None = None) -> PromptText:
        """The text a model reads; ``chat`` is its chat template, needed for messages."""
        return render_turns(self.turns(values), chat)

    def _contents(self) -> list[str]:
        assert not isinstance(self.template, str)
        return [message["content"] for message in self.template]

    def _check_names(self, filled: Mapping[str, FieldValue]) -> None:
        """Refuse names of parts that are not there; documents may differ from input to input."""
        if not all(isinstance(value, str) for value in filled.values()):
            return
        known = {*self.fields, "system", "examples"}
        known |= {f"example {number}" for number in range(1, len(self.examples) + 1)}
        for name in ("pinned", "free"):
            for part in getattr(self, name):
                if part not in known:
                    raise PisteError(
                        f"{name}: expected parts of the prompt ({', '.join(sorted(known))}), got "
                        f"{part!r}."
                    )

    def _filled(self, values: Values) -> dict[str, FieldValue]:
        fields = self.fields
        if isinstance(values, str) and len(fields) == 1:
            return {fields[0]: values}
        if not isinstance(values, Mapping) or set(values) != set(fields):
            got = sorted(values) if isinstance(values, Mapping) else shorten(values)
            wanted = ", ".join(fields) or "none: the prompt has no fields"
            form = ", ".join(f'"{name}": "…"' for name in fields)
            hint = f": give {{{form}}}" if fields else ""
            raise PisteError(f"Expected a value for each field ({wanted}), got {got}{hint}.")
        return dict(values)

    def _text(self, template: str, filled: Mapping[str, FieldValue]) -> list[Piece]:
        pieces = []
        for literal, name in _parsed(template):
            if literal:
                pieces.append(Piece(literal))
            if name is not None:
                pieces += self._field(name, filled[name])
        return pieces

    def _field(self, name: str, value: FieldValue) -> list[Piece]:
        documents = _documents(name, value)
        pieces: list[Piece] = []
        for own, text in documents.items():
            if pieces:
                pieces.append(Piece(_BETWEEN))
            pinned = name in self.pinned or own in self.pinned
            pieces.append(Piece(text, own, not pinned))
        return pieces

    def _chat(self, filled: Mapping[str, FieldValue]) -> tuple[Turn, ...]:
        assert not isinstance(self.template, str)
        turns = []
        for number, message in enumerate(self.template):
            role, last = message["role"], number == len(self.template) - 1
            if last:
                turns += self._example_turns(message)
            pieces = self._text(message["content"], filled)
            if role == "system":  # a part by its role, as far as it holds no fields
                free = self._is_free("system")
                pieces = [
                    piece if piece.name else replace(piece, name="system", removable=free)
                    for piece in pieces
                ]
            turns.append(Turn(role, tuple(pieces)))
        return tuple(turns)

    def _example_turns(self, message: Message) -> list[Turn]:
        turns = []
        for number, (example, label) in enumerate(self.examples, 1):
            name = f"example {number}"
            free = self._is_free("examples", name)
            shown = self._text(message["content"], self._filled(example))
            text = "".join(piece.text for piece in shown)
            turns.append(Turn(message["role"], (Piece(text, name, free),)))
            turns.append(Turn("assistant", (Piece(label, name, free),)))
        return turns

    def _is_free(self, *names: str) -> bool:
        return any(name in self.free for name in names) and not any(
            name in self.pinned for name in names
        )


def conversation(messages: Template, pinned: Sequence[str] = ()) -> tuple[Turn, ...]:
    """A prompt without fields: a text, or messages, all of which may be removed but ``pinned``.

    Parts are called "prompt", or by role and number: "system", "user 1", "assistant 1", "user 2".

    >>> [turn.pieces[0].name for turn in conversation([{"role": "user", "content": "Hi"}])]
    ['user 1']
    """
    _check_template(messages)
    if isinstance(messages, str):
        return (Turn(None, (Piece(messages, "prompt", "prompt" not in pinned),)),)
    turns = []
    seen: dict[str, int] = {}
    for message in messages:
        role = message["role"]
        seen[role] = seen.get(role, 0) + 1
        name = role if role == "system" else f"{role} {seen[role]}"
        removable = name not in pinned and role not in pinned
        turns.append(Turn(role, (Piece(message["content"], name, removable),)))
    return tuple(turns)


def render_turns(turns: Sequence[Turn], chat: ChatTemplate | None) -> PromptText:
    """The text a model reads of turns, with their named parts."""
    if len(turns) == 1 and turns[0].role is None:
        return _joined([turns[0].pieces], is_chat=False)
    if chat is None:
        raise PisteError(
            "Messages were given, but this model's tokenizer has no chat template: give the "
            "prompt as one text."
        )
    between = _around_contents(turns, chat)
    rows: list[tuple[Piece, ...]] = [(Piece(between[0]),)]
    for turn, after in zip(turns, between[1:], strict=True):
        rows += [turn.pieces, (Piece(after),)]
    whole = chat([{"role": str(turn.role), "content": turn.text} for turn in turns])
    rendered = _joined(rows, is_chat=True)
    return rendered if str(rendered) == whole else _found(turns, whole)


def continuation(prompt: str, label: str) -> str:
    """A label as it continues a prompt: behind a blank, where such a text has one.

    There is none behind white space, an opening bracket or quotation mark, and none next to
    Chinese or Japanese characters.

    >>> continuation("Sentiment:", "good"), continuation("Sentiment: ", "good")
    (' good', 'good')
    >>> continuation("Sentiment: (", "A"), continuation('It is "', "good")
    ('A', 'good')
    >>> continuation("评价：", "好")
    '好'
    """
    if not prompt or prompt[-1].isspace() or label[:1].isspace() or prompt[-1] in _OPENING:
        return label
    if prompt[-1] == '"' and prompt.rpartition("\n")[2].count('"') % 2:
        return label
    wide = (prompt[-1], label[:1] or " ")
    return label if any(east_asian_width(sign) in "WF" for sign in wide) else f" {label}"


def _check_template(template: object) -> None:
    wanted = "a text, or a list of messages {'role': …, 'content': …}"
    if isinstance(template, str):
        if not template.strip():
            raise PisteError(f"prompt: expected {wanted}, got an empty text.")
        return
    if not isinstance(template, Sequence) or not template:
        raise PisteError(f"prompt: expected {wanted}, got {shorten(template)}.")
    for message in template:
        whole = isinstance(message, Mapping) and {"role", "content"} <= set(message)
        if not whole or not all(isinstance(message[key], str) for key in ("role", "content")):
            raise PisteError(f"prompt: expected {wanted}, got the message {shorten(message)}.")


def _parsed(template: str) -> list[tuple[str, str | None]]:
    """Literal texts and the fields behind them."""
    try:
        parsed = list(Formatter().parse(template))
    except ValueError as problem:
        raise PisteError(
            f"prompt: expected fields as {{name}}, with {{{{ and }}}} for braces, got "
            f"{shorten(template)} ({problem})."
        ) from problem
    pieces = []
    for literal, name, spec, conversion in parsed:
        if name is not None and (not name.isidentifier() or spec or conversion):
            raise PisteError(
                f"prompt: expected fields as {{name}}, with {{{{ and }}}} for braces, got "
                f"{{{name}{':' + spec if spec else ''}}}."
            )
        pieces.append((literal, name))
    return pieces


def _documents(name: str, value: Any) -> dict[str, str]:
    """The parts of a field's value by name."""
    if isinstance(value, str):
        documents = {name: value}
    elif isinstance(value, Mapping):
        documents = dict(value)
    elif isinstance(value, Sequence):
        documents = {f"{name} {number}": text for number, text in enumerate(value, 1)}
    else:
        documents = {}
    if not documents or not all(isinstance(text, str) for text in documents.values()):
        raise PisteError(
            f"Expected a text, a list of texts or texts by name for {name!r}, got {shorten(value)}."
        )
    return documents


def _around_contents(turns: Sequence[Turn], chat: ChatTemplate) -> list[str]:
    """What a chat template writes before, between and behind the contents."""
    marks = [f"{_OPEN}{number}{_CLOSE}" for number in range(len(turns))]
    text = chat(
        [{"role": str(t.role), "content": mark} for t, mark in zip(turns, marks, strict=True)]
    )
    between = []
    for mark in marks:
        before, found, text = text.partition(mark)
        if not found:
            raise PisteError(
                "The tokenizer's chat template leaves out or reorders messages: give the prompt "
                "as one text, or without a system message."
            )
        between.append(before)
    return [*between, text]


def _joined(rows: Sequence[Sequence[Piece]], is_chat: bool) -> PromptText:
    text, parts = "", []
    for row in rows:
        for piece in row:
            start = len(text)
            text += piece.text
            if piece.name is not None and piece.text:
                parts.append(Part(piece.name, start, len(text), piece.removable))
    return PromptText(text, parts, is_chat)


def _found(turns: Sequence[Turn], whole: str) -> PromptText:
    """Parts by search from left to right, where a chat template changes contents (strips them)."""
    cursor, parts = 0, []
    for turn in turns:
        for piece in turn.pieces:
            text = piece.text.strip()
            if not text:
                continue
            start = whole.find(text, cursor)
            if start < 0:
                raise PisteError(
                    "The tokenizer's chat template changes what a message says, so that "
                    f"{shorten(text)} can't be found in it: give the prompt as one text."
                )
            cursor = start + len(text)
            if piece.name is not None:
                parts.append(Part(piece.name, start, cursor, piece.removable))
    return PromptText(whole, parts, is_chat=True)
