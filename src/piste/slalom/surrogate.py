"""The SLALOM itself: a softmax-weighted mean of values, with something always present."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from piste.slalom.link import Saturation

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Slalom:
    """F(c) = (w_0 v_0 + Σ_τ c_τ e^{s_τ} v_τ) / (w_0 + Σ_τ c_τ e^{s_τ}), eq. 4 with a background.

    ``values`` are flat for one explained number, or types × classes with importances shared by
    all classes (C.1). ``weight`` w_0 ≥ 0 and ``base`` v_0 stand for what every sequence contains
    ([CLS] and its like); w_0 = 0 is the paper's model. F of nothing at all is ``base``. With a
    ``link`` all this is evidence, and the prediction is what saturation leaves of it.

    >>> Slalom(np.array([1.0, -1.0]), np.array([0.0, 0.0])).predict([[1, 1], [2, 0]]).tolist()
    [0.0, 1.0]
    """

    values: Floats
    importances: Floats
    weight: float = 0.0
    base: Floats | float = 0.0
    link: Saturation | None = None

    def predict(self, counts: ArrayLike | Any) -> Floats:
        """The expected answer to every row of counts: questions, or questions × classes.

        Counts (questions × types) may be dense or any scipy.sparse, which is never made dense.
        """
        evidence = self.evidence(counts)
        return evidence if self.link is None else self.link(evidence)

    def evidence(self, counts: ArrayLike | Any) -> Floats:
        """F itself, without saturation."""
        matrix: Any = counts
        if not sparse.issparse(counts):
            matrix = np.atleast_2d(np.asarray(counts, dtype=np.float64))
        shift = max(float(np.max(self.importances, initial=-np.inf)), _log(self.weight))
        shift = shift if np.isfinite(shift) else 0.0
        mass = np.exp(self.importances - shift)
        weight = self.weight * np.exp(-shift)
        base = np.asarray(self.base, dtype=np.float64)
        total = matrix @ mass + weight
        safe = np.where(total > 0, total, 1.0)
        if self.values.ndim == 1:
            top = matrix @ (mass * self.values) + weight * base
            return np.where(total > 0, top / safe, base)
        top = matrix @ (mass[:, None] * self.values) + weight * base
        return np.where(total[:, None] > 0, top / safe[:, None], base)


def _log(weight: float) -> float:
    return float(np.log(weight)) if weight > 0 else -np.inf
