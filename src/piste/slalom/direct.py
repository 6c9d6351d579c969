"""Exact linear algebra on types × types matrices, for up to a thousand types or so.

All that is needed are three weighted Gram matrices of the counts: G = AᵀA, H = Aᵀ diag(F) A and
K = Aᵀ diag(F²) A. With J = A V − diag(F) A, R = (G + Λ)⁻¹ and X = Λ V + H, the importances' Schur
complement is

    JᵀJ − JᵀA R AᵀJ = K + V Λ V − Xᵀ R X,   and   R AᵀJ = V − R X.

A common shift of V and F changes neither, so F is taken from its minimum: then all weights are ≥ 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import blas, lapack

from piste.slalom.problem import Floats, Point, Problem, Strengths

_TINY = 1e-13


class DirectPoint(Point):
    """A point with its Gram matrices."""

    @cached_property
    def gram(self) -> Floats:
        return self._grams(self.inverse[None, :] ** 2)[0]

    def by_fitted(self, exact: bool) -> tuple[Floats, Floats, Floats]:
        """The shift, and H and K of every dimension (each dimensions × columns × columns).

        ``exact`` adds the second derivatives, which only change the weights: F to F − r in H and
        F² to F² − 2 r F in K.
        """
        more = np.maximum(2 * self.residual, 0.0) * exact
        shift = (self.fitted - more).min(axis=0)
        heights, residual = (self.fitted - shift).T, self.residual.T * exact
        weights = np.concatenate([heights - residual, heights * (heights - 2 * residual)])
        grams = self._grams(np.maximum(weights, 0.0) * self.inverse**2)
        return shift, grams[: len(heights)], grams[len(heights) :]

    def _grams(self, weights: Floats) -> Floats:
        problem = self.problem
        grams = problem.counts.grams(weights)
        if problem.background:
            types = problem.types
            bordered = np.empty((len(weights), types + 1, types + 1))
            bordered[:, :types, :types] = grams
            border = problem.counts.transposed_times(weights.T).T
            bordered[:, types, :types] = bordered[:, :types, types] = border
            bordered[:, types, types] = weights.sum(axis=1)
            grams = bordered
        grams *= self.mass[:, None]
        grams *= self.mass
        return grams


class DirectSolver:
    """Factorises what it solves."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def point(
        self, s: Floats, weight: float, ridge: Strengths, centre: Floats, guess: Floats | None
    ) -> DirectPoint:
        """The point with these importances and its best values; no guess is needed."""
        point = DirectPoint(self.problem, s, weight)
        penalty = self.problem.penalty(ridge[1])
        right = point.design_transposed(self.problem.outputs)
        right[: len(s)] += ridge[1] * centre
        factor, _ = _factor(point.gram, penalty)
        point.set_values(_solve(factor, right))
        return point

    def with_ridge(self, point: Point, ridge: Strengths, centre: Floats) -> DirectPoint:
        """The same importances with the values another ridge gives them."""
        assert isinstance(point, DirectPoint)
        other = DirectPoint(self.problem, point.s, point.weight)
        other.gram = point.gram
        factor, _ = _factor(point.gram, self.problem.penalty(ridge[1]))
        apart = point.linear.copy()
        apart[: self.problem.types] -= centre
        apart[self.problem.types :] = 0.0
        slope = point.gradients[1] - ridge[1] * apart
        other.set_values(point.linear + _solve(factor, slope))
        return other

    def system(self, point: Point, ridge: Strengths) -> DirectSystem:
        """The normal equations of F made linear at the point."""
        assert isinstance(point, DirectPoint)
        return DirectSystem(point, ridge)


class DirectSystem:
    """Normal equations at a point under a ridge."""

    def __init__(self, point: DirectPoint, ridge: Strengths) -> None:
        self.point, self.ridge = point, ridge
        self.problem = problem = point.problem
        self.linear, jitter = _factor(point.gram, problem.penalty(ridge[1]))
        self.penalty = problem.penalty(ridge[1]) + jitter
        self.slope = point.gradients[0].copy()
        self.slope[: problem.types] -= ridge[0] * point.s

    @cached_property
    def _gauss(self) -> tuple[Floats, Floats]:
        return self._eliminate(exact=False)

    @property
    def schur(self) -> Floats:
        """The importances' Schur complement without second derivatives."""
        return self._gauss[0]

    @property
    def coupling(self) -> Floats:
        """How values follow the importances, negated: dimensions × columns × columns."""
        return self._gauss[1]

    def _eliminate(self, exact: bool) -> tuple[Floats, Floats]:
        """The importances' Schur complement, and how values follow them (negated).

        With ``exact`` second derivatives as well, which makes it Newton's and not Gauss's; then
        only the former is wanted.
        """
        point, problem, penalty = self.point, self.problem, self.penalty
        shift, by_height, by_square = point.by_fitted(exact)
        levels = point.levels - shift
        size, diagonal = problem.columns, np.arange(problem.columns)
        bend = np.zeros((size, problem.dimensions))
        schur = by_square.sum(axis=0)
        schur[diagonal, diagonal] += penalty * (levels**2).sum(axis=1)
        schur[diagonal, diagonal] += problem.penalty(self.ridge[0])
        if exact:
            by_importance, below = point.gradients
            bend[: problem.types] = below[: problem.types]
            schur[diagonal, diagonal] += 2 * (levels * bend).sum(axis=1)
            types = diagonal[: problem.types]
            schur[types, types] -= by_importance[: problem.types]
        coupling = np.empty((0 if exact else problem.dimensions, size, size))
        for k, height in enumerate(by_height):
            x = height.T.copy(order="F")
            x[diagonal, diagonal] += penalty * levels[:, k] + bend[:, k]
            y = blas.dtrsm(1.0, self.linear, x, lower=1)
            schur -= y.T @ y
            if exact:
                continue
            coupling[k] = -blas.dtrsm(1.0, self.linear, y, lower=1, trans_a=1)
            coupling[k, diagonal, diagonal] += levels[:, k]
        # The common scale of all weights changes nothing: pin it, so that the inverse exists.
        gauge = point.gauge
        mean = max(float(np.trace(schur)) / size, 1e-300)
        schur += np.outer(mean / float(gauge @ gauge) * gauge, gauge)
        return schur, coupling

    def step(self, damping: float) -> Floats:
        """Levenberg–Marquardt step of importances and background weight."""
        diagonal = np.diag(self.schur)
        floor = _TINY * max(float(diagonal.sum()), 1e-30)
        more = damping * np.maximum(diagonal, floor) + floor
        matrix = self.schur + np.diag(more)
        return self._bounded(matrix, _factor(matrix, np.zeros(len(matrix)))[0])

    def newton_step(self) -> Floats | None:
        """The undamped step with second derivatives, if they bend upwards here."""
        schur, _ = self._eliminate(exact=True)
        factor, info = lapack.dpotrf(schur.T, lower=1, clean=1)
        return None if info else self._bounded(schur, factor)

    def _bounded(self, matrix: Floats, factor: Floats) -> Floats:
        """The step, or the best one that leaves the background's weight at 0 and not below."""
        step = _solve(factor, self.slope[:, None])[:, 0]
        if not self.problem.background or self.point.weight + step[-1] >= 0:
            return step
        last = -self.point.weight
        right = self.slope[:-1] - last * matrix[:-1, -1]
        # A factor's upper left corner is the factor of the corner.
        return np.append(_solve(np.asfortranarray(factor[:-1, :-1]), right[:, None])[:, 0], last)

    def linear_step(self, step: Floats) -> Floats:
        """How the values follow a step: columns × dimensions."""
        return -(self.coupling @ step).T

    @cached_property
    def reduced(self) -> Floats:
        """Lower Cholesky factor of the Schur complement."""
        return _factor(self.schur, np.zeros(len(self.schur)))[0]

    def traces(self) -> Strengths:
        """Traces of the covariance (at noise 1) over the importances and over the values."""
        types = self.problem.types
        inverse_p, inverse_q = _inverse(self.reduced), _inverse(self.linear)
        trace_s = float((inverse_p[:, :types] ** 2).sum())
        trace_v = self.problem.dimensions * float((inverse_q[:, :types] ** 2).sum())
        with np.errstate(over="ignore"):  # of one word alone nothing is known: infinite is right
            for follow in self.coupling:
                moved = blas.dtrmm(1.0, inverse_p, follow[:types].T, lower=1)
                trace_v += float((moved**2).sum())
        return trace_s, trace_v

    def curvature(self, noise: float, basis: Floats) -> DirectCurvature:
        return DirectCurvature(self.linear, self.reduced, self.coupling, noise, basis)


@dataclass(frozen=True)
class DirectCurvature:
    """The factors at the solution; all directions of the covariance follow from them."""

    linear: Floats
    """Lower Cholesky factor of G + Λ."""
    reduced: Floats
    """Lower Cholesky factor of the importances' Schur complement."""
    coupling: Floats
    """R AᵀJ, dimensions × linear × nonlinear: how values follow the importances, negated."""
    noise: float
    """Residual variance σ²."""
    basis: Floats
    """Dimensions × classes: how the fitted dimensions make up the classes."""

    @cached_property
    def _inverses(self) -> tuple[Floats, Floats]:
        return _inverse(self.reduced).T, _inverse(self.linear).T

    def directions(self, class_: int, most: int) -> Floats:
        """As :class:`Curvature` says; samples are exact in expectation."""
        size = len(self.linear)
        nonlinear, linear = self._inverses
        own = float(np.linalg.norm(self.basis[:, class_]))
        follow = np.tensordot(self.basis[:, class_], self.coupling, 1)
        if 2 * size <= most:
            factor = np.zeros((2 * size, 2 * size))
            factor[:size, :size] = nonlinear
            factor[size:, :size] = -(follow @ nonlinear)
            factor[size:, size:] = own * linear
        else:
            draws = np.random.default_rng(0).standard_normal((2 * size, most)) / np.sqrt(most)
            top = nonlinear @ draws[:size]
            factor = np.vstack([top, own * (linear @ draws[size:]) - follow @ top])
        factor *= np.sqrt(self.noise)
        return factor

    def background_error(self) -> float:
        """Standard error of the background's weight."""
        last = np.zeros((len(self.reduced), 1))
        last[-1] = 1.0
        return float(np.sqrt(self.noise) * np.linalg.norm(_half(self.reduced, last)))


def _factor(matrix: Floats, diagonal: Floats) -> tuple[Floats, float]:
    """Cholesky factor of matrix + diag, and what rounding made necessary to add to the diagonal."""
    places = np.arange(len(matrix))
    whole = matrix.T.copy(order="F")
    whole[places, places] += diagonal
    size = max(float(np.abs(whole[places, places]).max()), 1e-300)
    for jitter in (0.0, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7):
        tried = whole.copy(order="F")
        tried[places, places] += jitter * size
        factor, info = lapack.dpotrf(tried, lower=1, clean=1, overwrite_a=1)
        if info == 0:
            return factor, jitter * size
    fallback = np.sqrt(np.abs(whole[places, places]) + size)
    return np.asfortranarray(np.diag(fallback)), size


def _half(factor: Floats, right: Floats) -> Floats:
    return blas.dtrsm(1.0, factor, right, lower=1)


def _solve(factor: Floats, right: Floats) -> Floats:
    return blas.dtrsm(1.0, factor, _half(factor, right), lower=1, trans_a=1)


def _inverse(factor: Floats) -> Floats:
    return lapack.dtrtri(factor, lower=1)[0]
