"""Answers groups of rows that continue each other's beginnings, through a cache of our own."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from piste.classifiers.backends.backend import TorchRuntime
from piste.classifiers.base import input_embeddings
from piste.classifiers.text.batching import unused_id
from piste.classifiers.text.prefix_plan import Group, Ids, share


class _Continued(DynamicCache):  # type: ignore[misc]  # transformers comes without types
    """What the model takes for its past: a beginning of its own for every row, from the store.

    Keeps nothing of what it hands out, so memory holds one layer's keys and values at a time.
    """

    def __init__(self, group: Group, device: torch.device, width: int) -> None:
        super().__init__()
        self._store = group.store
        self._past = group.paths.shape[1]
        self._kept = torch.from_numpy(group.kept).to(device)
        # One gather makes room for the new tokens too; whatever it brings there is overwritten.
        room = np.pad(group.paths, ((0, 0), (0, width)))
        self._slots = torch.from_numpy(room).to(device).flatten()

    def __bool__(self) -> bool:
        return True

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._past

    def get_mask_sizes(self, query_length: Any, layer_idx: int) -> tuple[int, int]:
        new = len(query_length) if isinstance(query_length, torch.Tensor) else query_length
        return self._past + int(new), 0

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        layer_idx: int,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return (
            self._continue(key_states, (layer_idx, "keys")),
            self._continue(value_states, (layer_idx, "values")),
        )

    def _continue(self, states: torch.Tensor, name: tuple[int, str]) -> torch.Tensor:
        new = states.transpose(1, 2)  # rows × tokens × heads × width
        if self._kept.shape[1]:
            rows, places, slots = self._kept
            tensors = self._store.tensors
            if name not in tensors:
                tensors[name] = new.new_zeros((self._store.slots, *new.shape[2:]))
            tensors[name][slots] = new[rows, places]
        if not self._past:
            return states
        whole = self._store.tensors[name].index_select(0, self._slots)
        whole = whole.view(len(new), -1, *new.shape[2:])
        whole[:, self._past :] = new
        return whole.transpose(1, 2)


class PrefixRunner:
    """Answers groups of rows, if the model's answers stay what they are without sharing.

    The model is never changed; it must be in evaluation mode, and no gradients are kept. Where
    ``types`` is set it is given token types, all of them 0; ``tail`` is as in :func:`share`.
    """

    def __init__(self, model: Any, *, types: bool = False, tail: int = 0) -> None:
        pad = getattr(model.config.get_text_config(), "pad_token_id", None)
        self.pad = pad if isinstance(pad, int) and pad >= 0 else None
        self.reason: str | None = None
        """Why this model can't share beginnings; None as long as nothing speaks against it."""
        self.model = model
        self._runtime = TorchRuntime(model)
        self._accepted = set(inspect.signature(model.forward).parameters)
        if not {"input_ids", "attention_mask", "past_key_values"} <= self._accepted:
            self.reason = "the model takes no keys and values of earlier tokens"
        self._vocabulary: int | None = getattr(input_embeddings(model), "num_embeddings", None)
        self._types = types
        self._tail = tail
        self._tried_length = 0

    def is_untried(self, rows: Sequence[Ids]) -> bool:
        """Whether :meth:`usable` will have to ask the model."""
        return self.reason is None and max(map(len, rows)) > self._tried_length

    def usable(self, rows: Sequence[Ids]) -> bool:
        """Whether these rows may share; tried again on every row longer than those before.

        Length matters: some models look back only so far.
        """
        if self.is_untried(rows):
            longest = max(rows, key=len)
            self._tried_length = len(longest)
            self.reason = self._objection(longest)
        return self.reason is None

    def _objection(self, row: Ids) -> str | None:
        """Three generations of pieces of one row, asked together and one by one."""
        body, tail = row[: len(row) - self._tail], row[len(row) - self._tail :]
        shorter = np.delete(body, 5 * len(body) // 8)
        bodies = [body, body, body[:-1], shorter, shorter[:-1], np.delete(body, 3 * len(body) // 8)]
        pieces = [np.concatenate([one, tail]) for one in bodies if len(one)]
        budget = len(pieces) * len(row)
        groups = share(pieces, budget, pad=self.pad, least=0.0, call=0, tail=self._tail)
        try:
            truth = torch.cat([self._alone(piece) for piece in pieces])
            answers = torch.empty_like(truth)
            for group in groups:
                answers[torch.from_numpy(group.rows)] = self.answer(group, pieces)
        except (ValueError, RuntimeError, IndexError, TypeError, AttributeError) as problem:
            return f"the model fails when it continues a beginning ({problem})"
        difference = float((answers - truth).abs().max())
        precision = torch.finfo(truth.dtype).eps
        share_of_scale = max(200 * precision if precision < 1e-5 else 8 * precision, 2e-5)
        if difference <= share_of_scale * float(truth.abs().max().clamp_min(1e-6)):
            return None
        return f"the model answers differently when it continues a beginning ({difference:.2g})"

    def answer(self, group: Group, rows: Sequence[Ids]) -> torch.Tensor:
        """Logits of a group, in the order of ``group.rows``; ``rows`` is the whole pool."""
        rests = [
            rows[row][start:]
            for row, start in zip(group.rows.tolist(), group.starts.tolist(), strict=True)
        ]
        pad = unused_id(rests) if self.pad is None else self.pad
        if len(rests) > 1 and self._vocabulary is not None and pad >= self._vocabulary:
            # No id is free to pad with: rows that are alone need none.
            return torch.cat([self.answer(half, rows) for half in group.halves()])
        width = max(len(rest) for rest in rests)
        past = group.paths.shape[1]
        ids = np.full((len(rests), width), pad, dtype=np.int64)
        for line, rest in zip(ids, rests, strict=True):
            line[: len(rest)] = rest
        column = np.arange(past + width)
        begins, ends = past - group.starts, past + group.ends - group.starts
        mask = (column >= begins[:, None]) & (column < ends[:, None])
        # Padding stays inside the row's own positions: tables of positions end somewhere.
        positions = np.minimum(group.starts[:, None] + np.arange(width), group.ends[:, None] - 1)
        inputs = {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
        if past:
            inputs |= {"position_ids": positions, "cache_position": past + np.arange(width)}
        cache = _Continued(group, self._device, width) if past or group.kept.size else None
        logits = self._call(inputs, pad, cache)
        if group.last:
            group.store.tensors.clear()
        return logits

    def _alone(self, row: Ids) -> torch.Tensor:
        inputs = {"input_ids": row[None], "attention_mask": np.ones((1, len(row)), dtype=np.int64)}
        return self._call(inputs, 0, None)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _call(self, inputs: dict[str, Ids], pad: int, cache: _Continued | None) -> torch.Tensor:
        if self._types:
            inputs["token_type_ids"] = np.zeros_like(inputs["input_ids"])
        given: dict[str, Any] = {
            name: torch.from_numpy(array).to(self._device)
            for name, array in inputs.items()
            if name in self._accepted
        }
        if "use_cache" in self._accepted:
            given["use_cache"] = cache is not None
        if cache is not None:
            given["past_key_values"] = cache
        # A model with a pad token of its own, or a single row, needs to be told nothing.
        unknown = self.pad is None and len(inputs["input_ids"]) > 1
        with torch.no_grad():
            return self._runtime.with_padding(pad if unknown else None)(**given).logits
