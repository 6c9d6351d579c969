"""Where a model looks: attention weights, token states and their gradients, from one pass.

Attention is found where torch computes it, as in :mod:`piste.classifiers.slopes`, not by the names
of models' classes and not by switching a model to another implementation: while :class:`Watch` is
entered, ``scaled_dot_product_attention`` is computed in two steps, with the weights in between, and
a softmax over the keys is recognised where a model computes attention by itself. All of it happens
in a twin, so nothing is left to restore in the user's model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.overrides import TorchFunctionMode

from piste.classifiers.inside import Inside
from piste.errors import PisteError

Floats = NDArray[np.float64]

_READS = 1e-6
"""Share of the largest gradient below which the head is said not to read a token's row."""
_CAUSAL = 1e-9


@dataclass(frozen=True)
class Layer:
    """One attention: what it weighs, and by how much that counts.

    ``weights`` and ``gradients`` are heads × queries × keys, the latter of the explained number
    (classes first if all are explained). ``values`` is heads × keys × features, None where the
    model multiplies by them in a way that was not recognised.
    """

    weights: Floats
    gradients: Floats
    values: Floats | None


@dataclass(frozen=True)
class Trace:
    """All attentions of one input in the order they were computed.

    >>> import piste
    >>> from piste.target import Target
    >>> clf = piste.load("piste:reviews")
    >>> found = trace(clf.inside(clf.subject("A fine film"), Target("class", "yes", (1,))))
    >>> len(found.layers), found.readers.tolist(), found.causal
    (2, [0], False)
    """

    layers: tuple[Layer, ...]
    token_units: NDArray[np.int64]
    units: int
    readers: NDArray[np.int64]
    """The tokens whose rows of the last attention reach the head: [CLS], the last one, or all."""

    @property
    def tokens(self) -> int:
        return len(self.token_units)

    @property
    def causal(self) -> bool:
        """Whether no token looks ahead in any layer."""
        ahead = np.triu(np.ones((self.tokens, self.tokens), dtype=bool), 1)
        return all(
            float(layer.weights[:, ahead].max(initial=0)) <= _CAUSAL for layer in self.layers
        )

    def per_unit(self, per_token: Floats) -> Floats:
        """Sums over the tokens of every unit; fixed tokens are left out."""
        real = self.token_units >= 0
        units = self.token_units[real]
        return np.bincount(units, per_token[real], minlength=self.units).astype(np.float64)

    def between_units(self, matrix: Floats) -> Floats:
        """Tokens × tokens to units × units: means over the queries, sums over the keys.

        So a unit's row is what one of its tokens looks at, on average, as a row of the matrix is.
        """
        member = np.zeros((self.units, self.tokens))
        real = np.flatnonzero(self.token_units >= 0)
        member[self.token_units[real], real] = 1.0
        size = np.maximum(member.sum(axis=1, keepdims=True), 1.0)
        return (member / size) @ matrix @ member.T


class Watch(TorchFunctionMode):
    """While it is entered, attention weights of ``tokens`` × ``tokens`` are kept as they arise.

    >>> with Watch(2) as found:
    ...     _ = torch.softmax(torch.zeros(1, 1, 2, 2), dim=-1) @ torch.ones(1, 1, 2, 3)
    >>> [tuple(weights.shape) for weights, values in found.met], found.met[0][1].shape
    ([(1, 1, 2, 2)], torch.Size([1, 1, 2, 3]))
    """

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.tokens = tokens
        self.met: list[list[Any]] = []
        """Weights and values, in the order of the layers."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            return self._attend(func, *args, **kwargs)
        result = func(*args, **kwargs)
        if name == "softmax":
            return self._keep(result, args, kwargs)
        if self.met and self.met[-1][1] is None:
            self._follow(name, args, result)
        return result

    def _attend(
        self,
        func: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        queries, keys = query.shape[-2], key.shape[-2]
        if queries != self.tokens or keys != self.tokens:
            return func(
                query,
                key,
                value,
                attn_mask,
                dropout_p,
                is_causal,
                scale=scale,
                enable_gqa=enable_gqa,
            )
        if enable_gqa:
            times = query.shape[-3] // key.shape[-3]
            key, value = (one.repeat_interleave(times, dim=-3) for one in (key, value))
        scores = query @ key.transpose(-2, -1) * (scale or 1 / math.sqrt(query.shape[-1]))
        if is_causal:
            seen = torch.ones(queries, keys, dtype=torch.bool, device=query.device).tril()
            scores = scores.masked_fill(~seen, float("-inf"))
        if attn_mask is not None:
            hidden = attn_mask.dtype == torch.bool
            scores = scores.masked_fill(~attn_mask, float("-inf")) if hidden else scores + attn_mask
        # The function that torch itself would call, so that this mode does not meet it again.
        with torch._C.DisableTorchFunction():
            weights = torch.softmax(scores, dim=-1)
        self.met.append([weights, value])
        return weights @ value

    def _keep(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if (
            isinstance(result, torch.Tensor)
            and result.ndim >= 3
            and result.shape[-2:] == (self.tokens, self.tokens)
            and dim in (-1, result.ndim - 1)
        ):
            self.met.append([result, None])
        return result

    def _follow(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """What the weights of a model's own attention are multiplied by."""
        weights = self.met[-1][0]
        if name in ("dropout", "to", "type_as") and args and args[0] is weights:
            if isinstance(result, torch.Tensor) and result.shape == weights.shape:
                self.met[-1][0] = result
        elif name in ("matmul", "__matmul__", "bmm") and len(args) > 1 and args[0] is weights:
            self.met[-1][1] = args[1]


def trace(inside: Inside) -> Trace:
    """Run the input once, forwards and backwards, and keep what attention did."""
    start = inside.start
    with torch.inference_mode(False), torch.enable_grad():
        given = start.clone().requires_grad_()
        with Watch(start.shape[1]) as found:
            numbers = inside.numbers(given)
        if not found.met:
            raise PisteError(
                f"No attention between the tokens of the input was met in "
                f"{type(inside.twin).__name__}: choose a method that does not look at attention."
            )
        weights = [one for one, _ in found.met]
        several = numbers.ndim > 1
        goals = numbers[0] if several else numbers
        gradients = [
            torch.autograd.grad(goal, weights, retain_graph=True, allow_unused=True)
            for goal in goals
        ]
    layers = []
    for place, (kept, values) in enumerate(found.met):
        slopes = np.stack(
            [
                np.zeros(_heads(kept).shape) if one[place] is None else _heads(one[place])
                for one in gradients
            ]
        )
        if values is not None and values.shape[-2] == start.shape[1]:
            values = _heads(values)
        else:
            values = None
        layers.append(Layer(_heads(kept), slopes if several else slopes[0], values))
    units = int(inside.token_units.max()) + 1
    return Trace(tuple(layers), inside.token_units, units, _readers(layers[-1]))


def _heads(tensor: torch.Tensor) -> Floats:
    """Heads × …, whether the rows of a batch of one come apart from the heads or in one."""
    array: Floats = tensor.detach().cpu().double().numpy()
    return array.reshape(-1, *array.shape[-2:])


def _readers(last: Layer) -> NDArray[np.int64]:
    """The rows of the last attention that the answer depends on."""
    size = np.abs(last.gradients).max(axis=tuple(range(last.gradients.ndim - 2)))
    size = size.max(axis=1)
    if not size.max() > 0:
        return np.arange(len(size))
    return np.flatnonzero(size > _READS * size.max())
