"""How long a sequence a model can read, found in the model and its tokenizer themselves."""

from __future__ import annotations

from typing import Any

import torch

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
