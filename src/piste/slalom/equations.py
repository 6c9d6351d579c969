"""The equations H = Jᵀ W J + P of a step of the solver, and what follows from H⁻¹.

J are derivatives of the answers by the parameters (questions × parameters), W the precisions of the
answers and P those of the priors. There are three ways to the same numbers:

- by parameters: a Cholesky factor of H;
- by questions, where there are fewer of them: with S = √W J and C = I + S P⁻¹ Sᵀ,

      H⁻¹ = P⁻¹ − P⁻¹ Sᵀ C⁻¹ S P⁻¹      S H⁻¹ Sᵀ = I − C⁻¹      |H| = |P| |C|

- by products, for more parameters than a table can hold: conjugate gradients, and random samples
  where a covariance is wanted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack
from scipy.sparse.linalg import LinearOperator, cg

from piste.types import Floats

_CLOSE, _PRODUCTS = 1e-3, 80
"""Of conjugate gradients: the residual that is small enough, and the most steps."""
_CLOSE_SAMPLE = 1e-2
"""The same for a sample, which is random itself."""
_AT_ONCE = 16
"""Samples that are solved for side by side."""


class Equations(ABC):
    """H at one point; ``emphasis`` is how much more an answer counts than by its variance."""

    def __init__(self, jacobian: Any, precision: Floats, emphasis: Floats, prior: Floats) -> None:
        self.jacobian, self.precision = jacobian, precision
        self.emphasis, self.prior = emphasis, prior

    @abstractmethod
    def step(self, gradient: Floats, damping: float) -> Floats:
        """(H + damping · diag H)⁻¹ gradient."""

    @abstractmethod
    def spread(self, samples: int) -> tuple[Floats, Floats]:
        """Diagonals of H⁻¹ and of √W J H⁻¹ Jᵀ √W: variances of parameters, and leverages.

        ``samples`` are drawn where they can't be had exactly.
        """

    @abstractmethod
    def factor(self, samples: int) -> Floats:
        """L with L Lᵀ the covariance H⁻¹ (Jᵀ W V W J + P) H⁻¹, or samples of it.

        Under the true variances V a score Jᵀ W r varies by Jᵀ W V W J, and W V is the emphasis.
        """

    @abstractmethod
    def unexplained(self, changes: Floats) -> Floats:
        """(W − W J H⁻¹ Jᵀ W) changes: what the parameters cannot make up for, every column."""

    @property
    @abstractmethod
    def log_determinant(self) -> float:
        """Of H; NaN where it can't be had."""


def equations(jacobian: Any, precision: Floats, emphasis: Floats, prior: Floats) -> Equations:
    """The quickest way for a Jacobian, which is sparse if it is large.

    >>> rng = np.random.default_rng(0)
    >>> ones, wide = np.ones(4), rng.normal(size=(4, 6))
    >>> few = equations(wide, ones, ones, np.ones(6))
    >>> inverse = np.linalg.inv(wide.T @ wide + np.eye(6))
    >>> type(few).__name__, bool(np.allclose(few.spread(0)[0], np.diag(inverse)))
    ('_ByQuestions', True)
    """
    if not isinstance(jacobian, np.ndarray):
        return _ByProducts(jacobian, precision, emphasis, prior)
    kind = _ByQuestions if len(jacobian) < len(prior) else _ByParameters
    return kind(jacobian, precision, emphasis, prior)


class _ByParameters(Equations):
    @cached_property
    def scaled(self) -> Floats:
        """S = √W J."""
        return np.asarray(self.jacobian * np.sqrt(self.precision)[:, None])

    @cached_property
    def _normal(self) -> Floats:
        return np.asarray(self.scaled.T @ self.scaled)

    @cached_property
    def _triangle(self) -> Floats:
        return _cholesky(self._normal, self.prior)

    def step(self, gradient: Floats, damping: float) -> Floats:
        triangle = self._triangle
        if damping:
            damped = damping * (np.diag(self._normal) + self.prior)
            triangle = _cholesky(self._normal, self.prior + damped)
        return np.asarray(lapack.dpotrs(triangle, gradient, lower=1)[0])

    def spread(self, samples: int) -> tuple[Floats, Floats]:
        root = lapack.dtrtri(self._triangle, lower=1)[0]
        moved = blas.dtrmm(1.0, root, self.scaled.T, lower=1)
        return np.einsum("ij,ij->j", root, root), np.einsum("ij,ij->j", moved, moved)

    def factor(self, samples: int) -> Floats:
        told = self.scaled * np.sqrt(self.emphasis)[:, None]
        root = _cholesky(told.T @ told, self.prior)
        return np.asarray(lapack.dpotrs(self._triangle, root, lower=1)[0])

    def unexplained(self, changes: Floats) -> Floats:
        root = np.sqrt(self.precision)[:, None]
        scaled = root * changes
        made_up = lapack.dpotrs(self._triangle, self.scaled.T @ scaled, lower=1)[0]
        return np.asarray(root * (scaled - self.scaled @ made_up))

    @property
    def log_determinant(self) -> float:
        return 2.0 * float(np.log(np.diag(self._triangle)).sum())


class _ByQuestions(_ByParameters):
    @cached_property
    def _whitened(self) -> Floats:
        """S P^{−½}."""
        return np.asarray(self.scaled / np.sqrt(self.prior))

    @cached_property
    def _small(self) -> Floats:
        """The Cholesky factor of C."""
        return _cholesky(self._whitened @ self._whitened.T, 1.0)

    def step(self, gradient: Floats, damping: float) -> Floats:
        prior, whitened, small = self.prior, self._whitened, None if damping else self._small
        if small is None:
            own = np.einsum("ij,ij->j", self.scaled, self.scaled) + prior
            prior = prior + damping * own
            whitened = self.scaled / np.sqrt(prior)
            small = _cholesky(whitened @ whitened.T, 1.0)
        root = np.sqrt(prior)
        right = gradient / root
        made_up = lapack.dpotrs(small, whitened @ right, lower=1)[0]
        return np.asarray((right - whitened.T @ made_up) / root)

    def spread(self, samples: int) -> tuple[Floats, Floats]:
        root = lapack.dtrtri(self._small, lower=1)[0]
        moved = root @ self._whitened
        left = 1.0 - np.einsum("ij,ij->j", moved, moved)
        return np.maximum(left, 1e-12) / self.prior, 1.0 - np.einsum("ij,ij->j", root, root)

    def unexplained(self, changes: Floats) -> Floats:
        root = np.sqrt(self.precision)[:, None]
        return np.asarray(root * lapack.dpotrs(self._small, root * changes, lower=1)[0])

    @property
    def log_determinant(self) -> float:
        small = 2.0 * float(np.log(np.diag(self._small)).sum())
        return small + float(np.log(self.prior).sum())


class _ByProducts(Equations):
    @cached_property
    def _diagonal(self) -> Floats:
        return np.asarray((self.jacobian.power(2).T @ self.precision) + self.prior)

    def step(self, gradient: Floats, damping: float) -> Floats:
        def times(vector: Floats) -> Floats:
            moved = self.precision * (self.jacobian @ vector)
            return self.jacobian.T @ moved + (self.prior + damping * self._diagonal) * vector

        size = (len(gradient), len(gradient))
        own = self._diagonal * (1.0 + damping)
        found, _ = cg(
            LinearOperator(size, matvec=times, dtype=np.float64),
            gradient,
            rtol=_CLOSE,
            maxiter=_PRODUCTS,
            M=LinearOperator(size, matvec=lambda vector: vector / own, dtype=np.float64),
        )
        return np.asarray(found)

    def spread(self, samples: int) -> tuple[Floats, Floats]:
        root = self._sampled(np.ones_like(self.emphasis), samples)
        moved = np.sqrt(self.precision)[:, None] * (self.jacobian @ root)
        return np.einsum("ij,ij->i", root, root), np.einsum("ij,ij->i", moved, moved)

    def factor(self, samples: int) -> Floats:
        return self._sampled(self.emphasis, samples)

    def unexplained(self, changes: Floats) -> Floats:
        pushed = self.precision[:, None] * changes
        made_up = self._by_blocks(self.jacobian.T @ pushed)
        return np.asarray(pushed - self.precision[:, None] * (self.jacobian @ made_up))

    @property
    def log_determinant(self) -> float:
        return float("nan")

    def _sampled(self, emphasis: Floats, samples: int) -> Floats:
        """H⁻¹ (Jᵀ √W ε + √P ε') for random ε, all samples at once: one pass over J serves many."""
        rng, columns = np.random.default_rng(0), []
        spread, pull = np.sqrt(self.precision * emphasis)[:, None], np.sqrt(self.prior)[:, None]
        for start in range(0, samples, _AT_ONCE):
            count = min(_AT_ONCE, samples - start)
            right = self.jacobian.T @ (spread * rng.standard_normal((len(spread), count)))
            right += pull * rng.standard_normal((len(pull), count))
            columns.append(self._by_blocks(right))
        return np.concatenate(columns, axis=1) / np.sqrt(samples)

    def _by_blocks(self, right: Floats) -> Floats:
        """H⁻¹ of every column by conjugate gradients, side by side."""
        found, residual = np.zeros_like(right), right.copy()
        flat, prior, own = self.precision[:, None], self.prior[:, None], self._diagonal[:, None]
        turned = self.jacobian.T.tocsr()
        direction = residual / own
        size = (residual * direction).sum(axis=0)
        goal = _CLOSE_SAMPLE**2 * (right**2).sum(axis=0)
        for _ in range(_PRODUCTS):
            image = turned @ (flat * (self.jacobian @ direction)) + prior * direction
            step = size / np.maximum((direction * image).sum(axis=0), 1e-300)
            found += step * direction
            residual -= step * image
            if ((residual**2).sum(axis=0) <= goal).all():
                break
            scaled = residual / own
            before, size = size, (residual * scaled).sum(axis=0)
            direction = scaled + size / np.maximum(before, 1e-300) * direction
        return found


def _cholesky(matrix: Floats, diagonal: Floats | float) -> Floats:
    """The lower factor of a symmetric matrix with something added to its diagonal."""
    copy = matrix.T.copy(order="F")
    copy[np.diag_indices(len(copy))] += diagonal
    return np.asarray(lapack.dpotrf(copy, lower=1, overwrite_a=1)[0])
