"""Conjugate gradients, and the matrices of the size of the questions that hasten them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from piste.slalom.problem import Floats, Point

MOST_PRODUCTS = 1000


def outer_product(point: Point, weak: Floats, bent: bool = False) -> Floats:
    """A diag(1/weak) Aᵀ, or with ``bent`` J diag(1/weak) Jᵀ over all dimensions, as one matrix."""
    problem, types = point.problem, point.problem.types
    parts, backgrounds = [], []
    for k in range(problem.dimensions if bent else 1):
        part = problem.counts.scaled(point.inverse, point.mass[:types])
        background = point.inverse
        if bent:
            rows = np.repeat(point.fitted[:, k], np.diff(part.indptr))
            part.data *= point.levels[part.indices, k] - rows
            background = -point.fitted[:, k] * point.inverse
        parts.append(part)
        backgrounds.append(background)
    whole = sparse.vstack(parts).tocsr()
    eased = whole.copy()
    eased.data /= weak[eased.indices]
    product: Floats = (eased @ whole.T).toarray()
    if problem.background:
        column = np.concatenate(backgrounds)
        product += np.outer(column / weak[-1], column)
    return product


def factor_plus_one(matrix: Floats) -> Any:
    """Cholesky factor of 1 + matrix."""
    places = np.arange(len(matrix))
    matrix[places, places] += 1.0
    # Rounding in numbers as large as 1/λ may outweigh the 1.
    matrix[places, places] *= 1 + 1e-13
    return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)


def woodbury_values(point: Point, weak: Floats, factor: Any) -> Callable[[Floats], Floats]:
    """The inverse of AᵀA + diag(weak), from the factor of 1 + A diag(1/weak) Aᵀ."""

    def precondition(x: Floats) -> Floats:
        eased = x / weak
        change = cho_solve(factor, point.design_times(eased), check_finite=False)
        return eased - point.design_transposed(change) / weak

    return precondition


def squares(point: Point, rows: Floats) -> Floats:
    """Σ_m A_mi² rows_m for every column i: the diagonals of weighted Gram matrices."""
    problem = point.problem
    shares = rows * point.inverse[:, None] ** 2
    squares = problem.counts.squared_transposed_times(shares)
    squares = point.mass[: problem.types, None] ** 2 * squares
    return np.vstack([squares, shares.sum(axis=0)]) if problem.background else squares


def conjugate_gradients(
    times: Callable[[Floats], Floats],
    right: Floats,
    precondition: Callable[[Floats], Floats],
    precision: float,
) -> Floats | None:
    """Solve for every right-hand side (last axis) at once, each to a relative precision.

    None where the matrix turns out to bend downwards.
    """
    axes = tuple(range(right.ndim - 1))
    solution, residual = np.zeros_like(right), right.copy()
    scaled = precondition(residual)
    direction = scaled.copy()
    height = (residual * scaled).sum(axis=axes)
    enough = precision**2 * height
    for _ in range(MOST_PRODUCTS):
        going = height > enough
        if not going.any():
            break
        ahead = times(direction)
        bend = (direction * ahead).sum(axis=axes)
        if (going & ~(bend > 0)).any():
            return None
        length = np.where(going, height / np.where(going, bend, 1.0), 0.0)
        solution += length * direction
        residual -= length * ahead
        scaled = precondition(residual)
        before, height = height, (residual * scaled).sum(axis=axes)
        direction *= height / np.where(before > 0, before, 1.0)
        direction += scaled
    return solution
