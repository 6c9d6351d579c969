"""Answers and slopes of a saturating SLALOM, and the normal equations they make.

With E_i = c_i e^{s_i}, D = w + Σ E_i, a_i = E_i / D and the background's mass u, the evidence is
Z = Σ a_i v_i + u / D and the expected answer F = h(Z). A slope is the derivative with respect to
log λ_i of soft removal (eq. 5): G_i = h'(Z) H_i with H_i = a_i (v_i − Z).

The Jacobian of all slopes of one question has a diagonal and two ranks:

    ∂G_i/∂θ = h' H_i e_{s_i} + h' a_i e_{v_i} + H_i α + a_i β,

with α = −h' a_k on s_k, −h'/D on w, plus h'' ∂Z/∂θ; β = −h' H_k on s_k, −h' a_k on v_k, h' Z/D on w
and −h'/D on u. So the normal matrix of questions × units equations is a few products of questions ×
parameters matrices, and the Jacobian itself is never written down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Normal: TypeAlias = tuple[Floats, Floats]
"""The matrix JᵀJ and the vector Jᵀr."""

EXTRA = 4
"""Parameters behind the importances and the values: w, u, m and log k."""


@dataclass(frozen=True)
class Equations:
    """What was asked (questions × types), answered, and with what slopes.

    ``known`` tells which slopes there are; without any it is None, as are ``slopes``.
    """

    counts: Floats
    outputs: Floats
    slopes: Floats | None = None
    known: Floats | None = None

    @property
    def types(self) -> int:
        return self.counts.shape[1]

    @property
    def parameters(self) -> int:
        return 2 * self.types + EXTRA


class State:
    """Everything that follows from one choice of the parameters (s, v, w, u, m, log k)."""

    def __init__(self, equations: Equations, theta: Floats, saturating: bool) -> None:
        self.equations, self.theta, self.saturating = equations, theta, saturating
        types = equations.types
        self.s, self.v = theta[:types], theta[types : 2 * types]
        self.weight, self.mass, self.middle, self.log_reach = theta[2 * types :]
        shares = equations.counts * np.exp(self.s)
        self.inverse = 1.0 / (shares.sum(axis=1) + self.weight)
        self.a = shares * self.inverse[:, None]
        self.evidence = self.a @ self.v + self.mass * self.inverse
        self.first, self.second = np.ones_like(self.evidence), np.zeros_like(self.evidence)
        self.fitted = self.evidence
        if saturating:
            reach = np.exp(self.log_reach)
            self.turned = np.tanh((self.evidence - self.middle) / reach)
            self.fitted = self.middle + reach * self.turned
            self.first = 1.0 - self.turned**2
            self.second = -2.0 * self.turned * self.first / reach
        self.residual = equations.outputs - self.fitted
        self.soft = self.a * (self.v - self.evidence[:, None])  # H
        self.misses: Floats | None = None
        if equations.slopes is not None:
            miss = equations.slopes - self.first[:, None] * self.soft
            self.misses = miss * equations.known

    @property
    def squares(self) -> tuple[float, float]:
        """Squared errors of the answers and of the slopes."""
        slopes = 0.0 if self.misses is None else float((self.misses**2).sum())
        return float(self.residual @ self.residual), slopes

    def normal(self) -> tuple[Normal, Normal | None]:
        """The normal equations of the answers, and of the slopes if there are any."""
        inside = self._evidence_jacobian()
        jacobian = self.first[:, None] * inside
        if self.saturating:
            reach = np.exp(self.log_reach)
            jacobian[:, -2] = 1.0 - self.first
            jacobian[:, -1] = reach * self.turned - (self.evidence - self.middle) * self.first
        answers = jacobian.T @ jacobian, jacobian.T @ self.residual
        return answers, None if self.misses is None else self._slope_normal(inside, self.misses)

    def _evidence_jacobian(self) -> Floats:
        types = self.equations.types
        inside = np.zeros((len(self.a), self.equations.parameters))
        inside[:, :types] = self.soft
        inside[:, types : 2 * types] = self.a
        inside[:, -4] = -self.evidence * self.inverse
        inside[:, -3] = self.inverse
        return inside

    def _slope_normal(self, inside: Floats, misses: Floats) -> Normal:
        types, first = self.equations.types, self.first[:, None]
        alpha = self.second[:, None] * inside
        beta = np.zeros_like(alpha)
        alpha[:, :types] -= first * self.a
        alpha[:, -4] -= self.first * self.inverse
        beta[:, :types] = -first * self.soft
        beta[:, types : 2 * types] = -first * self.a
        beta[:, -4] = self.first * self.evidence * self.inverse
        beta[:, -3] = -self.first * self.inverse
        if self.saturating:
            reach = np.exp(self.log_reach)
            alpha[:, -2] = 2.0 * self.turned * self.first / reach
            alpha[:, -1] = alpha[:, -2] * (self.evidence - self.middle)
        soft, a = self.soft * self.equations.known, self.a * self.equations.known
        own_s, own_v = first * soft, first * a
        matrix = np.zeros((self.equations.parameters,) * 2)
        place = np.arange(types)
        across = (own_s * own_v).sum(axis=0)
        matrix[place, place] = (own_s**2).sum(axis=0)
        matrix[types + place, types + place] = (own_v**2).sum(axis=0)
        matrix[place, types + place] = matrix[types + place, place] = across
        cross = np.zeros_like(matrix)
        cross[:types] = (own_s * soft).T @ alpha + (own_s * a).T @ beta
        cross[types : 2 * types] = (own_v * soft).T @ alpha + (own_v * a).T @ beta
        matrix += cross + cross.T
        both = (soft * a).sum(axis=1)[:, None]
        matrix += alpha.T @ ((soft**2).sum(axis=1)[:, None] * alpha + both * beta)
        matrix += beta.T @ (both * alpha + (a**2).sum(axis=1)[:, None] * beta)
        vector = alpha.T @ (soft * misses).sum(axis=1) + beta.T @ (a * misses).sum(axis=1)
        vector[:types] += (own_s * misses).sum(axis=0)
        vector[types : 2 * types] += (own_v * misses).sum(axis=0)
        return matrix, vector
