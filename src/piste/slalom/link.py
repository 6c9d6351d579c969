"""Saturation: a model's number can't grow beyond what its last layers let through."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from piste.types import Floats


@dataclass(frozen=True)
class Saturation:
    """h(Z) = m + k tanh((Z − m) / k): the evidence Z near the middle m, never beyond m ± k.

    It is steepest in the middle, where its slope is 1, so values there are what they are without
    it; k → ∞ is no saturation at all.

    >>> Saturation(0.0, 2.0)(np.array([0.1, 50.0])).round(3).tolist()
    [0.1, 2.0]
    """

    middle: float
    reach: float

    def __call__(self, evidence: Floats) -> Floats:
        turned = np.tanh((evidence - self.middle) / self.reach)
        return self.middle + self.reach * turned

    def slope(self, evidence: Floats) -> Floats:
        """h′(Z): how much of a small change gets through."""
        return np.asarray(1.0 - np.tanh((evidence - self.middle) / self.reach) ** 2)

    @property
    def lowest(self) -> float:
        return self.middle - self.reach

    @property
    def highest(self) -> float:
        return self.middle + self.reach
