"""Attention of a whole model as one matrix, tokens × tokens: what every token gets from each.

Rows are queries, columns keys. ``gradient`` says what every head's weights A are multiplied by
before heads are averaged: nothing ("none"), the positive part of the explained number's
derivative with respect to them ("relu"), or the derivative itself ("signed").
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from piste.classifiers.introspection.tracing import Layer, Trace
from piste.types import Floats

GRADIENTS = ("none", "relu", "signed")
LAYERS = ("mean", "last")


def weighted(layer: Layer, gradient: str = "none") -> Floats:
    """Heads × queries × keys: A, A ⊙ ReLU(∂f/∂A) or A ⊙ ∂f/∂A."""
    if gradient == "none":
        return layer.weights
    slopes = layer.gradients
    return layer.weights * (np.maximum(slopes, 0.0) if gradient == "relu" else slopes)


def layer_maps(trace: Trace, gradient: str = "none") -> list[Floats]:
    """One matrix per layer: the mean over its heads."""
    return [weighted(layer, gradient).mean(axis=0) for layer in trace.layers]


def mean_map(trace: Trace, gradient: str = "none", layers: str = "mean") -> Floats:
    """The mean over heads and layers, or over the heads of the last layer."""
    if layers == "last":
        return weighted(trace.layers[-1], gradient).mean(axis=0)
    total = np.zeros((trace.tokens, trace.tokens))
    heads = 0
    for layer in trace.layers:
        total += weighted(layer, gradient).sum(axis=0)
        heads += len(layer.weights)
    return total / heads


def with_residual(maps: Sequence[Floats]) -> list[Floats]:
    """½ A + ½ I: half of every token comes past the attention (Abnar & Zuidema, 2020)."""
    return [0.5 * one + 0.5 * np.eye(len(one)) for one in maps]


def rollout_map(trace: Trace, gradient: str = "none") -> Floats:
    """What the last layer gets from every input token along all paths.

    Plain attention is rolled out as R = Ã_L ⋯ Ã_1 with Ã = ½ A + ½ I (Abnar & Zuidema, 2020). With
    gradients R ← R + Ā R from R = I, where Ā is the mean over heads (Chefer et al., 2021); the
    identity it began with is taken away again: it says that a token is itself.
    """
    rolled = np.eye(trace.tokens)
    if gradient == "none":
        for one in with_residual(layer_maps(trace)):
            rolled = one @ rolled
        return rolled
    for one in layer_maps(trace, gradient):
        rolled = rolled + one @ rolled
    return rolled - np.eye(trace.tokens)
