"""Subjects of classifiers that read token ids: the frame, the units, the questions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from piste.classifier import Classifier
from piste.classifiers.base import EngineSubject, check_text
from piste.classifiers.text.masking import MaskedSubject
from piste.classifiers.text.spans import as_given, group_spans, place_spans
from piste.classifiers.text.tokenization import read_tokens
from piste.classifiers.text.units import Token, group_tokens
from piste.errors import PisteError
from piste.subject import (
    Binding,
    Parts,
    Question,
    Removal,
    Sequence1D,
    SpanFunction,
    Spans,
    Subject,
    TextInput,
    Unit,
    text_units,
)
from piste.types import Ints

IDS = np.int64


class TokenClassifier(Classifier):
    """A classifier with a tokenizer: knows frames and lengths, not how answers are made."""

    tokenizer: Any
    limit: int | None
    """The longest sequence the model reads, frame included; None if there is no limit."""
    reads_mask: bool = True
    """Whether it takes an attention mask."""

    def bind(self, input: Any, how: Binding) -> Subject:
        texts = check_text(input)
        tokens = self.read(texts)
        notes: dict[str, Any] = {"tokens": len(tokens), "long": "fits"}
        if self.limit is not None and len(tokens) > self.limit:
            notes["long"], notes["limit"] = how.long, self.limit
            if how.long == "truncate":
                tokens = self.read(texts, self.limit)
                notes["truncated_tokens"] = notes["tokens"] - len(tokens)
                notes["truncated_side"] = getattr(self.tokenizer, "truncation_side", "right")
        if all(token.fixed for token in tokens):
            raise PisteError(
                "The text holds only special tokens or nothing the tokenizer knows: "
                "there is no unit to explain, give at least one word."
            )
        subject = TokenSubject(self, input, texts, tokens, text_units(how.units), notes)
        if subject.limit is not None and subject.limit < 1:
            if subject.is_pinned:
                raise PisteError(
                    f"The text outside the spans has {notes['pinned_tokens']} tokens and is part "
                    f"of every question, but the model reads at most {self.limit}: choose spans "
                    "that cover more of the text, or long='truncate'."
                )
            raise PisteError(
                f"The model reads at most {self.limit} tokens, which its special tokens fill "
                "already: check model_max_length of the tokenizer."
            )
        subject.note_unknown(getattr(self.tokenizer, "unk_token_id", None))
        if how.removal == "delete":
            return subject
        return MaskedSubject(subject, how.removal, self._replacement(how.removal))

    def read(self, texts: Sequence[str], limit: int | None = None) -> list[Token]:
        """The input's tokens, at most ``limit``."""
        return read_tokens(self.tokenizer, texts, limit)

    def _replacement(self, removal: Removal) -> int | None:
        """The token that takes the place of a removed one; None if it is only hidden."""
        if removal == "attention":
            if not self.reads_mask:
                raise PisteError(
                    "removal='attention' needs a model that takes an attention mask, and this "
                    "one takes none: choose removal='delete' or 'mask'."
                )
            return None
        token = getattr(self.tokenizer, f"{removal}_token_id", None)
        if token is None:
            raise PisteError(
                f"removal={removal!r} needs a {removal} token, and this tokenizer has none: "
                "choose removal='delete' or 'attention'."
            )
        return int(token)

    def accept_length(self, length: int) -> None:
        """Refuse a question longer than the model reads."""
        if self.limit is not None and length > self.limit:
            raise PisteError(
                f"The text has {length} tokens but the model reads at most {self.limit}: choose "
                "long='truncate' (explain its beginning), long='windows' (mean over pieces), or "
                "the method slalom with sampler='short' (asks about short sequences of its units)."
            )


class TokenSubject(EngineSubject):
    """An input as token ids: fixed runs of tokens with slots for units between them.

    Special tokens are fixed, and so is pinned text: what lies outside the spans, if ``units`` are
    spans. A single text has one slot ([CLS] … [SEP]), a pair has two, and pinned text parts them
    further. Units stay in their slot and keep the order they are asked in.
    """

    def __init__(
        self,
        classifier: TokenClassifier,
        input: TextInput,
        texts: Sequence[str],
        tokens: Sequence[Token],
        units: str | Spans | SpanFunction,
        notes: dict[str, Any],
    ) -> None:
        self.classifier: TokenClassifier = classifier
        self.input = input
        self.notes: dict[str, Any] = notes
        tokens, groups = self._grouped(tokens, texts, units)
        self.units = tuple(_unit(tokens, group, texts) for group in groups)
        self._ids = [np.array([tokens[p].id for p in group], dtype=IDS) for group in groups]
        self._kinds = [np.array([tokens[p].type for p in group], dtype=IDS) for group in groups]
        self.token_units = np.full(len(tokens), -1)
        """For every token of the whole input the unit it belongs to, −1 for fixed ones."""
        for unit, group in enumerate(groups):
            self.token_units[group] = unit
        self._read_frame(tokens, groups)
        contents = [(ids.tobytes(), slot) for ids, slot in zip(self._ids, self._slots, strict=True)]
        numbers = {content: number for number, content in enumerate(dict.fromkeys(contents))}
        self.types = np.array([numbers[content] for content in contents], dtype=np.int64)
        # Units and fixed runs as pieces of one long row, for encoding many sequences at once.
        pieces = [*self._ids, *self._frame]
        self._piece_ids = np.concatenate(pieces)
        self._piece_kinds = np.concatenate([*self._kinds, *self._frame_kinds])
        self._piece_sizes = np.array([len(piece) for piece in pieces], dtype=IDS)
        self._piece_starts = np.cumsum(self._piece_sizes) - self._piece_sizes
        frame = sum(len(run) for run in self._frame)
        self.can_be_empty = frame > 0
        self.limit = None if classifier.limit is None else classifier.limit - frame

    def _grouped(
        self, tokens: Sequence[Token], texts: Sequence[str], units: str | Spans | SpanFunction
    ) -> tuple[Sequence[Token], list[list[int]]]:
        """The tokens with pinned ones fixed, and the positions of those of each unit."""
        self.is_pinned = False
        """Whether some of the text is part of every question."""
        if isinstance(units, str):
            self.cut = units
            return tokens, group_tokens(tokens, texts, units)
        spans = place_spans(units, texts)
        self.cut = as_given(spans, texts)
        found = group_spans(tokens, texts, spans)
        if found.empty and not (found.groups and "truncated_tokens" in self.notes):
            first = as_given(found.empty[:1], texts)[0]
            raise PisteError(
                f"units: expected spans that cover a token each, got {first}, "
                f"{texts[found.empty[0][0]][slice(*found.empty[0][1:])]!r}, of which no token is "
                "left: make it larger, or join it with its neighbour."
            )
        self.is_pinned = found.pinned > 0
        told = {"widened_spans": found.widened, "lost_spans": found.empty}
        self.notes |= {name: as_given(some, texts) for name, some in told.items() if some}
        if found.pinned:
            self.notes["pinned_tokens"] = found.pinned
        return found.tokens, found.groups

    def note_unknown(self, unknown: int | None) -> None:
        """Note how many units the model can't tell apart: all of their tokens are unknown ones."""
        count = sum(bool((ids == unknown).all()) for ids in self._ids) if unknown is not None else 0
        if count:
            self.notes["unknown_units"] = count

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

    def encode_all(self, sequences: Sequence[Sequence1D]) -> list[Parts]:
        """All rows are laid out in one array; only those too long to ask at once go one by one."""
        if not len(sequences):
            return []
        flat, lengths = self._check_all(sequences)
        ends = np.cumsum(lengths)
        tokens = np.concatenate([[0], np.cumsum(self._piece_sizes[flat])])
        bodies = tokens[ends] - tokens[ends - lengths]
        rows = np.repeat(np.arange(len(lengths)), lengths)
        pieces = self._with_frame(flat, rows, lengths)
        sizes = self._piece_sizes[pieces]
        where = np.repeat(self._piece_starts[pieces] - (np.cumsum(sizes) - sizes), sizes)
        where += np.arange(len(where))
        ids, kinds = self._piece_ids[where], self._piece_kinds[where]
        edges = np.concatenate([[0], np.cumsum(bodies + sum(len(run) for run in self._frame))])
        short, typed = ids.astype(np.int32), bool(self._piece_kinds.any())
        fits = np.ones(len(lengths), bool) if self.limit is None else bodies <= self.limit
        parts: list[Parts] = []
        for number, (start, end) in enumerate(pairwise(edges.tolist())):
            if fits[number]:
                key = short[start:end].tobytes()
                kind = kinds[start:end]
                key += _kind_key(kind) if typed else b""
                parts.append([(Question(key, end - start, (ids[start:end], kind)), 1.0)])
            else:
                parts.append(self._encode_long(flat[ends[number] - lengths[number] : ends[number]]))
        return parts

    def _check_all(self, sequences: Sequence[Sequence1D]) -> tuple[Ints, Ints]:
        """All unit indices in a row, and how many each sequence has; refuses what check refuses."""
        arrays = [
            one
            if isinstance(one, np.ndarray) and one.dtype == IDS and one.ndim == 1 and one.size
            else self.check(one)
            for one in sequences
        ]
        flat: Ints = np.concatenate(arrays).astype(IDS, copy=False)
        if flat.size and (flat.min() < 0 or flat.max() >= len(self.units)):
            for array in arrays:
                self.check(array)
        return flat, np.array([len(array) for array in arrays], dtype=IDS)

    def _with_frame(self, flat: Ints, rows: Ints, lengths: Ints) -> Ints:
        """Pieces of all rows in order: every row's units with the fixed runs around them."""
        runs = len(self._frame)
        first = len(self.units)
        if runs == 2:  # one slot, so units stay where they are
            pieces = np.empty(len(flat) + 2 * len(lengths), dtype=IDS)
            ends = np.cumsum(lengths + 2)
            pieces[ends - lengths - 2] = first
            pieces[ends - 1] = first + 1
            pieces[np.arange(len(flat)) + 2 * rows + 1] = flat
            return pieces
        frames = np.tile(np.arange(runs), len(lengths))
        places = np.concatenate([2 * np.array(self._slots, dtype=IDS)[flat] + 1, 2 * frames])
        owners = np.concatenate([rows, np.repeat(np.arange(len(lengths)), runs)])
        order = np.lexsort((places, owners))  # stable: units keep their order within a slot
        return np.concatenate([flat, first + frames])[order]

    def encode(self, sequence: Sequence1D) -> Parts:
        return self.encode_all([sequence])[0]

    def _encode_long(self, sequence: Ints) -> Parts:
        """A sequence with more tokens than the model reads: in windows, if that was chosen."""
        slots: list[list[int]] = [[] for _ in range(len(self._frame) - 1)]
        for unit in sequence.tolist():
            slots[self._slots[unit]].append(unit)
        nothing = [np.empty(0, IDS)]
        bodies = [np.concatenate(nothing + [self._ids[u] for u in slot]) for slot in slots]
        kinds = [np.concatenate(nothing + [self._kinds[u] for u in slot]) for slot in slots]
        length = sum(len(body) for body in bodies)
        if self.notes["long"] != "windows":
            self.classifier.accept_length(length + sum(len(run) for run in self._frame))
        return self._windows(bodies, kinds, length)

    def _question(self, bodies: Sequence[Ints], kinds: Sequence[Ints]) -> Question:
        ids, types = [self._frame[0]], [self._frame_kinds[0]]
        for slot, body in enumerate(bodies):
            ids += [body, self._frame[slot + 1]]
            types += [kinds[slot], self._frame_kinds[slot + 1]]
        row, kind = np.concatenate(ids), np.concatenate(types)
        return Question(row.astype(np.int32).tobytes() + _kind_key(kind), len(row), (row, kind))

    def _windows(
        self,
        bodies: Sequence[Ints],
        kinds: Sequence[Ints],
        length: int,
    ) -> Parts:
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


def _kind_key(kinds: Ints) -> bytes:
    """Token types make a question another one only where there are any."""
    return kinds.astype(np.int8).tobytes() if kinds.any() else b""


def _unit(tokens: Sequence[Token], group: Sequence[int], texts: Sequence[str]) -> Unit:
    members = [tokens[position] for position in group]
    text = texts[members[0].segment]
    # White space that a word carries along belongs to its tokens, not to its span.
    solid = [m for m in members if text[m.start : m.end].strip()] or members
    start, end = min(m.start for m in solid), max(m.end for m in solid)
    return Unit(text[start:end], start, end, members[0].segment, len(members))
