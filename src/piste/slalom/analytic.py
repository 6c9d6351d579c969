"""SLALOM-Ana (B.6): values from single units, importances from pairs with a reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from piste.errors import PisteError
from piste.slalom.surrogate import Slalom
from piste.types import Floats

Ask = Callable[[Sequence[Sequence[int]]], Floats]

# Beyond this share of the attention the logarithm only amplifies rounding.
_EDGE = 1e-6


@dataclass(frozen=True)
class AnalyticFit:
    """The solution and where its formula failed."""

    slalom: Slalom
    calls: int
    failed: tuple[int, ...]
    """Units whose pair left the range a SLALOM allows; their importance was clipped to ±13.8."""
    undetermined: tuple[int, ...]
    """Units with the same value as both references: any importance would do, 0 is given."""

    @property
    def values(self) -> Floats:
        return self.slalom.values

    @property
    def importances(self) -> Floats:
        return self.slalom.importances


def single_questions(n: int) -> list[list[int]]:
    """The first n questions: every unit alone."""
    return [[unit] for unit in range(n)]


def pair_questions(values: Floats) -> list[list[int]]:
    """The other n − 1: every unit with the reference whose value is further from its own.

    References are the two units whose values lie furthest apart, so that the denominator
    v(τ) − v(r) is as large as it can be for every τ.
    """
    values = _columns(values)
    first, second = _references(values)
    pairs = []
    for unit in range(len(values)):
        if unit != first:
            far = second if _gap(values, unit, second) > _gap(values, unit, first) else first
            pairs.append([unit, far if unit != second else first])
    return pairs


def solve_analytic(values: Floats, pairs: Sequence[Sequence[int]], answers: Floats) -> AnalyticFit:
    """Importances from f([τ, r]) = α v(τ) + (1 − α) v(r): s(τ) − s(r) = log(α / (1 − α)).

    With several classes α is the projection onto v(τ) − v(r). An α outside (0, 1) is no SLALOM's
    answer: it is clipped and reported.
    """
    matrix, mixed = _columns(values), _columns(answers)
    first, second = _references(matrix)
    n = len(matrix)
    against = np.zeros(n)
    failed, undetermined = [], []
    scale = max(float(np.abs(matrix).max(initial=0.0)), 1e-300)
    for (unit, reference), answer in zip(pairs, mixed, strict=True):
        gap = matrix[unit] - matrix[reference]
        size = float(gap @ gap)
        if size <= (1e-9 * scale) ** 2:
            undetermined.append(unit)
            continue
        alpha = float((answer - matrix[reference]) @ gap) / size
        if not _EDGE < alpha < 1 - _EDGE:
            failed.append(unit)
        alpha = min(max(alpha, _EDGE), 1 - _EDGE)
        against[unit] = np.log(alpha / (1 - alpha))
    importances = against.copy()
    for unit, reference in pairs:
        if reference == second and unit != first:
            importances[unit] += against[second]
    importances[undetermined] = 0.0
    slalom = Slalom(values, importances - importances.mean())
    return AnalyticFit(slalom, n + len(pairs), tuple(failed), tuple(undetermined))


def fit_analytic(ask: Ask, n: int) -> AnalyticFit:
    """Recover a SLALOM over n units with 2n − 1 questions; exact if ``ask`` is one.

    ``ask`` takes sequences of unit indices and returns one number (or one row) each.

    >>> v, w = np.array([1.0, -2.0, 0.5]), np.exp([0.3, -0.1, -0.2])
    >>> def ask(sequences):
    ...     return np.array([(w[q] @ v[q]) / w[q].sum() for q in sequences])
    >>> fit_analytic(ask, 3).importances.round(9).tolist()
    [0.3, -0.1, -0.2]
    """
    if n < 1:
        raise PisteError(f"n: expected at least one unit, got {n}.")
    values = np.asarray(ask(single_questions(n)), dtype=np.float64)
    if len(values) != n or not np.isfinite(values).all():
        raise PisteError(f"ask must return {n} finite answers for {n} questions.")
    if n == 1:
        return AnalyticFit(Slalom(values, np.zeros(1)), 1, (), ())
    pairs = pair_questions(values)
    answers = np.asarray(ask(pairs), dtype=np.float64)
    if answers.shape != (len(pairs), *values.shape[1:]) or not np.isfinite(answers).all():
        raise PisteError(f"ask must return {len(pairs)} finite answers for {len(pairs)} pairs.")
    return solve_analytic(values, pairs, answers)


def _columns(values: Floats) -> Floats:
    return values[:, None] if values.ndim == 1 else values


def _references(values: Floats) -> tuple[int, int]:
    widest = int(np.argmax(np.ptp(values, axis=0)))
    first, second = int(np.argmax(values[:, widest])), int(np.argmin(values[:, widest]))
    return first, second if second != first else (first + 1) % len(values)


def _gap(values: Floats, unit: int, reference: int) -> float:
    return float(np.abs(values[unit] - values[reference]).max())
