"""The least-squares problem of a SLALOM and a point in it.

Given importances, F is linear in the values: F = A q with A_mi = c_mi e^{s_i} / D_m, and 1/D_m for
the background's mass. The derivatives are ∂F/∂s_i = A_i (v_i − F) and ∂F/∂w_0 = −F/D: with the
background as one more column whose "value" is 0, both are J = A diag(v) − diag(F) A. Neither A nor
J is ever written down; products with them are products with the counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from piste.slalom.counts import Counts

Floats = NDArray[np.float64]
Strengths = tuple[float, float]
"""Ridge on the importances and on the values, in units of the squared error."""


@dataclass(frozen=True)
class Problem:
    """What is fitted: counts (questions × types) and outputs (questions × dimensions)."""

    counts: Counts
    outputs: Floats
    background: bool
    variance: float  # of the outputs, summed over the dimensions
    some_empty: bool  # whether a question has no unit at all

    @property
    def types(self) -> int:
        return self.counts.shape[1]

    @property
    def dimensions(self) -> int:
        return self.outputs.shape[1]

    @property
    def columns(self) -> int:
        """Types and the background."""
        return self.types + int(self.background)

    @cached_property
    def size(self) -> float:
        """Sum of the squared outputs, against which an error is rounding or not."""
        return max(float((self.outputs**2).sum()), 1e-300)

    def penalty(self, strength: float) -> Floats:
        """A ridge's diagonal: on every type, not on the background."""
        diagonal = np.full(self.columns, strength)
        diagonal[self.types :] = 0.0
        return diagonal


class Point:
    """Everything that depends on one choice of importances and values."""

    def __init__(self, problem: Problem, s: Floats, weight: float) -> None:
        self.problem, self.s, self.weight = problem, s, weight
        self.mass = np.append(np.exp(s), np.ones(int(problem.background)))
        self.inverse = 1.0 / (problem.counts.times(self.mass[: problem.types]) + weight)

    def set_values(self, linear: Floats) -> None:
        """Values and, in the last row, the background's mass: columns × dimensions."""
        self.linear = linear
        self.fitted = self.design_times(linear)
        self.residual = self.problem.outputs - self.fitted
        self.rss = float((self.residual**2).sum())

    def objective(self, ridge: Strengths, centre: Floats) -> float:
        spread = float(((self.linear[: self.problem.types] - centre) ** 2).sum())
        return self.rss + ridge[0] * float(self.s @ self.s) + ridge[1] * spread

    @cached_property
    def levels(self) -> Floats:
        """What stands for the values in J: those of the types, 0 for the background."""
        levels = self.linear.copy()
        levels[self.problem.types :] = 0.0
        return levels

    @cached_property
    def gauge(self) -> Floats:
        """The direction that multiplies all weights by a common factor and changes no answer."""
        return np.append(np.ones(len(self.s)), [self.weight] * int(self.problem.background))

    def design_times(self, right: Floats) -> Floats:
        """A @ right, for columns × any number."""
        types = self.problem.types
        product = self.problem.counts.times(self.mass[:types, None] * right[:types])
        return (product + right[types:].sum(axis=0)) * self.inverse[:, None]

    def design_transposed(self, right: Floats) -> Floats:
        """Aᵀ @ right, for questions × any number."""
        shares = right * self.inverse[:, None]
        product = self.problem.counts.transposed_times(shares)
        product = self.mass[: self.problem.types, None] * product
        if not self.problem.background:
            return product
        return np.vstack([product, shares.sum(axis=0)])

    @cached_property
    def gradients(self) -> tuple[Floats, Floats]:
        """Jᵀ r, summed over the dimensions, and Aᵀ r, columns × dimensions."""
        both = np.hstack([self.residual, self.fitted * self.residual])
        below, by_fitted = np.hsplit(self.design_transposed(both), 2)
        return (self.levels * below - by_fitted).sum(axis=1), below

    def squared_error_after(self, step: Floats, linear_step: Floats) -> float:
        """The squared error after a step, where F were as linear as it is here."""
        dimensions = self.problem.dimensions
        moved = self.levels * step[:, None] + linear_step
        ahead = self.design_times(np.hstack([moved, step[:, None]]))
        change = ahead[:, :dimensions] - self.fitted * ahead[:, dimensions:]
        return float(((self.residual - change) ** 2).sum())


class System(Protocol):
    """The normal equations of F made linear at a point whose values are the best."""

    def step(self, damping: float) -> Floats:
        """Levenberg–Marquardt step of importances and background weight."""

    def newton_step(self) -> Floats | None:
        """The step with second derivatives too, None where they are no help."""

    def linear_step(self, step: Floats) -> Floats:
        """How the values follow a step: columns × dimensions."""

    def traces(self) -> Strengths:
        """Traces of the covariance (at noise 1) over the importances and over the values."""

    def curvature(self, noise: float, basis: Floats) -> Curvature:
        """What standard errors come from; ``basis`` makes classes of dimensions."""


class Solver(Protocol):
    """A way to do the linear algebra: by factors or by products alone."""

    def point(
        self, s: Floats, weight: float, ridge: Strengths, centre: Floats, guess: Floats | None
    ) -> Point:
        """The point with these importances and its best values."""

    def with_ridge(self, point: Point, ridge: Strengths, centre: Floats) -> Point:
        """The same importances with the values another ridge gives them."""

    def system(self, point: Point, ridge: Strengths) -> System:
        """The normal equations at a point."""


class Curvature(Protocol):
    """The normal equations at a solution, from which every standard error comes."""

    def directions(self, class_: int, most: int) -> Floats:
        """A factor L of the covariance L Lᵀ of (s, w_0, v, u_0) for one class.

        If it would have more than ``most`` columns, they are that many samples.
        """

    def background_error(self) -> float:
        """Standard error of the background's weight."""
