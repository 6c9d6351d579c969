"""Conjugate gradients instead of factors, for thousands of types and more.

One product with the counts costs as much as they have nonzeros, and a prior on every type keeps
the number of products small: nothing of the size types² or questions² is ever held. Traces are
estimated from a few fixed probes and the covariance by samples; with so many types both are
averages over many and hardly scatter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.linalg import cho_solve

from piste.slalom.conjugate import (
    conjugate_gradients,
    factor_plus_one,
    outer_product,
    squares,
    woodbury_values,
)
from piste.slalom.problem import Floats, Point, Problem, Strengths

_PROBES = 8
_SAMPLES = 64
_FEW_ROWS = 1000  # questions up to which a factor of their number takes less than the products
_FLOOR = 1e-9  # of the mean curvature: a weaker ridge only takes products and changes nothing


class IterativeSolver:
    """Solves by products alone."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def point(
        self, s: Floats, weight: float, ridge: Strengths, centre: Floats, guess: Floats | None
    ) -> Point:
        """The point with these importances and its best values, searched from a guess."""
        point = Point(self.problem, s, weight)
        if guess is None:
            guess = np.zeros((self.problem.columns, self.problem.dimensions))
            guess[: self.problem.types] = centre
        return self._solve_values(point, ridge, centre, guess)

    def with_ridge(self, point: Point, ridge: Strengths, centre: Floats) -> Point:
        """The same importances with the values another ridge gives them."""
        other = Point(self.problem, point.s, point.weight)
        return self._solve_values(other, ridge, centre, point.linear)

    def _solve_values(self, point: Point, ridge: Strengths, centre: Floats, guess: Floats) -> Point:
        point.set_values(guess)
        diagonal = squares(point, np.ones((self.problem.outputs.shape[0], 1)))[:, 0]
        penalty = self.problem.penalty(_at_least(ridge[1], diagonal))[:, None]
        apart = guess.copy()
        apart[: self.problem.types] -= centre
        right = point.design_transposed(point.residual) - penalty * apart

        def times(x: Floats) -> Floats:
            return point.design_transposed(point.design_times(x)) + penalty * x

        if len(point.inverse) <= _FEW_ROWS:
            weak = np.maximum(penalty[:, 0], np.where(penalty[:, 0] > 0, 0.0, 1e-6 * diagonal))
            factor = factor_plus_one(outer_product(point, np.maximum(weak, 1e-300)))
            precondition = woodbury_values(point, weak[:, None], factor)
        else:
            inverse = 1.0 / np.maximum(diagonal[:, None] + penalty, 1e-300)
            precondition = partial(np.multiply, inverse)
        step = conjugate_gradients(times, right, precondition, 1e-5)
        if step is not None:
            point.set_values(guess + step)
        return point

    def system(self, point: Point, ridge: Strengths) -> IterativeSystem:
        """The normal equations of F made linear at the point."""
        return IterativeSystem(point, ridge)


class IterativeSystem:
    """Normal equations of importances and values together, by products.

    Unknowns are stacked: (1 + dimensions) × columns × right-hand sides, importances first.
    """

    def __init__(self, point: Point, ridge: Strengths) -> None:
        self.point, self.problem = point, point.problem
        problem, fitted, levels = self.problem, point.fitted, point.levels
        dimensions, columns = problem.dimensions, problem.columns
        rows = np.hstack([np.ones((len(fitted), 1)), fitted, fitted**2])
        parts = np.split(squares(point, rows), [1, 1 + dimensions], axis=1)
        ones, by_height, by_square = parts
        curved = ((levels**2) * ones - 2 * levels * by_height + by_square).sum(axis=1)
        self.ridge = _at_least(ridge[0], curved), _at_least(ridge[1], ones)
        penalties = [problem.penalty(self.ridge[int(k > 0)]) for k in range(1 + dimensions)]
        self.penalty = np.stack(penalties)[:, :, None]
        self.curved = np.maximum(curved, 1e-300)
        # Value and importance of a rare type can hardly be told apart, so they are preconditioned
        # together: one small block for every type.
        self.blocks = np.zeros((columns, 1 + dimensions, 1 + dimensions))
        self.blocks[:, 0, 0] = self.curved
        self.blocks[:, 0, 1:] = self.blocks[:, 1:, 0] = levels * ones - by_height
        diagonal = np.arange(1, 1 + dimensions)
        self.blocks[:, diagonal, diagonal] = ones
        # The common scale of all weights changes nothing: pin it, so that the inverse exists.
        strength = max(float(curved.mean()) + self.ridge[0], 1e-300)
        self.pin = np.sqrt(strength / float(point.gauge @ point.gauge)) * point.gauge
        self.slope = point.gradients[0].copy()
        self.slope[: problem.types] -= ridge[0] * point.s
        self._length, self._follow = 0.0, np.zeros((columns, dimensions))

    def _forward(self, x: Floats) -> tuple[Floats, Floats]:
        """A (V x_s + x_q), questions × dimensions × right-hand sides, and A x_s, one dimension."""
        moved = self.point.levels.T[:, :, None] * x[0] + x[1:]
        stacked = np.concatenate([moved, x[:1]]).transpose(1, 0, 2).reshape(x.shape[1], -1)
        ahead = self.point.design_times(stacked).reshape(-1, x.shape[0], x.shape[2])
        return ahead[:, :-1], ahead[:, -1:]

    def _backward(self, by_level: Floats, by_fitted: Floats) -> Floats:
        """Σ_k V_k Aᵀ by_level_k − Aᵀ by_fitted_k for importances, Aᵀ by_level for values."""
        rows, dimensions, sides = by_level.shape
        both = np.concatenate([by_level, by_fitted.sum(axis=1, keepdims=True)], axis=1)
        below = self.point.design_transposed(both.reshape(rows, -1))
        below = below.reshape(-1, 1 + dimensions, sides).transpose(1, 0, 2)
        first = (self.point.levels.T[:, :, None] * below[:-1]).sum(axis=0) - below[-1]
        return np.concatenate([first[None], below[:-1]])

    def _times(self, x: Floats) -> Floats:
        """JᵀJ and its like: F as linear as it is here."""
        fitted = self.point.fitted[:, :, None]
        moved, scale = self._forward(x)
        change = moved - fitted * scale
        return self._backward(change, fitted * change)

    def _times_exactly(self, x: Floats) -> Floats:
        """With second derivatives as well."""
        fitted, residual = self.point.fitted[:, :, None], self.point.residual[:, :, None]
        moved, scale = self._forward(x)
        change = moved - fitted * scale
        turned = fitted * change - residual * moved + 2 * residual * fitted * scale
        product = self._backward(change + residual * scale, turned)
        types = self.problem.types
        by_importance, below = self.point.gradients
        bend = below[:types].T[:, :, None]
        product[0, :types] -= by_importance[:types, None] * x[0, :types]
        product[0, :types] -= (bend * x[1:, :types]).sum(axis=0)
        product[1:, :types] -= bend * x[0, :types]
        return product

    def solve(
        self,
        right: Floats,
        precision: float,
        *,
        damping: float = 0.0,
        exactly: bool = False,
        last: float | None = None,
    ) -> Floats | None:
        """The inverse of the (damped) equations times right-hand sides; None if there is none.

        ``last`` holds the background's weight: it takes this step, the others their best.
        """
        penalty = self.penalty.copy()
        penalty[0, :, 0] += damping * self.curved
        operator = self._times_exactly if exactly else self._times
        free = np.ones_like(penalty)

        def times(x: Floats) -> Floats:
            product = operator(x) + penalty * x
            product[0] += np.outer(self.pin, self.pin @ x[0])
            return free * product

        precondition = self._preconditioner(penalty)
        if last is None:
            return conjugate_gradients(times, right, precondition, precision)
        held = np.zeros_like(right)
        held[0, -1] = last
        right = right - times(held)
        free[0, -1] = 0.0
        rest = conjugate_gradients(
            times, free * right, lambda x: free * precondition(free * x), precision
        )
        return None if rest is None else rest + held

    def _preconditioner(self, penalty: Floats) -> Callable[[Floats], Floats]:
        """The inverse of what is nearly the matrix: for few questions nearly all of it."""
        if self.problem.outputs.size <= _FEW_ROWS:
            return self._woodbury(penalty)
        blocks = self.blocks.copy()
        diagonal = np.arange(blocks.shape[1])
        blocks[:, diagonal, diagonal] *= 1 + 1e-9
        blocks[:, diagonal, diagonal] += penalty[:, :, 0].T
        blocks[:, 0, 0] += self.pin**2
        inverse = np.linalg.inv(blocks).transpose(1, 2, 0)[:, :, :, None]
        return lambda x: (inverse * x).sum(axis=1)

    def _woodbury(self, penalty: Floats) -> Callable[[Floats], Floats]:
        """By one factor of the size of the questions, however many types there are."""
        point, fitted = self.point, self.point.fitted[:, :, None]
        rows, dimensions = self.problem.outputs.shape
        diagonal = np.arange(1 + dimensions)
        weak = np.where(
            penalty > 0, penalty, 1e-6 * self.blocks[:, diagonal, diagonal].T[:, :, None]
        )
        weak = np.maximum(weak, 1e-300)
        whole = outer_product(point, weak[0, :, 0], bent=True)
        by_values = outer_product(point, weak[1, :, 0])
        for k in range(dimensions):
            whole[k * rows : (k + 1) * rows, k * rows : (k + 1) * rows] += by_values
        factor = factor_plus_one(whole)

        def precondition(x: Floats) -> Floats:
            eased = x / weak
            moved, scale = self._forward(eased)
            change = (moved - fitted * scale).transpose(1, 0, 2).reshape(rows * dimensions, -1)
            change = cho_solve(factor, change, check_finite=False)
            change = change.reshape(dimensions, rows, -1).transpose(1, 0, 2)
            return eased - self._backward(change, fitted * change) / weak

        return precondition

    def _stepped(self, damping: float, exactly: bool) -> Floats | None:
        right = np.zeros((1 + self.problem.dimensions, self.problem.columns, 1))
        right[0, :, 0] = self.slope
        moved = self.solve(right, 1e-2, damping=damping, exactly=exactly)
        weight = self.point.weight
        if moved is not None and self.problem.background and weight + moved[0, -1, 0] < 0:
            moved = self.solve(right, 1e-2, damping=damping, exactly=exactly, last=-weight)
        if moved is None:
            return None
        self._length, self._follow = float(np.linalg.norm(moved[0])), moved[1:, :, 0].T
        return moved[0, :, 0]

    def step(self, damping: float) -> Floats:
        """Levenberg–Marquardt step of importances and background weight."""
        step = self._stepped(damping, exactly=False)
        return np.zeros(self.problem.columns) if step is None else step

    def newton_step(self) -> Floats | None:
        """The undamped step with second derivatives, if they bend upwards here."""
        return self._stepped(0.0, exactly=True)

    def linear_step(self, step: Floats) -> Floats:
        """How the values follow the last step, or a shortened one."""
        share = float(np.linalg.norm(step)) / max(self._length, 1e-300)
        return share * self._follow

    def traces(self) -> Strengths:
        """Estimated traces of the covariance (at noise 1) over importances and over values."""
        types, rng = self.problem.types, np.random.default_rng(0)
        shape = (1 + self.problem.dimensions, self.problem.columns, _PROBES)
        probes = rng.choice([-1.0, 1.0], shape)
        probes[:, types:] = 0.0
        hit = (probes * self._inverse_times(probes, 1e-2)).sum(axis=(1, 2)) / _PROBES
        return float(hit[0]), float(hit[1:].sum())

    def _inverse_times(self, right: Floats, precision: float) -> Floats:
        found = self.solve(right, precision)
        return np.zeros_like(right) if found is None else found

    def curvature(self, noise: float, basis: Floats) -> IterativeCurvature:
        """What standard errors come from."""
        return IterativeCurvature(self, noise, basis)

    def samples(self, count: int) -> Floats:
        """Draws from the covariance at noise 1: what perturbed data and priors would give."""
        rng, fitted = np.random.default_rng(0), self.point.fitted[:, :, None]
        shape = (1 + self.problem.dimensions, self.problem.columns, count)
        noise = rng.standard_normal((*self.problem.outputs.shape, count))
        right = self._backward(noise, fitted * noise)
        right += np.sqrt(self.penalty) * rng.standard_normal(shape)
        right[0] += np.outer(self.pin, rng.standard_normal(count))
        return self._inverse_times(right, 1e-2)

    def variance_of_last(self) -> float:
        """Variance (at noise 1) of the last nonlinear parameter, the background's weight."""
        right = np.zeros((1 + self.problem.dimensions, self.problem.columns, 1))
        right[0, -1] = 1.0
        return max(float(self._inverse_times(right, 1e-4)[0, -1, 0]), 0.0)


@dataclass(frozen=True)
class IterativeCurvature:
    """The normal equations at the solution; directions are samples of the covariance."""

    system: IterativeSystem
    noise: float
    basis: Floats

    @cached_property
    def _samples(self) -> Floats:
        samples = self.system.samples(_SAMPLES)
        return samples * np.sqrt(self.noise / _SAMPLES)

    def directions(self, class_: int, most: int) -> Floats:
        """As :class:`Curvature` says: always samples, so errors are good to a tenth or so."""
        linear = np.tensordot(self.basis[:, class_], self._samples[1:], 1)
        return np.vstack([self._samples[0], linear])

    def background_error(self) -> float:
        """Standard error of the background's weight."""
        return float(np.sqrt(self.noise * self.system.variance_of_last()))


def _at_least(strength: float, diagonal: Floats) -> float:
    return max(strength, _FLOOR * float(diagonal.mean()))
