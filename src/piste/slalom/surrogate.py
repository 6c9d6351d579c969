"""The surrogate: units that compete for weight, add up, or stand between the two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from piste.slalom.link import Saturation
from piste.types import Floats


@dataclass(frozen=True)
class Background:
    """What every question contains besides its units, such as [CLS]: e^{s_0} and e_0."""

    importance: float
    evidence: Floats | float


@dataclass(frozen=True)
class Slalom:
    """One family from the paper's SLALOM (words compete) to an additive model (words add up).

    With weights w = e^s and c_i copies of unit i (the background, if any, is one more unit)::

        Z(c) = b + Σ c_i w_i^γ e_i / (Σ c_i w_i)^γ        F(c) = m + k·tanh((Z − m) / k)

    ``mixing`` γ = 1 without background and link is eq. 4, a softmax-weighted mean of the values
    b + e_i. γ = 0 is an additive model. ``evidence`` is flat for one explained number, or types ×
    classes with weights shared by all classes (C.1). Of nothing at all, Z = b.

    >>> Slalom(np.array([1.0, -1.0]), np.zeros(2)).predict([[1, 1], [2, 0]]).tolist()
    [0.0, 1.0]
    >>> Slalom(np.array([1.0, -1.0]), np.zeros(2), mixing=0.0).predict([[1, 1], [2, 0]]).tolist()
    [0.0, 2.0]
    """

    evidence: Floats
    importances: Floats
    mixing: float = 1.0
    base: Floats | float = 0.0
    background: Background | None = None
    link: Saturation | None = None

    def predict(self, counts: ArrayLike | Any, more: Floats | float = 0.0) -> Floats:
        """The expected answer to every row of counts: questions, or questions × classes.

        Counts (questions × types) may be dense or any scipy.sparse, which is never made dense.
        ``more`` is evidence besides that of the units, such as that of pairs.
        """
        total = self.total_evidence(counts) + more
        return total if self.link is None else self.link(total)

    def total_evidence(self, counts: ArrayLike | Any) -> Floats:
        """Z, before saturation."""
        matrix: Any = counts
        if not sparse.issparse(counts):
            matrix = np.atleast_2d(np.asarray(counts, dtype=np.float64))
        shift = float(np.max(self.importances, initial=-np.inf))
        if self.background is not None:
            shift = max(shift, self.background.importance)
        shift = shift if np.isfinite(shift) else 0.0
        logs = self.importances - shift
        weight = matrix @ np.exp(logs)
        parts = np.exp(self.mixing * logs)
        several = self.evidence.ndim == 2
        top = matrix @ ((parts[:, None] if several else parts) * self.evidence)
        if self.background is not None:
            log = self.background.importance - shift
            weight = weight + np.exp(log)
            top = top + np.exp(self.mixing * log) * np.asarray(self.background.evidence)
        share = np.where(weight > 0, weight, 1.0) ** -self.mixing
        return np.asarray(self.base) + top * (share[:, None] if several else share)

    @property
    def values(self) -> Floats:
        """F of every type alone: types, or types × classes."""
        return self.predict(sparse.eye_array(len(self.importances), format="csr"))
