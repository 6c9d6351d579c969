"""Levenberg–Marquardt on the importances, with the values eliminated exactly.

Given importances, F is linear in the values: F = A q with A_mi = c_mi e^{s_i} / D_m (and 1/D_m for
the background's mass). So values are solved for, and only the importances are stepped, with
∂F/∂s_i = A_i (v_i − F) and ∂F/∂w_0 = −F/D. The background enters by its weight w_0 ≥ 0 and mass
u_0 = w_0 v_0, not by their logarithm, so that the paper's model (w_0 = u_0 = 0) is a point that is
reached and not a limit.

The ridge λ_s Σ s² + λ_v Σ (v − v̄)² is a Gaussian prior; its two strengths and the noise are found
by maximising the marginal likelihood (MacKay's fixed point), so few questions lean on the prior
and many do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

Floats = NDArray[np.float64]

_TINY = 1e-13
# Where a model is nearly additive, only v·e^s is determined: values could grow without bound while
# importances fall. So the values' spread is estimated as if this many more units had values of the
# size of the model's own outputs; it costs a point of R² at most and keeps both scores readable.
_DOUBT = 20.0
# Likewise for importances, as if this many more units had a spread of 1: where the data say little
# of them, their prior must not shrink to a point that claims to know.
_DOUBT_S = 5.0
_EXACT = 1e-24  # a relative squared error that is only rounding


@dataclass(frozen=True)
class Curvature:
    """The fit's normal equations at the solution, from which every standard error comes."""

    linear: Floats
    """Lower Cholesky factor of G = AᵀA + Λ_v."""
    reduced: Floats
    """Lower Cholesky factor of the importances' Schur complement."""
    coupling: Floats
    """G⁻¹B, classes × linear × nonlinear: how values follow the importances."""
    noise: float
    """Residual variance σ²."""
    own: float = 1.0
    """Share of it that falls on one class: (C − 1)/C where the classes are centred."""

    def directions(self, class_: int) -> Floats:
        """A factor L of the covariance L Lᵀ of (s, w_0, v, u_0) for one class."""
        size_p, size_q = len(self.reduced), len(self.linear)
        eye_p, eye_q = np.eye(size_p), np.eye(size_q)
        nonlinear = solve_triangular(self.reduced, eye_p, lower=True).T
        linear = np.sqrt(self.own) * solve_triangular(self.linear, eye_q, lower=True).T
        follow = -self.coupling[class_] @ nonlinear
        top = np.hstack([nonlinear, np.zeros((size_p, size_q))])
        return np.sqrt(self.noise) * np.vstack([top, np.hstack([follow, linear])])


@dataclass(frozen=True)
class NewtonResult:
    """What the solver found, in its own parameters."""

    importances: Floats
    weight: float
    linear: Floats  # values and, last row, the background's mass; types(+1) × classes
    curvature: Curvature
    ridge: tuple[float, float]
    iterations: int
    converged: bool


class _Point:
    """Everything that depends on one choice of importances."""

    def __init__(
        self, problem: Problem, s: Floats, weight: float, ridge: tuple[float, float]
    ) -> None:
        self.s, self.weight = s, weight
        mass = problem.counts * np.exp(s)
        self.total = mass.sum(axis=1) + weight
        self.design = mass / self.total[:, None]
        if problem.background:
            self.design = np.column_stack([self.design, 1.0 / self.total])
        types = len(s)
        penalty = np.zeros(self.design.shape[1])
        penalty[:types] = ridge[1]
        gram = self.design.T @ self.design
        gram[np.diag_indices_from(gram)] += penalty
        self.factor = _factor(gram)
        centre = np.zeros((self.design.shape[1], problem.outputs.shape[1]))
        centre[:types] = problem.centre
        right = self.design.T @ problem.outputs + penalty[:, None] * centre
        self.linear = cho_solve(self.factor, right)
        self.fitted = self.design @ self.linear
        self.residual = problem.outputs - self.fitted
        self.spread = float(((self.linear[:types] - problem.centre) ** 2).sum())
        self.rss = float((self.residual**2).sum())
        self.objective = self.rss + ridge[0] * float(s @ s) + ridge[1] * self.spread


@dataclass
class Problem:
    """Counts (questions × types), outputs (questions × classes), and what is held fixed."""

    counts: Floats
    outputs: Floats
    background: bool
    centre: Floats  # prior mean of the values, one per class
    dimensions: int  # independent output columns

    def gradient_and_curvature(
        self, point: _Point, ridge: tuple[float, float]
    ) -> tuple[Floats, Floats, Floats]:
        """Descent direction, Schur complement and coupling of the nonlinear parameters."""
        types = len(point.s)
        size = types + int(self.background)
        schur = np.zeros((size, size))
        gradient = np.zeros(size)
        coupling = np.empty((self.outputs.shape[1], point.design.shape[1], size))
        for column in range(self.outputs.shape[1]):
            values, fitted = point.linear[:types, column], point.fitted[:, column]
            jacobian = point.design[:, :types] * (values[None, :] - fitted[:, None])
            if self.background:
                jacobian = np.column_stack([jacobian, -fitted / point.total])
            cross = point.design.T @ jacobian
            coupling[column] = cho_solve(point.factor, cross)
            schur += jacobian.T @ jacobian - cross.T @ coupling[column]
            gradient += jacobian.T @ point.residual[:, column]
        gradient[:types] -= ridge[0] * point.s
        schur[np.diag_indices(types)] += ridge[0]
        return gradient, schur, coupling


def make_problem(counts: Floats, outputs: Floats, background: bool) -> Problem:
    """The least-squares problem; class columns that sum to zero hold one number less."""
    centred = outputs.shape[1] > 1 and np.allclose(outputs.sum(axis=1), 0, atol=1e-9)
    dimensions = outputs.shape[1] - int(centred)
    return Problem(counts, outputs, background, outputs.mean(axis=0), dimensions)


def solve_newton(
    counts: Floats,
    outputs: Floats,
    *,
    background: bool,
    ridge: tuple[float, float] | None,
    max_iterations: int = 200,
) -> NewtonResult:
    """Fit; ``ridge=None`` finds both strengths from the data."""
    problem = make_problem(counts, outputs, background)
    start = (0.3 * (float(outputs.var()) or 1.0), 0.1)
    types = counts.shape[1]
    weight = 0.3 * float(counts.sum(axis=1).mean()) * int(background)
    point = _Point(problem, np.zeros(types), weight, start)
    if ridge is not None:
        return _with_fixed_ridge(problem, point, start, ridge, max_iterations)
    strength, damping, iterations, converged = start, 1e-2, 0, False
    while iterations < max_iterations and not converged:
        point, damping, used, settled = _descend(
            problem, point, strength, damping, budget=2, enough=1e-6
        )
        iterations += max(used, 1)
        updated, centre = _evidence(problem, point, strength)
        moved = max(abs(np.log(new / old)) for new, old in zip(updated, strength, strict=True))
        exact = point.rss < _EXACT * float((outputs**2).sum())
        converged = exact or (settled and moved < 0.1)
        problem.centre, strength = centre, updated
        point = _Point(problem, point.s, point.weight, strength)
    return _finish(problem, point, strength, iterations, converged)


def _with_fixed_ridge(
    problem: Problem,
    point: _Point,
    start: tuple[float, float],
    ridge: tuple[float, float],
    max_iterations: int,
) -> NewtonResult:
    """Come down to the wanted ridge from a strong one: a weak one alone has poor local minima."""
    damping, iterations, settled = 1e-2, 0, False
    for factor in (1.0, 1e-2, 1e-4, 0.0):
        strength = (max(start[0] * factor, ridge[0]), max(start[1] * factor, ridge[1]))
        point = _Point(problem, point.s, point.weight, strength)
        budget = max_iterations - iterations if factor == 0.0 else 3
        point, damping, used, settled = _descend(problem, point, strength, damping, budget)
        iterations += used
    return _finish(problem, point, ridge, iterations, settled)


def _descend(
    problem: Problem,
    point: _Point,
    ridge: tuple[float, float],
    damping: float,
    budget: int,
    enough: float = 1e-7,
) -> tuple[_Point, float, int, bool]:
    """Up to ``budget`` damped steps; the last return says whether gains fell below ``enough``."""
    for used in range(budget):
        gradient, schur, _ = problem.gradient_and_curvature(point, ridge)
        floor = _TINY * max(float(np.trace(schur)), 1e-30)
        for _ in range(12):
            step = _step(schur, gradient, damping, floor)
            trial = _moved(problem, point, step, ridge)
            if trial.objective <= point.objective:
                break
            damping = min(damping * 8, 1e12)
        else:
            return point, 1e-2, used, True
        gain = (point.objective - trial.objective) / max(point.objective, 1e-300)
        point, damping = trial, max(damping / 10, 1e-14)
        if gain < enough or point.rss < _EXACT * max(float((problem.outputs**2).sum()), 1e-300):
            return point, damping, used + 1, True
    return point, damping, budget, False


def _factor(matrix: Floats) -> tuple[Floats, bool]:
    """Cholesky factor, with just as much added to the diagonal as rounding makes necessary."""
    size = max(float(np.abs(np.diag(matrix)).max()), 1e-300)
    for jitter in (0.0, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7):
        try:
            return cho_factor(matrix + jitter * size * np.eye(len(matrix)), lower=True)
        except np.linalg.LinAlgError:
            continue
    return cho_factor(np.diag(np.abs(np.diag(matrix)) + size), lower=True)


def _step(schur: Floats, gradient: Floats, damping: float, floor: float) -> Floats:
    diagonal = np.diag(schur)
    matrix = schur + np.diag(damping * np.maximum(diagonal, floor) + floor)
    step = cho_solve(_factor(matrix), gradient)
    # A unit's weight may change at most e³-fold in one step: the softmax is flat further out.
    return step * min(1.0, 3.0 / max(float(np.abs(step).max(initial=0.0)), 1e-300))


def _moved(problem: Problem, point: _Point, step: Floats, ridge: tuple[float, float]) -> _Point:
    types = len(point.s)
    s = point.s + step[:types]
    weight = max(point.weight + step[-1], 0.0) if problem.background else 0.0
    if ridge[0] == 0:  # the scale of all weights is free: keep it where numbers are good
        shift = s.mean()
        s, weight = s - shift, weight * float(np.exp(-shift))
    if weight == 0.0 and not (problem.counts.sum(axis=1) > 0).all():
        weight = 1e-6 * float(np.exp(s).mean())  # the empty question needs something present
    return _Point(problem, s, weight, ridge)


def _evidence(
    problem: Problem, point: _Point, ridge: tuple[float, float]
) -> tuple[tuple[float, float], Floats]:
    """One fixed-point update of (λ_s, λ_v) and of the values' prior mean."""
    known_s, known_v = _known(problem, point, ridge, _curvature(problem, point, ridge))
    noise = point.rss / _free(problem, known_s + known_v)
    noise = max(noise, 1e-20 * max(float(problem.outputs.var()), 1e-300))
    outputs = float(problem.outputs.var()) * problem.outputs.shape[1]
    spread_v = (point.spread + _DOUBT * outputs) / (known_v + _DOUBT * problem.dimensions)
    spread_s = (float(point.s @ point.s) + _DOUBT_S) / (known_s + _DOUBT_S)
    strengths = (noise / spread_s, noise / max(spread_v, 1e-12))
    bounded = (float(np.clip(strengths[0], 1e-24, 1e8)), float(np.clip(strengths[1], 1e-24, 1e8)))
    return bounded, point.linear[: len(point.s)].mean(axis=0)


def _known(
    problem: Problem, point: _Point, ridge: tuple[float, float], curvature: Curvature
) -> tuple[float, float]:
    """How many importances and values the data determine, and not the prior (MacKay's γ)."""
    types, classes = len(point.s), problem.outputs.shape[1]
    inverse_p = solve_triangular(curvature.reduced, np.eye(len(curvature.reduced)), lower=True)
    inverse_q = solve_triangular(curvature.linear, np.eye(len(curvature.linear)), lower=True)
    trace_s = float((inverse_p[:, :types] ** 2).sum())
    trace_v = classes * float((inverse_q[:, :types] ** 2).sum())
    for column in range(classes):
        follow = inverse_p @ curvature.coupling[column].T
        trace_v += float((follow[:, :types] ** 2).sum())
    trace_v *= problem.dimensions / classes
    whole_v = types * problem.dimensions
    return (
        min(max(types - ridge[0] * trace_s, 1e-3), types),
        min(max(whole_v - ridge[1] * trace_v, 1e-3), whole_v),
    )


def _free(problem: Problem, known: float) -> float:
    """Residual degrees of freedom: the background has parameters too, the common scale has none."""
    background = (1 + problem.dimensions) * int(problem.background)
    return max(problem.outputs.shape[0] * problem.dimensions - known - background + 1, 1.0)


def _curvature(problem: Problem, point: _Point, ridge: tuple[float, float]) -> Curvature:
    _, schur, coupling = problem.gradient_and_curvature(point, ridge)
    # The common scale of all weights changes nothing: pin it, so that the inverse exists.
    gauge = np.append(np.ones(len(point.s)), [point.weight] * int(problem.background))
    size = max(float(np.trace(schur)) / len(schur), 1e-300)
    schur = schur + size * np.outer(gauge, gauge) / float(gauge @ gauge)
    reduced = _factor(schur)[0]
    own = problem.dimensions / problem.outputs.shape[1]
    return Curvature(np.tril(point.factor[0]), np.tril(reduced), coupling, noise=1.0, own=own)


def _finish(
    problem: Problem, point: _Point, ridge: tuple[float, float], iterations: int, converged: bool
) -> NewtonResult:
    shift = float(point.s.mean())  # normalised to Σ s = 0, which changes no answer
    point = _Point(problem, point.s - shift, point.weight * float(np.exp(-shift)), ridge)
    curvature = _curvature(problem, point, ridge)
    noise = point.rss / _free(problem, sum(_known(problem, point, ridge, curvature)))
    return NewtonResult(
        point.s,
        point.weight,
        point.linear,
        replace(curvature, noise=noise),
        ridge,
        iterations,
        converged,
    )


def curvature_at(
    counts: Floats, outputs: Floats, importances: Floats, weight: float, linear: Floats
) -> Curvature:
    """The curvature at a solution found by other means, for its standard errors."""
    problem = make_problem(counts, outputs, len(linear) > len(importances))
    none = (0.0, 0.0)
    point = _Point(problem, importances, weight, none)
    point.linear, point.fitted = linear, point.design @ linear
    point.residual = outputs - point.fitted
    curvature = _curvature(problem, point, none)
    known = sum(_known(problem, point, none, curvature))
    noise = float((point.residual**2).sum()) / _free(problem, known)
    return replace(curvature, noise=noise)
