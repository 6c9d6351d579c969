"""Attention itself: how much of it a unit receives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from piste.classifiers.introspection.tracing import Trace
from piste.methods.attention_base import LAYERS, AttentionMethod, PerUnit, mean_map
from piste.validation import choose

QUERIES = ("all", "reader")


@dataclass(frozen=True)
class Attention(AttentionMethod):
    """mean_i A_ij for every token j, summed over the tokens of a unit.

    A is the mean over heads and ``layers`` ("mean": all of them; "last"), i runs over all tokens
    (``queries="all"``) or over those that the head of the model reads ("reader"): what the
    classification token looks at, in a decoder the last one.

    It says where the model looks, not what it makes of it: nothing here depends on the class.

    >>> import piste
    >>> e = piste.explain(piste.load("piste:reviews"), "A wonderful film.", method="attention")
    >>> bool(0 < e.scores["sensitivity"].sum() < 1)  # the rest goes to special tokens
    True
    """

    layers: str = "mean"
    queries: str = "all"

    name: ClassVar[str] = "attention"
    about: ClassVar[str] = "attention that the unit receives (no direction)"
    paper: ClassVar[str] = "Bahdanau et al., ICLR 2015"

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("layers", self.layers, LAYERS)
        choose("queries", self.queries, QUERIES)

    def weigh(self, trace: Trace) -> PerUnit:
        matrix = mean_map(trace, layers=self.layers)
        row = trace.read(matrix) if self.queries == "reader" else matrix.mean(axis=0)
        return trace.per_unit(row), {}
