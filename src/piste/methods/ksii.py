"""k-SII: Shapley values and interactions of pairs (Bordt & von Luxburg, 2023), by shapiq."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from piste.methods.interactions import PairMethod


@dataclass(frozen=True)
class KSiiMethod(PairMethod):
    """n-Shapley values of order 2, by KernelSHAP-IQ (Fumagalli et al., 2024).

    A pair's value φ_ij is its Shapley interaction index, a unit's is its Shapley value less half
    of its pairs, so that all values and f(none) add up to f(all):

        F(S) = f(none) + Σ_{i∈S} φ_i + Σ_{{i,j}⊆S} φ_ij

    >>> import piste
    >>> e = piste.explain("piste:reviews", "A wonderful film.", method="ksii")
    >>> e.units[int(e.score().argmax())].text
    'wonderful'
    """

    name: ClassVar[str] = "ksii"
    about: ClassVar[str] = "Shapley values and interactions of pairs (k-SII)"
    paper: ClassVar[str] = "Bordt & von Luxburg, AISTATS 2023"

    def approximator(self, units: int, seed: int) -> Any:
        from shapiq.approximator import KernelSHAPIQ

        return KernelSHAPIQ(n=units, max_order=2, index="k-SII", random_state=seed)
