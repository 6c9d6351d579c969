"""The equations of a fit with more parameters than a table can hold, and what follows from them.

H = Jᵀ W J + P as in :mod:`piste.slalom.solver`, with a sparse J: conjugate gradients, and random
samples where a covariance is wanted.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from piste.types import Floats

_CLOSE, _PRODUCTS = 1e-3, 80
"""Of conjugate gradients: the residual that is small enough, and the most steps."""
_CLOSE_SAMPLE = 1e-2
"""The same for a sample, which is random itself."""
_AT_ONCE = 16
"""Samples that are solved for side by side."""


class ByProducts:
    """See :class:`~piste.slalom.solver.Equations`."""

    def __init__(self, jacobian: Any, precision: Floats, emphasis: Floats, prior: Floats) -> None:
        self.jacobian, self.precision = jacobian, precision
        self.emphasis, self.prior = emphasis, prior

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
        absorbed = self._by_blocks(self.jacobian.T @ pushed)
        return np.asarray(pushed - self.precision[:, None] * (self.jacobian @ absorbed))

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
