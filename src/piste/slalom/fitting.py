"""Fit a SLALOM to counts and outputs, by Newton or by SGD."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from piste.errors import PisteError
from piste.slalom.counts import Counts
from piste.slalom.newton import NewtonResult, curvature_at, solve_newton
from piste.slalom.results import Fit, assemble
from piste.slalom.saturating import MOST_JOINT, fit_jointly
from piste.slalom.sgd import solve_sgd
from piste.slalom.threads import threads_for

Floats = NDArray[np.float64]
Solver = Literal["newton", "sgd"]
Ridge = float | tuple[float, float] | Literal["auto"]


def fit(
    counts: ArrayLike | Any,
    outputs: ArrayLike,
    *,
    solver: Solver = "newton",
    background: bool | Literal["auto"] = False,
    ridge: Ridge = 0.0,
    slopes: ArrayLike | None = None,
    link: bool | Literal["auto"] = False,
    start: Fit | None = None,
    **options: Any,
) -> Fit:
    """Fit F(c) of eq. 4 to outputs by least squares.

    ``counts`` is questions × types (how often each type occurs), dense or any scipy.sparse;
    ``outputs`` has one number per question, or one per class (then importances are shared, C.1).
    ``ridge`` is a number, a pair (on importances, on values), or "auto": found by marginal
    likelihood. ``background="auto"`` keeps a background only if its weight is at least twice its
    standard error; where it hardly explains anything, also only if none explains less. With
    slopes or a link it is kept if a fit without one leaves more noise.
    ``slopes`` (questions × types, NaN where unknown) are derivatives with respect to log λ of
    soft removal (eq. 5), which are a_i (v_i − F) in a SLALOM. ``link`` fits a saturation on top
    (see :class:`~piste.slalom.link.Saturation`); "auto" keeps it if it bends the answers. Both
    need one output per question and Newton; then ``start`` is an earlier fit to begin at.
    Options of "sgd": epochs, learning_rate, batch, seed; of "newton": max_iterations.

    >>> from piste.slalom import Slalom
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
    given = None if slopes is None else _check_slopes(slopes, matrix.shape)
    size = matrix.nnz if sparse.issparse(matrix) else matrix.size
    if (given is not None or link) and (answers.ndim != 1 or solver != "newton"):
        raise PisteError("Slopes and a link need one output per question and solver='newton'.")
    task = _Task(matrix, answers, solver, ridge, options)
    plain: Fit | None = None
    many = matrix.shape[1] > MOST_JOINT
    if given is None and (link is not True or many):
        plain = _fit_plain(task, background, size)
        enough = len(answers) >= _LEAST_ANSWERS and plain.loss > _EXACT * float(answers.var())
        if not link or many or not enough:
            return plain
    with threads_for(matrix.shape[0] * matrix.shape[1]):
        found = fit_jointly(
            matrix,
            answers,
            task.active,
            given,
            background=background,
            link=link,
            ridge=_ridge(ridge),
            start=start,
            **options,
        )
    if plain is None:
        return found
    return found if found.slalom.link is not None and found.loss < _WORTH * plain.loss else plain


# A saturation is not worth a thought with fewer answers, or where a share of the variance that
# small is left without one.
_LEAST_ANSWERS, _EXACT = 30, 1e-6
_WORTH = 0.97  # of the squared error: two more parameters may gain that by chance


def _fit_plain(task: _Task, background: bool | Literal["auto"], size: int) -> Fit:
    """The paper's SLALOM, with a background or without."""
    answers = task.answers
    with threads_for(size):
        found, result = task.fit(bool(background))
        if background != "auto" or task.some_empty:
            return found
        if not found.slalom.weight > 2 * found.curvature.background_error():
            return task.fit(False, result)[0]
        if found.loss > _LITTLE * float(answers.var(axis=0).mean()):
            other = task.fit(False)[0]
            return other if other.loss < found.loss else found
        return found


# With most of the variance left, the prior has swallowed what the questions say; a search that
# began with a heavy background ends there more often than one without.
_LITTLE = 0.5


class _Task:
    """What is fitted, once or twice."""

    def __init__(
        self, matrix: Any, answers: Floats, solver: Solver, ridge: Ridge, options: dict[str, Any]
    ) -> None:
        self.matrix, self.answers = matrix, answers
        self.solver, self.ridge, self.options = solver, ridge, options
        self.active = np.asarray((matrix > 0).sum(axis=0) > 0).ravel()
        self.used = matrix if self.active.all() else matrix[:, self.active]
        self.counts = Counts(self.used)
        self.some_empty = not bool((np.asarray(matrix.sum(axis=1)) > 0).all())

    def fit(
        self, background: bool, start: NewtonResult | None = None
    ) -> tuple[Fit, NewtonResult | None]:
        """A fit, and for Newton the result another one may begin at."""
        flat = self.answers.ndim == 1
        columns = self.answers[:, None] if flat else self.answers
        found: NewtonResult | None = None
        if self.solver == "newton":
            found = solve_newton(
                self.counts,
                columns,
                background=background,
                ridge=_ridge(self.ridge),
                start=start,
                **self.options,
            )
            s, weight, linear = found.importances, found.weight, found.linear
            curvature, strengths = found.curvature, found.ridge
            iterations, converged = found.iterations, found.converged
        elif self.solver == "sgd":
            dense = self.used.toarray() if sparse.issparse(self.used) else self.used
            s, weight, linear = solve_sgd(dense, columns, background=background, **self.options)
            curvature = curvature_at(self.counts, columns, s, weight, linear)
            strengths, converged = (0.0, 0.0), False
            iterations = int(self.options.get("epochs", 60))
        else:
            raise PisteError(f"solver={self.solver!r} is unknown: choose newton or sgd.")
        slalom = assemble(s, weight, linear, self.active, flat, background)
        loss = float(((slalom.predict(self.matrix) - self.answers) ** 2).mean())
        fit = Fit(
            slalom, loss, self.solver, iterations, converged, strengths, self.active, curvature
        )
        return fit, found


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


def _check_slopes(slopes: ArrayLike, shape: tuple[int, int]) -> Floats:
    given = np.asarray(slopes, dtype=np.float64)
    if given.shape != shape:
        raise PisteError(f"slopes must be questions × types, {shape}, but came as {given.shape}.")
    return given


def _check(counts: ArrayLike | Any, outputs: ArrayLike, background: bool) -> tuple[Any, Floats]:
    listed = sparse.issparse(counts)
    make: Any = sparse.csr_array if listed else np.asarray
    matrix: Any = make(counts, dtype=np.float64)
    answers = np.asarray(outputs, dtype=np.float64)
    if matrix.ndim != 2 or answers.ndim not in (1, 2) or matrix.shape[0] != len(answers):
        raise PisteError(
            f"counts must be questions × types and outputs one row per question, but they have "
            f"the shapes {matrix.shape} and {answers.shape}."
        )
    numbers: Floats = matrix.data if listed else matrix
    if numbers.size == 0 or not (numbers > 0).any():
        raise PisteError("There is nothing to fit: no question contains any unit.")
    if not (np.isfinite(numbers).all() and np.isfinite(answers).all()) or (numbers < 0).any():
        raise PisteError("Counts must be finite and ≥ 0, outputs finite.")
    if not background and not (np.asarray(matrix.sum(axis=1)) > 0).all():
        raise PisteError(
            "A question without any unit has no answer in a SLALOM without background: leave it "
            "out or set background=True."
        )
    return matrix, answers
