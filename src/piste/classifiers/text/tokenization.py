"""What a tokenizer makes of a text: ids, types, spans, words, what it adds, and how many fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from piste.classifiers.text.units import Token
from piste.errors import PisteError

_SPARE = 3
"""Tokens beside the special ones that a tokenizer without files may have, such as a blank."""


def read_tokens(
    tokenizer: Any,
    texts: Sequence[str],
    limit: int | None = None,
    *,
    special: bool = True,
    first_only: bool = False,
) -> list[Token]:
    """The tokenizer's own view of the input: ids, types, spans, words, and what it adds itself.

    Tokens of the frame are those the tokenizer adds around the text, and special tokens that the
    text itself spells out: neither is ever a player. Without ``special`` it adds none. What is
    over the ``limit`` is cut off, of a pair with ``first_only`` from the first text alone.
    """
    options: dict[str, Any] = {"verbose": False}
    if not special:
        options["add_special_tokens"] = False
    if limit is not None:
        options |= {"truncation": "only_first" if first_only else True, "max_length": limit}
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


# Tokenizers without a limit report a huge number instead of none.
_NO_LIMIT = 10**7


def longest_sequence(model: torch.nn.Module | None, tokenizer: Any) -> int | None:
    """The smallest of the limits that tokenizer, config and position table state.

    A position table may begin with rows that never stand for a position (RoBERTa counts from
    behind the padding row, OPT keeps two spare ones), so its size alone is not the limit.
    """
    limits: list[int] = []
    stated = getattr(tokenizer, "model_max_length", None)
    if isinstance(stated, int) and 0 < stated < _NO_LIMIT:
        limits.append(stated)
    if model is not None:
        config = getattr(model, "config", None)
        for name in ("max_position_embeddings", "max_seq_len"):
            value = getattr(config, name, None)
            if isinstance(value, int) and 0 < value < _NO_LIMIT:
                limits.append(value)
        limits += [size for size in map(_table_size, _position_tables(model)) if size > 0]
    return min(limits, default=None)


def _position_tables(model: torch.nn.Module) -> list[torch.nn.Embedding]:
    return [
        module
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Embedding) and _names_positions(name.rsplit(".", 1)[-1])
    ]


def _names_positions(name: str) -> bool:
    absolute = "position" in name or name in ("wpe", "pos_embed", "pos_emb")
    return absolute and "relative" not in name and "token_type" not in name


def _table_size(table: torch.nn.Embedding) -> int:
    if table.padding_idx is not None:
        return table.num_embeddings - table.padding_idx - 1
    offset = getattr(table, "offset", 0)
    return table.num_embeddings - (offset if isinstance(offset, int) else 0)


def check_vocabulary(tokenizer: Any, name: str) -> None:
    """Refuse a tokenizer that knows only special tokens: every word would be the same to it."""
    special = getattr(tokenizer, "all_special_ids", None)
    count = getattr(tokenizer, "__len__", None)  # of a wrapper too, which len() does not find
    if special is None or count is None:
        return
    if count() - len(set(special)) <= _SPARE:
        raise PisteError(
            f"The tokenizer of {name!r} knows no words, only {count()} special tokens: its "
            "files are missing from the folder, so save them there with "
            "tokenizer.save_pretrained, or give the tokenizer to piste.load."
        )
