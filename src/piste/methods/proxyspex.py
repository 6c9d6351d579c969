"""ProxySPEX: sparse interactions read off boosted trees (Butler et al., 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from piste.errors import PisteError, need
from piste.methods.interactions import (
    InteractionMethod,
    Numbers,
    Terms,
    every_subset,
    signs_of,
    terms_of,
    transform,
)
from piste.types import Floats

_LEAST = 10


@dataclass(frozen=True)
class ProxySpexMethod(InteractionMethod):
    """Boosted trees are fitted to uniform removals, and their largest Fourier terms refitted.

        F(S) = Σ_T c_T (−1)^|T∩S|

    Trees (LightGBM), their choice by cross-validation and the ridge regression are those of
    shapiq. If all subsets can be asked, the transform is exact and nothing is searched.

    >>> import piste
    >>> e = piste.explain("piste:reviews", "A wonderful film.", method="proxyspex")
    >>> e.units[int(e.score().argmax())].text
    'wonderful'
    """

    name: ClassVar[str] = "proxyspex"
    basis: ClassVar[Literal["products", "signs"]] = "signs"
    about: ClassVar[str] = "sparse interactions of boosted trees"
    paper: ClassVar[str] = "Butler et al., NeurIPS 2025"

    def find(self, ask: Numbers, units: int, budget: int, seed: int) -> Terms:
        if 2**units <= budget + 2:
            return transform(ask(every_subset(units)))
        if budget < _LEAST:
            raise PisteError(
                f"proxyspex: expected at least {_LEAST} questions beside the held-out ones, got "
                f"{budget}: raise samples."
            )
        need("lightgbm", self.extra, "The method 'proxyspex'")
        from shapiq.approximator import ProxySPEX

        seen: list[Floats] = []

        def answer(masks: np.ndarray) -> Floats:
            seen.append(ask(masks))
            return seen[-1]

        search = ProxySPEX(n=units, random_state=seed)
        try:
            # The library counts the questions for all units and for none, which are known.
            return signs_of(terms_of(search.approximate(budget + 2, answer)))
        except IndexError:  # it can't cope with trees that found nothing to split
            return {(): float(np.mean(seen[-1]))}
