"""Faith-Banzhaf interactions of order 2 (Tsai et al., 2023), by the library shapiq."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from piste.methods.interactions import PairMethod


@dataclass(frozen=True)
class FaithBanzhafMethod(PairMethod):
    """The best polynomial of units and pairs if every subset counts alike.

        min Σ_S (f(S) − F(S))²,  F(S) = a + Σ_{i∈S} a_i + Σ_{{i,j}⊆S} a_ij

    estimated from removals that keep every unit with probability 1/2.

    >>> import piste
    >>> e = piste.explain("piste:reviews", "A wonderful film.", method="faith_banzhaf")
    >>> e.units[int(e.score().argmax())].text
    'wonderful'
    """

    name: ClassVar[str] = "faith_banzhaf"
    about: ClassVar[str] = "the best polynomial of units and pairs over all subsets"
    paper: ClassVar[str] = "Tsai et al., JMLR 2023"

    def approximator(self, units: int, seed: int) -> Any:
        from shapiq.approximator import RegressionFBII

        return RegressionFBII(n=units, max_order=2, random_state=seed)
