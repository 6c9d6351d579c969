"""Attention rolled out over the layers, plainly or weighted by gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from piste.classifiers.introspection.tracing import Trace
from piste.methods.attention_base import AttentionMethod, PerUnit, rollout_map


@dataclass(frozen=True)
class AttentionRollout(AttentionMethod):
    """R_rj for every token j, summed over the tokens of a unit, with R = Ã_L ⋯ Ã_1.

    Ã_l = ½ A_l + ½ I is the mean over the heads of layer l, half of it what comes past the
    attention, and r the token that the head of the model reads (the mean, if it reads several).
    R_rj is the share of paths through all layers that lead from r to the input j.

    >>> import piste
    >>> e = piste.explain(piste.load("piste:reviews"), "A fine film.", method="attention_rollout")
    >>> bool(0 < e.scores["sensitivity"].sum() < 1)  # the rest comes from special tokens
    True
    """

    name: ClassVar[str] = "attention_rollout"
    about: ClassVar[str] = "attention multiplied through all layers (no direction)"
    paper: ClassVar[str] = "Abnar & Zuidema, ACL 2020"

    def weigh(self, trace: Trace) -> PerUnit:
        return trace.per_unit(trace.read(rollout_map(trace))), {}


@dataclass(frozen=True)
class GradientRollout(AttentionMethod):
    """(R − I)_rj for every token j, summed over the tokens of a unit; it depends on the class.

    R = I, then for every layer R ← R + Ā R with Ā = mean over heads of ReLU(∂f/∂A ⊙ A), f being the
    explained number and r the token that the head of the model reads. Without the identity, so that
    the last token of a decoder is not first for being read.

    >>> import piste
    >>> e = piste.explain(piste.load("piste:reviews"), "A fine film.", method="gradient_rollout")
    >>> e.units[int(e.scores["sensitivity"].argmax())].text
    'fine'
    """

    name: ClassVar[str] = "gradient_rollout"
    about: ClassVar[str] = "attention times its gradient through all layers (no direction)"
    paper: ClassVar[str] = "Chefer et al., ICCV 2021"

    @property
    def by_class(self) -> bool:
        return True

    def weigh(self, trace: Trace) -> PerUnit:
        return trace.per_unit(trace.read(rollout_map(trace, "relu"))), {}
