"""Subjects of classifiers that read token ids: the frame, the units, the questions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from piste.classifiers.base import Classifier, check_choices, check_text
from piste.classifiers.segmentation import Token, group_tokens
from piste.errors import PisteError
from piste.subject import (
    LongChoice,
    Question,
    Sequence1D,
    Subject,
    TextInput,
    Unit,
    UnitKind,
)

IDS = np.int64


class TokenClassifier(Classifier):
    """A classifier with a tokenizer: knows frames and lengths, not how answers are made."""

    tokenizer: Any
    limit: int | None
    """The longest sequence the model reads, frame included; None if there is no limit."""

    def subject(
        self, input: TextInput, *, units: UnitKind = "words", long: LongChoice = "error"
    ) -> TokenSubject:
        texts = check_text(input)
        check_choices(units, long)
        tokens = read_tokens(self.tokenizer, texts)
        notes: dict[str, Any] = {"tokens": len(tokens), "long": "fits"}
        if self.limit is not None and len(tokens) > self.limit:
            notes["long"], notes["limit"] = long, self.limit
            if long == "truncate":
                tokens = read_tokens(self.tokenizer, texts, limit=self.limit)
                notes["truncated_tokens"] = notes["tokens"] - len(tokens)
                notes["truncated_side"] = getattr(self.tokenizer, "truncation_side", "right")
        if all(token.fixed for token in tokens):
            raise PisteError(
                "The text holds only special tokens or nothing the tokenizer knows: "
                "there is no unit to explain, give at least one word."
            )
        subject = TokenSubject(self, input, texts, tokens, units, notes)
        if subject.limit is not None and subject.limit < 1:
            raise PisteError(
                f"The model reads at most {self.limit} tokens, which its special tokens fill "
                "already: check model_max_length of the tokenizer."
            )
        self.prepare(subject)
        return subject

    @abstractmethod
    def prepare(self, subject: TokenSubject) -> None:
        """Called with every new subject, before it is asked: the place to find out how to pad."""

    def accept_length(self, length: int) -> None:
        """Refuse a question longer than the model reads."""
        if self.limit is not None and length > self.limit:
            raise PisteError(
                f"The text has {length} tokens but the model reads at most {self.limit}: choose "
                "long='truncate' (explain its beginning), long='windows' (mean over pieces), or "
                "sampler='short' (ask only about short sequences of its units)."
            )


def read_tokens(tokenizer: Any, texts: Sequence[str], limit: int | None = None) -> list[Token]:
    """The tokenizer's own view of the input: ids, types, spans, words, and what it adds itself.

    Tokens of the frame are those the tokenizer adds around the text, and special tokens that the
    text itself spells out: neither is ever a player.
    """
    options: dict[str, Any] = {"verbose": False}
    if limit is not None:
        options |= {"truncation": True, "max_length": limit}
    with _unchanged(tokenizer):
        return _read_tokens(tokenizer, texts, options)


@contextmanager
def _unchanged(tokenizer: Any) -> Iterator[None]:
    """Fast tokenizers remember the truncation and padding of a call: put back what was there."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        yield
        return
    truncation, padding = backend.truncation, backend.padding
    try:
        yield
    finally:
        backend.no_truncation() if truncation is None else backend.enable_truncation(**truncation)
        backend.no_padding() if padding is None else backend.enable_padding(**padding)


def _read_tokens(tokenizer: Any, texts: Sequence[str], options: dict[str, Any]) -> list[Token]:
    if getattr(tokenizer, "is_fast", False):
        encoded = tokenizer(*texts, return_offsets_mapping=True, **options)
        spans = encoded["offset_mapping"]
        segments = encoded.sequence_ids(0)
        words = encoded.word_ids(0)
    else:
        encoded = tokenizer(*texts, **options)
        added = tokenizer.get_special_tokens_mask(
            encoded["input_ids"], already_has_special_tokens=True
        )
        segments = _segments_of_slow_tokenizer(added, len(texts))
        spans = _spans_of_slow_tokenizer(tokenizer, encoded["input_ids"], segments, texts)
        words = [None] * len(spans)
    ids = [int(token) for token in encoded["input_ids"]]
    types = encoded.get("token_type_ids") or [0] * len(ids)
    reserved = _reserved_ids(tokenizer)
    tokens = []
    for token, kind, (start, end), segment, word in zip(
        ids, types, spans, segments, words, strict=True
    ):
        fixed = segment is None or token in reserved
        start, end = (0, 0) if fixed else _without_blanks(texts[segment or 0], start, end)
        tokens.append(Token(token, int(kind), start, end, segment or 0, word, fixed))
    return tokens


def _reserved_ids(tokenizer: Any) -> set[int]:
    """Special tokens that structure the input; unknown words are ordinary players."""
    names = ("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "pad_token_id")
    ids = {getattr(tokenizer, name, None) for name in (*names, "mask_token_id")}
    unknown = getattr(tokenizer, "unk_token_id", None)
    # GPT-2 style tokenizers use one id for everything, unknown words included.
    return {token for token in ids if token is not None and token != unknown}


def _without_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    if not piece.strip():
        return start, end
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def _segments_of_slow_tokenizer(added: Sequence[int], texts: int) -> list[int | None]:
    """Which text a token comes from, read off the special tokens between the texts."""
    segments: list[int | None] = []
    current, seen = 0, False
    for special in added:
        if special:
            current = min(current + 1, texts - 1) if seen else current
            seen = False
            segments.append(None)
        else:
            seen = True
            segments.append(current)
    return segments


def _spans_of_slow_tokenizer(
    tokenizer: Any, ids: Sequence[int], segments: Sequence[int | None], texts: Sequence[str]
) -> list[tuple[int, int]]:
    """Best effort where the tokenizer keeps no offsets: find every piece from left to right."""
    cursor = [0] * len(texts)
    spans = []
    for token, segment in zip(ids, segments, strict=True):
        if segment is None:
            spans.append((0, 0))
            continue
        piece = str(tokenizer.convert_ids_to_tokens(int(token)))
        for mark in ("##", "▁", "Ġ", "</w>", "@@"):
            piece = piece.replace(mark, "")
        text, begin = texts[segment], cursor[segment]
        found = text.lower().find(piece.lower(), begin) if piece else -1
        # A piece that is far away is a coincidence, not a match (unknown or rewritten tokens).
        if found < 0 or text[begin:found].strip():
            blank = len(text[begin:]) - len(text[begin:].lstrip())
            start = min(begin + blank, len(text))
            spans.append((start, min(start + 1, len(text))))
        else:
            spans.append((found, found + len(piece)))
        cursor[segment] = spans[-1][1]
    return spans


class TokenSubject(Subject):
    """An input as token ids: fixed runs of special tokens with slots for units between them.

    A single text has one slot ([CLS] … [SEP]), a pair has two. Units stay in their slot and
    keep the order they are asked in.
    """

    def __init__(
        self,
        classifier: TokenClassifier,
        input: TextInput,
        texts: Sequence[str],
        tokens: Sequence[Token],
        units: UnitKind,
        notes: dict[str, Any],
    ) -> None:
        self.classifier: TokenClassifier = classifier
        self.input = input
        self.notes = notes
        groups = group_tokens(tokens, texts, units)
        self.units = tuple(_unit(tokens, group, texts) for group in groups)
        self._ids = [np.array([tokens[p].id for p in group], dtype=IDS) for group in groups]
        self._kinds = [np.array([tokens[p].type for p in group], dtype=IDS) for group in groups]
        self._read_frame(tokens, groups)
        contents = [(ids.tobytes(), slot) for ids, slot in zip(self._ids, self._slots, strict=True)]
        numbers = {content: number for number, content in enumerate(dict.fromkeys(contents))}
        self.types = np.array([numbers[content] for content in contents], dtype=np.int64)
        frame = sum(len(run) for run in self._frame)
        self.can_be_empty = frame > 0
        self.limit = None if classifier.limit is None else classifier.limit - frame

    def _read_frame(self, tokens: Sequence[Token], groups: Sequence[Sequence[int]]) -> None:
        """Fixed runs and the slots between them, from the positions of the fixed tokens."""
        runs: list[list[int]] = [[]]
        slot_of = {}
        slot, open_slot = 0, False
        for position, token in enumerate(tokens):
            if not token.fixed:
                slot_of[position] = slot
                open_slot = True
            else:
                if open_slot:
                    runs.append([])
                    slot, open_slot = slot + 1, False
                runs[-1].append(position)
        if open_slot:
            runs.append([])
        self._frame = [np.array([tokens[p].id for p in run], dtype=IDS) for run in runs]
        self._frame_kinds = [np.array([tokens[p].type for p in run], dtype=IDS) for run in runs]
        self._slots = [slot_of[group[0]] for group in groups]

    def encode(self, sequence: Sequence1D) -> list[tuple[Question, float]]:
        sequence = self.check(sequence)
        slots: list[list[NDArray[np.int64]]] = [[] for _ in range(len(self._frame) - 1)]
        kinds: list[list[NDArray[np.int64]]] = [[] for _ in range(len(self._frame) - 1)]
        for unit in sequence:
            slots[self._slots[unit]].append(self._ids[unit])
            kinds[self._slots[unit]].append(self._kinds[unit])
        bodies = [np.concatenate(slot) if slot else np.empty(0, IDS) for slot in slots]
        types = [np.concatenate(kind) if kind else np.empty(0, IDS) for kind in kinds]
        length = sum(len(body) for body in bodies)
        if self.limit is None or length <= self.limit:
            return [(self._question(bodies, types), 1.0)]
        if self.notes["long"] != "windows":
            self.classifier.accept_length(length + sum(len(run) for run in self._frame))
        return self._windows(bodies, types, length)

    def _question(
        self, bodies: Sequence[NDArray[np.int64]], kinds: Sequence[NDArray[np.int64]]
    ) -> Question:
        ids, types = [self._frame[0]], [self._frame_kinds[0]]
        for slot, body in enumerate(bodies):
            ids += [body, self._frame[slot + 1]]
            types += [kinds[slot], self._frame_kinds[slot + 1]]
        row, kind = np.concatenate(ids), np.concatenate(types)
        key = row.astype(np.int32).tobytes() + (
            kind.astype(np.int8).tobytes() if any(kind) else b""
        )
        return Question(key, len(row), (row, kind))

    def _windows(
        self,
        bodies: Sequence[NDArray[np.int64]],
        kinds: Sequence[NDArray[np.int64]],
        length: int,
    ) -> list[tuple[Question, float]]:
        """Cut a body that is too long into windows of equal size, each with the whole frame."""
        assert self.limit is not None
        pieces = -(-length // self.limit)
        edges = np.linspace(0, length, pieces + 1).astype(int)
        ends = np.cumsum([len(body) for body in bodies])
        questions = []
        for start, end in pairwise(edges):
            cut = [
                slice(max(start - (stop - len(body)), 0), max(end - (stop - len(body)), 0))
                for body, stop in zip(bodies, ends, strict=True)
            ]
            part = [body[where] for body, where in zip(bodies, cut, strict=True)]
            kind = [body[where] for body, where in zip(kinds, cut, strict=True)]
            questions.append((self._question(part, kind), float(end - start) / length))
        return questions


def _unit(tokens: Sequence[Token], group: Sequence[int], texts: Sequence[str]) -> Unit:
    members = [tokens[position] for position in group]
    text = texts[members[0].segment]
    # White space that a word carries along belongs to its tokens, not to its span.
    solid = [m for m in members if text[m.start : m.end].strip()] or members
    start, end = min(m.start for m in solid), max(m.end for m in solid)
    return Unit(text[start:end], start, end, members[0].segment, len(members))
