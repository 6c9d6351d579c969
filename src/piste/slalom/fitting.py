"""Fit a SLALOM to counts and outputs, by Newton or by SGD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from piste.errors import PisteError
from piste.slalom.newton import Curvature, curvature_at, solve_newton
from piste.slalom.sgd import solve_sgd
from piste.slalom.surrogate import Slalom
from piste.slalom.threads import threads_for

Floats = NDArray[np.float64]
Solver = Literal["newton", "sgd"]
Ridge = float | tuple[float, float] | Literal["auto"]


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

    @property
    def values(self) -> Floats:
        """Types, or types × classes."""
        return self.slalom.values

    @property
    def importances(self) -> Floats:
        return self.slalom.importances

    def predict(self, counts: ArrayLike) -> Floats:
        return self.slalom.predict(counts)

    @property
    def errors(self) -> dict[str, Floats]:
        """Standard errors of values and importances, infinite where nothing was asked."""
        classes = 1 if self.values.ndim == 1 else self.values.shape[1]
        count = int(self.active.sum())
        background = len(self.curvature.linear) - count
        values = np.full((len(self.active), classes), np.inf)
        importances = np.full(len(self.active), np.inf)
        for column in range(classes):
            directions = self.curvature.directions(column)
            below = directions[count + background : 2 * count + background]
            values[self.active, column] = np.linalg.norm(below, axis=1)
            centred = directions[:count] - directions[:count].mean(axis=0)
            importances[self.active] = np.linalg.norm(centred, axis=1)
        return {
            "value": values[:, 0] if self.values.ndim == 1 else values,
            "importance": importances,
        }


def fit(
    counts: ArrayLike,
    outputs: ArrayLike,
    *,
    solver: Solver = "newton",
    background: bool | Literal["auto"] = False,
    ridge: Ridge = 0.0,
    **options: Any,
) -> Fit:
    """Fit F(c) of eq. 4 to outputs by least squares.

    ``counts`` is questions × types (how often each type occurs), ``outputs`` has one number per
    question, or one per class (then importances are shared, C.1). ``ridge`` is a number, a pair
    (on importances, on values), or "auto": found by marginal likelihood. ``background="auto"``
    keeps a background only if its weight is at least twice its standard error. Options of "sgd":
    epochs, learning_rate, batch, seed; of "newton": max_iterations.

    >>> rng = np.random.default_rng(0)
    >>> truth = Slalom(np.array([1.0, -1.0, 2.0]), np.array([0.5, -0.5, 0.0]))
    >>> counts = rng.integers(0, 3, (40, 3)) + np.eye(3)[rng.integers(0, 3, 40)]
    >>> found = fit(counts, truth.predict(counts))
    >>> bool(np.allclose(found.values, truth.values))
    True
    """
    if background not in (True, False, "auto"):
        raise PisteError(f"background={background!r} is wrong: True, False or 'auto' is wanted.")
    matrix, answers = _check(counts, outputs, bool(background))
    with threads_for(matrix.size):
        found = _fit(matrix, answers, solver, bool(background), ridge, options)
        if background == "auto" and matrix.any(axis=1).all() and not _is_significant(found):
            return _fit(matrix, answers, solver, False, ridge, options)
        return found


def _is_significant(fit: Fit) -> bool:
    """Whether the background's weight stands out from its own error."""
    error = float(np.linalg.norm(fit.curvature.directions(0)[int(fit.active.sum())]))
    return fit.slalom.weight > 2 * error


def _fit(
    matrix: Floats,
    answers: Floats,
    solver: Solver,
    background: bool,
    ridge: Ridge,
    options: dict[str, Any],
) -> Fit:
    flat = answers.ndim == 1
    columns = answers[:, None] if flat else answers
    active = np.asarray((matrix > 0).any(axis=0))
    used = np.ascontiguousarray(matrix[:, active])
    if solver == "newton":
        found = solve_newton(used, columns, background=background, ridge=_ridge(ridge), **options)
        s, weight, linear = found.importances, found.weight, found.linear
        curvature, strengths = found.curvature, found.ridge
        iterations, converged = found.iterations, found.converged
    elif solver == "sgd":
        s, weight, linear = solve_sgd(used, columns, background=background, **options)
        curvature = curvature_at(used, columns, s, weight, linear)
        strengths, iterations, converged = (0.0, 0.0), int(options.get("epochs", 60)), False
    else:
        raise PisteError(f"solver={solver!r} is unknown: choose newton or sgd.")
    slalom = _assemble(s, weight, linear, active, flat, background)
    loss = float(((slalom.predict(matrix) - answers) ** 2).mean())
    return Fit(slalom, loss, solver, iterations, converged, strengths, active, curvature)


def _assemble(
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


def _ridge(ridge: Ridge) -> tuple[float, float] | None:
    if isinstance(ridge, str):
        if ridge == "auto":
            return None
        raise PisteError(f"ridge={ridge!r} is unknown: give 'auto', a number or a pair.")
    try:
        numbers = np.broadcast_to(np.asarray(ridge, dtype=np.float64), 2)
        pair = float(numbers[0]), float(numbers[1])
    except (TypeError, ValueError):
        pair = (-1.0, -1.0)
    if not min(pair) >= 0:
        raise PisteError(f"ridge={ridge!r} is wrong: 'auto', or one or two numbers ≥ 0 are wanted.")
    return pair


def _check(counts: ArrayLike, outputs: ArrayLike, background: bool) -> tuple[Floats, Floats]:
    matrix = np.asarray(counts, dtype=np.float64)
    answers = np.asarray(outputs, dtype=np.float64)
    if matrix.ndim != 2 or answers.ndim not in (1, 2) or len(matrix) != len(answers):
        raise PisteError(
            f"counts must be questions × types and outputs one row per question, but they have "
            f"the shapes {matrix.shape} and {answers.shape}."
        )
    if matrix.size == 0 or not (matrix > 0).any():
        raise PisteError("There is nothing to fit: no question contains any unit.")
    if not (np.isfinite(matrix).all() and np.isfinite(answers).all()) or (matrix < 0).any():
        raise PisteError("Counts must be finite and ≥ 0, outputs finite.")
    if not background and not (matrix.sum(axis=1) > 0).all():
        raise PisteError(
            "A question without any unit has no answer in a SLALOM without background: leave it "
            "out or set background=True."
        )
    return matrix, answers
