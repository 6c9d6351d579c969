"""Grad-SAM: attention where more of it would raise the answer (Barkan et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from piste.classifiers.introspection.tracing import Trace
from piste.errors import PisteError
from piste.methods.attention_base import AttentionMethod, PerUnit, mean_map


@dataclass(frozen=True)
class GradSam(AttentionMethod):
    """Σ_j A_ij ReLU(∂f/∂A_ij), the mean over layers and heads, summed over a unit's tokens i.

    The published score of token i is over the row of i: what i gives to others, special tokens
    among them. With ``received=True`` it is over the column instead, what i receives. Either way
    it depends on the class.

    >>> import piste
    >>> e = piste.explain(piste.load("piste:reviews"), "A fine film.", method="grad_sam")
    >>> bool((e.scores["sensitivity"] >= 0).all())
    True
    """

    received: bool = False

    name: ClassVar[str] = "grad_sam"
    about: ClassVar[str] = "attention times its positive gradient, by token (no direction)"
    paper: ClassVar[str] = "Barkan et al., CIKM 2021"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.received, bool):
            raise PisteError(f"received: expected True or False, got {self.received!r}.")

    @property
    def by_class(self) -> bool:
        return True

    def weigh(self, trace: Trace) -> PerUnit:
        matrix = mean_map(trace, "relu")
        return trace.per_unit(matrix.sum(axis=0 if self.received else 1)), {}
