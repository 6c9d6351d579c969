"""Attention weighted by the size of what it carries (Kobayashi et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.classifiers.introspection.tracing import Layer, Trace
from piste.errors import PisteError
from piste.methods.attention import QUERIES
from piste.methods.attention_base import LAYERS, AttentionMethod, PerUnit
from piste.types import Floats
from piste.validation import choose


@dataclass(frozen=True)
class AttentionNorms(AttentionMethod):
    """mean_i ‖Σ_h α^h_ij f^h(x_j)‖₂ for every token j, summed over the tokens of a unit.

    α^h_ij is the weight that token i gives to token j in head h, and f^h(x_j) = v^h_j W^h is the
    value vector there, as the layer's output projection takes it into the model: a token with much
    attention and a small vector carries nothing. The mean over ``layers`` and over the ``queries``
    i is taken as in :class:`~piste.methods.attention.Attention`.

    Where a model's projection could not be found in all layers, it is left out in all, so that the
    norm is that of the heads' results side by side; ``e.settings["projected"]`` says which.

    >>> import piste
    >>> e = piste.explain(piste.load("piste:reviews"), "A fine film.", method="attention_norms")
    >>> e.settings["projected"]
    True
    """

    layers: str = "mean"
    queries: str = "all"

    name: ClassVar[str] = "attention_norms"
    about: ClassVar[str] = "attention times the size of what it carries (no direction)"
    paper: ClassVar[str] = "Kobayashi et al., EMNLP 2020"

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("layers", self.layers, LAYERS)
        choose("queries", self.queries, QUERIES)

    def weigh(self, trace: Trace) -> PerUnit:
        projected = all(layer.projection is not None for layer in trace.layers)
        chosen = trace.layers[-1:] if self.layers == "last" else trace.layers
        matrix = np.mean([carried(layer, projected) for layer in chosen], axis=0)
        row = trace.read(matrix) if self.queries == "reader" else matrix.mean(axis=0)
        return trace.per_unit(row), {"projected": projected}


def carried(layer: Layer, projected: bool) -> Floats:
    """‖Σ_h α^h_ij f^h_j‖₂ for all queries i and keys j.

    By way of the inner products of the heads' vectors, heads × heads for every key: the vectors of
    all pairs of tokens would fill the memory. Heads side by side are orthogonal to each other.
    """
    if layer.values is None:
        raise PisteError(
            "What attention is multiplied by was not recognised in this model: choose a method "
            "that looks at the weights alone, such as 'attention' or 'attention_rollout'."
        )
    weights, vectors = layer.weights, layer.values
    if not projected or layer.projection is None:
        squares = (vectors**2).sum(axis=2)
        return np.sqrt(np.einsum("hij,hj->ij", weights**2, squares))
    vectors = np.einsum("hjf,hfw->hjw", vectors, layer.projection, optimize=True)
    products = np.einsum("hjw,gjw->jhg", vectors, vectors, optimize=True)
    by_key = weights.transpose(2, 1, 0)  # keys × queries × heads
    squared = ((by_key @ products) * by_key).sum(axis=2).T
    return np.sqrt(np.maximum(squared, 0.0))
