"""Levenberg–Marquardt and Newton on the importances, with the values eliminated exactly.

Far from the solution steps are damped and take F as linear; near it second derivatives come in,
for with a residual as large as a real model leaves, linear steps overshoot in weak directions.

The background enters by its weight w_0 ≥ 0 and mass u_0 = w_0 v_0, not by their logarithm, so that
the paper's model (w_0 = u_0 = 0) is a point that is reached and not a limit.

The ridge λ_s Σ s² + λ_v Σ (v − v̄)² is a Gaussian prior; its two strengths and the noise are found
by maximising the marginal likelihood, so few questions lean on the prior and many do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import helmert

from piste.slalom.counts import Counts
from piste.slalom.direct import DirectSolver
from piste.slalom.evidence import (
    Acceleration,
    between,
    distance,
    known_parameters,
    noise_at,
    updated_ridge,
)
from piste.slalom.iterative import IterativeSolver
from piste.slalom.problem import Curvature, Floats, Point, Problem, Solver, Strengths, System

_EXACT = 1e-24  # a relative squared error that is only rounding
_NEAR = 0.1  # a step's relative gain below which second derivatives are used
_SETTLED_GAIN, _SETTLED_RIDGE = 1e-4, 0.04
# Iterations after which the strengths go half the way only and gains need not be as small: with
# more types than questions there are many minima near each other.
_PATIENCE = 12
_SETTLED_KNOWN = 1e-2  # gain below which the number of known parameters no longer changes
# Most types that are solved by factors: of sparse counts, of those with fewer questions than
# types, of dense counts. Up to 400 types standard errors are exact.
_MOST_DIRECT, _MOST_DIRECT_FEW, _MOST_DIRECT_DENSE = 600, 400, 2000


@dataclass(frozen=True)
class NewtonResult:
    """What the solver found, in its own parameters."""

    importances: Floats
    weight: float
    linear: Floats  # values and, last row, the background's mass; types(+1) × classes
    curvature: Curvature
    ridge: Strengths
    iterations: int
    converged: bool


def solve_newton(
    counts: Counts,
    outputs: Floats,
    *,
    background: bool,
    ridge: Strengths | None,
    max_iterations: int = 200,
    start: NewtonResult | None = None,
    iterative: bool | None = None,
) -> NewtonResult:
    """Fit; ``ridge=None`` finds both strengths from the data.

    ``start`` is a result to begin at, for the same types. ``iterative`` says whether the linear
    algebra is done by products alone, None leaves it to the size.
    """
    problem, basis = make_problem(counts, outputs, background)
    if iterative is None:
        iterative = _many(counts) and (ridge is None or min(ridge) > 0)
    solver: Solver = IterativeSolver(problem) if iterative else DirectSolver(problem)
    search = _Search(problem, solver, start)
    if ridge is None:
        search.with_evidence(max_iterations)
    else:
        search.with_ridge(ridge, max_iterations)
    return search.result(basis)


def _many(counts: Counts) -> bool:
    """Whether factors of types × types would take longer than products with the counts."""
    questions, types = counts.shape
    if not counts.is_sparse:
        return types > _MOST_DIRECT_DENSE
    return types > (_MOST_DIRECT if questions > types else _MOST_DIRECT_FEW)


def make_problem(counts: Counts, outputs: Floats, background: bool) -> tuple[Problem, Floats]:
    """The problem, and how its dimensions make up the classes.

    Class columns that sum to zero hold one number less: they are fitted in an orthonormal basis.
    """
    classes = outputs.shape[1]
    basis = np.eye(classes)
    if classes > 1 and np.allclose(outputs.sum(axis=1), 0, atol=1e-9):
        basis = helmert(classes)
    some_empty = not bool((counts.times(np.ones(counts.shape[1])) > 0).all())
    variance = classes * float(outputs.var())
    return Problem(counts, outputs @ basis.T, background, variance, some_empty), basis


class _Search:
    """The way down: where it is, how strong the prior is, how far a step is trusted."""

    def __init__(self, problem: Problem, solver: Solver, start: NewtonResult | None) -> None:
        self.problem, self.solver = problem, solver
        self.centre = problem.outputs.mean(axis=0)
        self.strong = (0.3 * (problem.variance / problem.dimensions or 1.0), 0.1)
        self.ridge = self.strong
        s = np.zeros(problem.types)
        weight = 0.3 * float(problem.counts.times(np.ones(problem.types)).mean())
        if start is not None:
            s, weight, self.ridge = start.importances, start.weight, start.ridge
        weight *= int(problem.background)
        self.point = solver.point(s, weight, self.ridge, self.centre, None)
        self.damping = 1e-2
        self.gain = 1.0
        self.iterations = 0
        self.converged = False

    def with_evidence(self, max_iterations: int) -> None:
        """Step by step, every step followed by an update of the prior."""
        accelerate, known, moved = Acceleration(), (0.0, 0.0), np.inf
        while self.iterations < max_iterations and not self.converged:
            patient = self.iterations < _PATIENCE
            system = self.solver.system(self.point, self.ridge)
            if moved > _SETTLED_RIDGE or self.gain > _SETTLED_KNOWN or not patient:
                known = known_parameters(self.problem, self.ridge, system.traces())
            self._descend(system)
            ridge = updated_ridge(self.problem, self.point, self.centre, known)
            if not patient:
                ridge = between(self.ridge, ridge)
            elif self.gain < _NEAR:
                ridge = accelerate(self.ridge, ridge)
            moved = distance(ridge, self.ridge)
            self._set_ridge(ridge, self.point.linear[: self.problem.types].mean(axis=0))
            settled = self.gain < _SETTLED_GAIN * (1 if patient else 10) and moved < _SETTLED_RIDGE
            self.converged = settled or self._is_exact()

    def with_ridge(self, ridge: Strengths, max_iterations: int) -> None:
        """Come down to the wanted ridge from a strong one: a weak one alone has poor minima."""
        for factor in (1.0, 1e-2, 1e-4, 0.0):
            strong = self.strong[0] * factor, self.strong[1] * factor
            eased = max(strong[0], ridge[0]), max(strong[1], ridge[1])
            self._set_ridge(eased, self.centre)
            for _ in range(max_iterations - self.iterations if factor == 0.0 else 3):
                self._descend(self.solver.system(self.point, self.ridge))
                self.converged = self._is_exact() or self.gain < 1e-7
                if self.converged:
                    break

    def _set_ridge(self, ridge: Strengths, centre: Floats) -> None:
        self.ridge, self.centre = ridge, centre
        self.point = self.solver.with_ridge(self.point, ridge, centre)

    def _is_exact(self) -> bool:
        return self.point.rss < _EXACT * self.problem.size

    def _descend(self, system: System) -> None:
        """One step down; ``gain`` is what it won of the objective, 0 if there is no way down."""
        self.iterations += 1
        before = self._objective(self.point)
        step = system.newton_step() if self.gain < _NEAR else None
        if step is not None and self._try(step, before):
            return
        for _ in range(12):
            step = _capped(self.point, system.step(self.damping))
            hoped = before - self._hoped(system, step)
            if self._try(step, before):
                # Nielsen's rule: trust more where the linear model foretold the gain.
                kept = min(self.gain * before / max(hoped, 1e-300), 1.0)
                self.damping *= min(max(1 - (2 * kept - 1) ** 3, 0.1), 4.0)
                self.damping = min(max(self.damping, 1e-6), 1e12)
                return
            self.damping = min(max(self.damping * 8, 1e-2), 1e12)
        self.gain, self.damping = 0.0, 1e-2

    def _try(self, step: Floats, before: float) -> bool:
        """Go there if it is no worse."""
        trial = self._moved(_capped(self.point, step))
        after = self._objective(trial)
        if not after <= before:
            return False
        self.point, self.gain = trial, (before - after) / max(before, 1e-300)
        return True

    def _objective(self, point: Point) -> float:
        return point.objective(self.ridge, self.centre)

    def _hoped(self, system: System, step: Floats) -> float:
        """The objective after a step if F were as linear as it is here."""
        types, follow = self.problem.types, system.linear_step(step)
        s = self.point.s + step[:types]
        apart = (self.point.linear + follow)[:types] - self.centre
        prior = self.ridge[0] * float(s @ s) + self.ridge[1] * float((apart**2).sum())
        return self.point.squared_error_after(step, follow) + prior

    def _moved(self, step: Floats) -> Point:
        problem = self.problem
        s = self.point.s + step[: problem.types]
        weight = max(self.point.weight + step[-1], 0.0) if problem.background else 0.0
        shift = s.mean()  # the scale of all weights is free, and this one the prior likes best
        s, weight = s - shift, weight * float(np.exp(-shift))
        if weight == 0.0 and problem.some_empty:
            weight = 1e-6 * float(np.exp(s).mean())  # the empty question needs something present
        return self.solver.point(s, weight, self.ridge, self.centre, self.point.linear)

    def result(self, basis: Floats) -> NewtonResult:
        """The point reached, with the curvature there."""
        problem, point = self.problem, self.point
        system = self.solver.system(point, self.ridge)
        known = known_parameters(problem, self.ridge, system.traces())
        return NewtonResult(
            point.s,
            point.weight,
            point.linear @ basis,
            system.curvature(noise_at(problem, point, known), basis),
            self.ridge,
            self.iterations,
            self.converged,
        )


def _capped(point: Point, step: Floats) -> Floats:
    """A unit's weight may change at most e³-fold in one step: the softmax is flat further out.

    The background's weight is measured against that of a whole question.
    """
    types = len(point.s)
    furthest = float(np.abs(step[:types]).max(initial=0.0))
    if len(step) > types:
        furthest = max(furthest, abs(float(step[-1])) * float(point.inverse.mean()))
    return step * min(1.0, 3.0 / max(furthest, 1e-300))


def curvature_at(
    counts: Counts, outputs: Floats, importances: Floats, weight: float, linear: Floats
) -> Curvature:
    """The curvature at a solution found by other means, for its standard errors."""
    problem, basis = make_problem(counts, outputs, len(linear) > len(importances))
    solver, none = DirectSolver(problem), (0.0, 0.0)
    centre = problem.outputs.mean(axis=0)
    point = solver.point(importances, weight, none, centre, None)
    point.set_values(linear @ basis.T)
    system = solver.system(point, none)
    known = known_parameters(problem, none, system.traces())
    return system.curvature(noise_at(problem, point, known), basis)
