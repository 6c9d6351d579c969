"""Biases on the keys of attention, wherever torch computes it: what hides a token from others.

Attention is found where torch computes it, not by the names of models' classes: while
:class:`KeyBias` is entered, the biases are added wherever a softmax over the keys is taken. In
some models information flows past attention (mean pooling, convolutions); :func:`is_hidden` tries
whether a token that is hidden still matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch.overrides import TorchFunctionMode

from piste.classifiers.introspection.attention_capture import AttentionInputs, masked

HIDDEN = -1e4
"""A bias that leaves a key no weight, to the last bit."""
_SAME = 1e-4
"""Share of the answer's own change below which a hidden token is said not to matter."""


class NoAttentionError(Exception):
    """A model computes no attention that a bias could be added to."""


class KeyBias(TorchFunctionMode):
    """While it is entered, ``bias`` (rows × keys) is added to all attention logits.

    >>> scores = torch.zeros(1, 1, 2, 2)
    >>> with KeyBias(torch.tensor([[0.0, 1.0]])) as found:
    ...     weights = torch.softmax(scores, dim=-1)
    >>> found.times, weights[0, 0, 0].tolist() == torch.tensor([0.0, 1.0]).softmax(0).tolist()
    (1, True)
    """

    def __init__(self, bias: torch.Tensor) -> None:
        super().__init__()
        self.bias = bias
        self.times = 0
        """How often attention was met."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            given = AttentionInputs(*args, **kwargs)
            if given.size[1] == self.bias.shape[1]:
                return self._attend(func, given)
        if name == "softmax":
            return self._normalise(func, *args, **kwargs)
        return func(*args, **kwargs)

    def _attend(self, func: Any, given: AttentionInputs) -> torch.Tensor:
        self.times += 1
        bias = self.bias.to(given.query.dtype)[:, None, None, :]
        bias = bias.expand(-1, -1, given.size[0], -1)
        mask = masked(bias, given.attn_mask, given.is_causal)
        return func(
            given.query,
            given.key,
            given.value,
            mask,
            given.dropout_p,
            scale=given.scale,
            enable_gqa=given.enable_gqa,
        )

    def _normalise(self, func: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        scores, *rest = args if args else (kwargs.pop("input"),)
        dim = kwargs.get("dim", rest[0] if rest else None)
        rows, keys = self.bias.shape
        if (
            not isinstance(scores, torch.Tensor)
            or scores.ndim < 3
            or dim not in (-1, scores.ndim - 1)
            or scores.shape[-1] != keys
            or scores.shape[0] % rows
        ):
            return func(scores, *rest, **kwargs)
        self.times += 1
        # Some fold the heads into the rows.
        bias = self.bias.to(scores.dtype).repeat_interleave(scores.shape[0] // rows, dim=0)
        shape = (len(bias), *[1] * (scores.ndim - 2), keys)
        return func(scores + bias.reshape(shape), *rest, **kwargs)


Run: TypeAlias = Callable[[], torch.Tensor]
"""One pass of a model over one batch, to its logits."""


def run_biased(run: Run, bias: torch.Tensor) -> torch.Tensor:
    """Answers with biases on the keys."""
    with KeyBias(bias) as found:
        logits = run()
    if not found.times:
        raise NoAttentionError("no attention was met in it")
    return logits


def is_hidden(run: Run, changed: Run, bias: torch.Tensor, place: int) -> bool:
    """Whether a token no longer matters once it is hidden from attention.

    ``run`` and ``changed`` answer one row with two contents of the token; ``bias`` (1 × tokens)
    hides nothing.
    """
    hidden = bias.clone()
    hidden[0, place] = HIDDEN
    with torch.no_grad():
        seen = [run_biased(one, bias) for one in (run, changed)]
        left = [run_biased(one, hidden) for one in (run, changed)]
    free = float((seen[1] - seen[0]).abs().max())
    scale = max(free, 1e-2 * float(seen[0].abs().max()))
    return float((left[1] - left[0]).abs().max()) <= _SAME * scale
