"""Where a model looks: attention weights, what they weigh and their gradients, from one pass.

Attention is found where torch computes it (see
:mod:`piste.classifiers.introspection.attention_capture`), not by the names of models' classes, and
whichever implementation a model uses gives the same weights. All of
it happens in a twin, so nothing is left to restore in the user's model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from piste.classifiers.introspection.attention_capture import AttentionCall, AttentionCapture
from piste.classifiers.introspection.gradients import GradientAccess
from piste.errors import PisteError
from piste.types import Floats, Ints

_READS = 1e-6
"""Share of the largest gradient below which the head is said not to read a token's row."""
_CAUSAL = 1e-9
_ELSE = "choose a method that does not look at attention (see `piste methods`)."


@dataclass(frozen=True)
class Layer:
    """One attention: what it weighs, and by how much that counts.

    ``weights`` and ``gradients`` are heads × queries × keys, the latter of the explained number
    (classes first if all are explained). ``values`` is heads × keys × features, None where the
    model multiplies by them in a way that was not recognised; ``projection``, heads × features ×
    width, is what then puts the heads together, None where something else comes first.
    """

    weights: Floats
    gradients: Floats
    values: Floats | None
    projection: Floats | None = None


@dataclass(frozen=True)
class Trace:
    """All attentions of one input in the order they were computed.

    >>> import piste
    >>> from piste.target import Target
    >>> clf = piste.load("piste:reviews")
    >>> found = trace(clf.gradient_access(clf.subject("A fine film"), Target("class", "yes", (1,))))
    >>> len(found.layers), found.readers.tolist(), found.causal
    (2, [0], False)
    """

    layers: tuple[Layer, ...]
    token_units: Ints
    units: int
    readers: Ints
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

    def read(self, matrix: Floats) -> Floats:
        """The row of a tokens × tokens matrix that the head reads; their mean if it reads many."""
        row: Floats = matrix[self.readers].mean(axis=0)
        return row

    def per_unit(self, per_token: Floats) -> Floats:
        """Sums over the tokens of every unit; fixed tokens are left out."""
        real = self.token_units >= 0
        units = self.token_units[real]
        return np.bincount(units, per_token[real], minlength=self.units).astype(np.float64)

    def mean_per_unit(self, per_token: Floats) -> Floats:
        """Means over the tokens of every unit; fixed tokens are left out."""
        sizes = self.per_unit(np.ones(self.tokens))
        return self.per_unit(per_token) / np.maximum(sizes, 1.0)

    def between_units(self, matrix: Floats) -> Floats:
        """Tokens × tokens to units × units: means over the queries, sums over the keys.

        So a unit's row is what one of its tokens looks at, on average, as a row of the matrix is.
        """
        member = np.zeros((self.units, self.tokens))
        real = np.flatnonzero(self.token_units >= 0)
        member[self.token_units[real], real] = 1.0
        size = np.maximum(member.sum(axis=1, keepdims=True), 1.0)
        return (member / size) @ matrix @ member.T


def trace(access: GradientAccess) -> Trace:
    """Run the input once, forwards and backwards, and keep what attention did.

    If all classes are explained, gradients have them first, which many classes make large:
    :func:`traces` gives one class after the other.
    """
    every = list(traces(access))
    if access.target.kind != "all":
        return every[0]
    layers = (
        replace(one[0], gradients=np.stack([layer.gradients for layer in one]))
        for one in zip(*(found.layers for found in every), strict=True)
    )
    return replace(every[0], layers=tuple(layers))


def traces(access: GradientAccess) -> Iterator[Trace]:
    """A trace for every explained number (all classes, or only one), from one forward pass.

    Weights and values are the same in all; gradients are computed when their turn comes.
    """
    goals, call = _run(access)
    known = [_layer(one) for one in call]
    units = int(access.token_units.max()) + 1
    for goal in goals:
        slopes = _slopes(goal, [one.weights for one in call])
        layers = tuple(
            replace(layer, gradients=np.zeros_like(layer.weights) if slope is None else slope)
            for layer, slope in zip(known, slopes, strict=True)
        )
        yield Trace(layers, access.token_units, units, _readers(layers[-1]))


def _run(access: GradientAccess) -> tuple[list[torch.Tensor], list[AttentionCall]]:
    """The explained numbers of the whole input, and the attentions on the way."""
    name = type(access.twin).__name__
    with torch.inference_mode(False), torch.enable_grad(), _visible_attention(access.twin):
        # No leaf, because some models write into their embeddings.
        given = access.start.clone().requires_grad_().clone()
        with AttentionCapture(len(access.token_units)) as capture:
            numbers = access.numbers(given)
        goals = list(numbers.reshape(-1))
    if capture.missed:
        queries, keys = capture.missed[0]
        raise PisteError(
            f"{name} attends between other things ({queries} × {keys}) than the {capture.tokens} "
            f"tokens or pixels of the input: {_ELSE}"
        )
    call = capture.attentions()
    if not call:
        raise PisteError(f"No attention between the tokens of the input was met in {name}: {_ELSE}")
    return goals, call


def _slopes(goal: torch.Tensor, weights: Sequence[torch.Tensor]) -> list[Floats | None]:
    with torch.inference_mode(False), torch.enable_grad():
        found = torch.autograd.grad(goal, weights, retain_graph=True, allow_unused=True)
    return [None if one is None else _heads(one) for one in found]


@contextmanager
def _visible_attention(twin: torch.nn.Module) -> Iterator[None]:
    """Kernels that can't be looked into are left for the plain computation meanwhile."""
    configs: dict[int, Any] = {}
    for part in twin.modules():
        config: Any = getattr(part, "config", None)
        if getattr(config, "_attn_implementation", "eager") not in ("eager", "sdpa", None):
            configs[id(config)] = config
    before = [(config, config._attn_implementation) for config in configs.values()]
    try:
        for config in configs.values():
            config._attn_implementation = "eager"
        yield
    finally:
        for config, implementation in before:
            config._attn_implementation = implementation


def _layer(call: AttentionCall) -> Layer:
    weights = _heads(call.weights)
    heads, tokens = weights.shape[:2]
    values = projection = None
    if call.values is not None and call.values.ndim >= 2 and call.values.shape[-2] == tokens:
        own = _heads(call.values)
        if heads % len(own) == 0:  # several heads may share their values
            values = own.repeat(heads // len(own), axis=0)
    if values is not None and call.projection is not None:
        matrix = call.projection.detach().cpu().double().numpy()
        projection = matrix.reshape(heads, values.shape[-1], -1)
    return Layer(weights, np.empty(0), values, projection)


def _heads(tensor: torch.Tensor) -> Floats:
    """Heads × …, whether the rows of a batch of one come apart from the heads or in one."""
    array: Floats = tensor.detach().cpu().double().numpy()
    return array.reshape(-1, *array.shape[-2:])


def _readers(last: Layer) -> Ints:
    """The rows of the last attention that the answer depends on."""
    size = np.abs(last.gradients).max(axis=(0, 2))
    if not size.max() > 0:
        return np.arange(len(size))
    return np.flatnonzero(size > _READS * size.max())
