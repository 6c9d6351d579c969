"""A causal language model that gives log-probabilities of chosen answers instead of logits."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from piste.classifiers.base import twin_of
from piste.classifiers.prompted.tail import Tail
from piste.errors import PisteError


class AnswerReader(nn.Module):
    """Reads a prompt with a :class:`Tail` behind it, one row per question.

    The forward pass takes what the language model takes and returns ``.logits``: rows × numbers,
    by default log p(token | prompt, tokens before it) of all tokens of all answers, in order.
    ``combine`` makes other numbers of those. The user's model is not changed: this is a twin
    around the same tensors, whose output layer is given only the places that are read.
    """

    def __init__(
        self,
        model: nn.Module,
        tail: Tail,
        combine: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.config: Any = model.config
        self.tail = tail
        self.combine = combine
        self.twin = _twin(model)
        places = sorted({place for answer in tail.reads for place, _ in answer})
        self._places = torch.tensor(places)
        """Tail tokens at which something is read, −1 for the end of the prompt."""
        reads = [read for answer in tail.reads for read in answer]
        self._which = torch.tensor([places.index(place) for place, _ in reads])
        self._tokens = torch.tensor([token for _, token in reads])
        self._depths = torch.from_numpy(tail.depths)
        self._sees = torch.from_numpy(tail.sees)

    def get_input_embeddings(self) -> Any:
        """Those of the language model."""
        return self.twin.get_input_embeddings()  # type: ignore[operator]  # a method of the twin

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
    ) -> Any:
        """Rows of token ids that end in the tail; the mask also covers what the cache holds."""
        given = {"position_ids": position_ids, "past_key_values": past_key_values}
        numbers = self.token_log_probabilities(
            input_ids, attention_mask, use_cache=bool(use_cache), **given
        )
        return SimpleNamespace(logits=numbers if self.combine is None else self.combine(numbers))

    def token_log_probabilities(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool = False,
    ) -> torch.Tensor:
        """Rows × tokens of all answers, in order."""
        width = input_ids.shape[1]
        columns = torch.arange(attention_mask.shape[1], device=input_ids.device)
        real = attention_mask != 0
        ends = torch.where(real, columns, -1).max(dim=1).values + 1
        given: dict[str, Any] = {"input_ids": input_ids, "use_cache": use_cache}
        if past_key_values is not None:
            given["past_key_values"] = past_key_values
        if self.tail.is_chain:
            given["attention_mask"] = attention_mask
            if position_ids is not None:
                given["position_ids"] = position_ids
        else:
            begins = torch.where(real, columns, len(columns)).min(dim=1).values
            given["position_ids"] = self._positions(columns, begins, ends)[:, -width:]
            given["attention_mask"] = self._mask(columns, real, ends)[:, :, -width:]
        first = ends - len(columns) + width - len(self.tail)  # of the tail, in this call's tokens
        head: Any = self.twin.get_output_embeddings()  # type: ignore[operator]
        head.places = first[:, None] + self._places.to(first.device)
        try:
            logits = self.twin(**given).logits
        finally:
            head.places = None
        return log_probabilities(
            logits, self._which.to(logits.device), self._tokens.to(logits.device)
        )

    def _positions(
        self, columns: torch.Tensor, begins: torch.Tensor, ends: torch.Tensor
    ) -> torch.Tensor:
        """A tail token's position is that behind the one it follows."""
        size = len(self.tail)
        positions = (columns[None] - begins[:, None]).clamp_min(0)
        own = columns[None] - (ends - size)[:, None]
        inside = (own >= 0) & (own < size)
        depths = self._depths.to(columns.device)[own.clamp(0, size - 1)]
        return torch.where(inside, (ends - size - begins)[:, None] + depths, positions)

    def _mask(self, columns: torch.Tensor, real: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """Rows × 1 × queries × keys, to be added: causal, and branches do not see each other."""
        size = len(self.tail)
        own = columns[None] - (ends - size)[:, None]
        inside = (own >= 0) & (own < size)
        place = own.clamp(0, size - 1)
        sees = self._sees.to(columns.device)[place[:, :, None], place[:, None, :]]
        both = inside[:, :, None] & inside[:, None, :]
        seen = (columns[:, None] >= columns)[None] & real[:, None] & (sees | ~both)
        seen |= torch.eye(len(columns), dtype=torch.bool, device=columns.device)  # padding: itself
        kind = next(self.twin.parameters()).dtype
        kind = kind if kind.is_floating_point else torch.float32
        hidden = torch.full((), torch.finfo(kind).min, dtype=kind, device=columns.device)
        return torch.where(seen, torch.zeros_like(hidden), hidden)[:, None]


def log_probabilities(
    logits: torch.Tensor, places: torch.Tensor, tokens: torch.Tensor
) -> torch.Tensor:
    """Log-probabilities of tokens at places, rows × tokens, from logits (rows × places × all).

    Sums are in double precision: where one label begins another, P(short) = p(short) − p(long)
    is a small difference, and a logarithm rounded to six places would not be exact to 1e-4.
    """
    wide = torch.float64 if logits.device.type != "mps" else torch.float32  # mps has no double
    logits = logits.float()
    below = logits - logits.detach().amax(dim=-1, keepdim=True)
    totals = torch.stack([row.to(wide).logsumexp(dim=-1) for row in below])  # a row fits memory
    return below[:, places, tokens].to(wide) - totals[:, places]


class _ChosenPlaces(nn.Module):
    """An output layer that is given only some places of every row."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.places: torch.Tensor | None = None

    @property
    def weight(self) -> Any:
        return self.layer.weight

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        if self.places is not None:
            places = self.places.to(states.device)
            states = states.gather(1, places[:, :, None].expand(-1, -1, states.shape[-1]))
        return self.layer(states)


def _twin(model: nn.Module) -> nn.Module:
    """A twin whose output layer can be told what to read."""
    refusal = (
        f"{type(model).__name__} can't be read as a causal language model: load it with "
        "AutoModelForCausalLM"
    )
    try:
        twin: Any = twin_of(model)
        head = twin.get_output_embeddings()
    except (AttributeError, NotImplementedError, TypeError, RuntimeError) as problem:
        raise PisteError(f"{refusal} ({problem}).") from problem
    if head is None:
        raise PisteError(f"{refusal}.")
    for parent in list(twin.modules()):
        for name, child in list(parent.named_children()):
            if child is head:
                setattr(parent, name, _ChosenPlaces(head))
    if not isinstance(twin.get_output_embeddings(), _ChosenPlaces):
        raise PisteError(f"{refusal}.")
    return twin
