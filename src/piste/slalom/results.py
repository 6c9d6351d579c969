"""What a fit found."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from piste.slalom.joint import JointResult
from piste.slalom.problem import Curvature
from piste.slalom.surrogate import Slalom

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """A fitted SLALOM with the precision of its parameters."""

    slalom: Slalom
    loss: float
    """Mean squared error on the questions it was fitted to."""
    solver: str
    iterations: int
    converged: bool
    ridge: tuple[float, float]
    """Strength on importances and on values, in units of the squared error."""
    active: NDArray[np.bool_]
    """Types that occur in some question; the others keep the prior's value and importance."""
    curvature: Curvature
    slope_weight: float = 0.0
    """ω, how much a squared slope error counts against one of an answer; 0 without slopes."""
    found: JointResult | None = None
    """Where a later fit with more questions may begin, if slopes or a link were fitted."""

    @property
    def values(self) -> Floats:
        """Types, or types × classes."""
        return self.slalom.values

    @property
    def importances(self) -> Floats:
        return self.slalom.importances

    def predict(self, counts: ArrayLike | Any) -> Floats:
        return self.slalom.predict(counts)

    @property
    def errors(self) -> dict[str, Floats]:
        """Standard errors of values and importances, infinite where nothing was asked.

        Exact where the fit was by factors; beyond some 600 types, from samples of the covariance.
        """
        classes = 1 if self.values.ndim == 1 else self.values.shape[1]
        count = int(self.active.sum())
        values = np.full((len(self.active), classes), np.inf)
        importances = np.full(len(self.active), np.inf)
        for column in range(classes):
            moves = self.curvature.directions(column, sys.maxsize)
            below = len(moves) // 2
            values[self.active, column] = np.linalg.norm(moves[below : below + count], axis=1)
            centred = moves[:count] - moves[:count].mean(axis=0)
            importances[self.active] = np.linalg.norm(centred, axis=1)
        return {
            "value": values[:, 0] if self.values.ndim == 1 else values,
            "importance": importances,
        }


def assemble(
    s: Floats, weight: float, linear: Floats, active: Any, flat: bool, background: bool
) -> Slalom:
    """Back to all types: those that occur in no question get the mean value and weight."""
    count = int(active.sum())
    importances = np.zeros(len(active))
    importances[active] = s
    values = np.tile(linear[:count].mean(axis=0), (len(active), 1))
    values[active] = linear[:count]
    base = np.zeros(linear.shape[1])
    if background and weight > 0:
        base = linear[-1] / weight
    if flat:
        return Slalom(values[:, 0], importances, weight, float(base[0]))
    return Slalom(values, importances, weight, base)
