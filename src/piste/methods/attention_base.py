"""What methods that read attention share: one traced pass, its matrix, tokens put to units.

The attention of a whole model is one matrix, tokens × tokens: rows are queries, columns keys.
``gradient`` says what every head's weights A are multiplied by before heads are averaged: nothing
("none"), the positive part of the explained number's derivative with respect to them ("relu"), or
the derivative itself ("signed").
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch

from piste.classifiers.introspection.gradients import GradientAccess
from piste.classifiers.introspection.tracing import Layer, Trace, traces
from piste.methods.additive import AdditiveScores, WhiteBoxMethod
from piste.methods.base import Task
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


PerUnit: TypeAlias = tuple[Floats, dict[str, Any]]


@dataclass(frozen=True)
class AttentionMethod(WhiteBoxMethod):
    """One score per unit from the attention weights of one pass, and their gradients perhaps.

    Without gradients nothing depends on the class: then explaining all of them gives one score
    per unit, not one for each class.
    """

    score: ClassVar[str] = "sensitivity"
    needs: ClassVar[str] = "attention"

    @property
    def by_class(self) -> bool:
        """Whether scores depend on the explained class."""
        return False

    @abstractmethod
    def weigh(self, trace: Trace) -> PerUnit:
        """One number per unit, and what else the result should say."""

    def trace(self, task: Task) -> None:
        with torch.inference_mode(False):  # tensors made in that mode never get gradients
            super().trace(task)

    def compute_scores(self, access: GradientAccess, task: Task) -> AdditiveScores:
        several = self.by_class and task.target.kind == "all"
        found = traces(access)
        columns, notes = zip(
            *(self.weigh(one) for one in (found if several else [next(found)])), strict=True
        )
        scores = np.stack(columns, axis=1) if several else columns[0]
        return self.around_whole_input(task, scores, **notes[0])
