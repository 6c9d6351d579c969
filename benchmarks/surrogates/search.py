"""One Levenberg–Marquardt for all forms: answers, slopes and ridge, with or without saturation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import lapack

from benchmarks.surrogates.asking import Asked
from benchmarks.surrogates.forms import Floats, Plain, Point
from piste.slalom.joint import JointResult

MOST_ITERATIONS, SETTLED = 60, 1e-4
LONGEST_STEP, LEAST_WEIGHT = 3.0, 0.1
REACH, DOUBT_REACH = 0.6, 0.5
"""The prior of the saturation, as the default has it."""


class Search:
    """Levenberg–Marquardt on answers and slopes of a surrogate with or without saturation."""

    def __init__(
        self, asked: Asked, surrogate: Plain, found: JointResult, stronger: float = 1.0
    ) -> None:
        self.asked, self.surrogate = asked, surrogate
        self.saturating, self.omega = found.link is not None, found.slope_weight
        self.known = (asked.counts > 0) & np.isfinite(asked.slopes)
        self.slopes = np.where(self.known, asked.slopes, 0.0)
        # A background's weight is bounded as the default bounds it, by the whole text's.
        self.longest = asked.counts[0]
        self.least = min(LEAST_WEIGHT, found.weight)
        self.most = max(1.0, found.weight / float(self.longest @ np.exp(found.importances)))
        low, high = float(asked.answers.min()), float(asked.answers.max())
        self.prior = surrogate.ridge(*found.ridge, stronger)
        self.prior[[-2, -1], [-2, -1]] = found.noise / np.array([high - low, DOUBT_REACH]) ** 2
        self.centre = np.zeros(len(self.prior))
        self.centre[-2:] = (high + low) / 2, np.log(REACH * (high - low))
        self.fixed = np.zeros(len(self.prior), dtype=bool)
        self.fixed[-2:] = not self.saturating
        for place in surrogate.weights():
            self.fixed[place : place + 2] = found.weight <= 0

    def predict(self, theta: Floats, counts: Floats) -> Floats:
        return self._saturated(theta, self.surrogate.at(counts, theta).evidence)[0]

    def objective(self, theta: Floats, point: Point) -> float:
        fitted, first, _ = self._saturated(theta, point.evidence)
        misses = (self.slopes - first[:, None] * point.slopes) * self.known
        away = theta - self.centre
        answers = float(((self.asked.answers - fitted) ** 2).sum())
        return answers + self.omega * float((misses**2).sum()) + float(away @ self.prior @ away)

    def run(self, theta: Floats) -> tuple[Floats, float]:
        """Parameters and objective where it goes no further down."""
        point, damping, calm = self.surrogate.at(self.asked.counts, theta), 1e-2, 0
        now = self.objective(theta, point)
        for _ in range(MOST_ITERATIONS):
            matrix, downhill = self._normal(theta, point)
            held = self.fixed.copy()
            for place, low, high in self._bounds(theta):  # at a bound, and it would go beyond
                held[place] |= theta[place] <= low and downhill[place] < 0
                held[place] |= theta[place] >= high and downhill[place] > 0
            matrix[held], matrix[:, held], downhill[held] = 0.0, 0.0, 0.0
            scale = np.maximum(np.diag(matrix), 1e-12)
            while damping < 1e9:
                step = _solve(matrix + np.diag(damping * scale), downhill)
                ahead = theta + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
                for place, low, high in self._bounds(ahead):
                    ahead[place] = np.clip(ahead[place], low, high)
                with np.errstate(all="ignore"):
                    there = self.surrogate.at(self.asked.counts, ahead)
                    then = self.objective(ahead, there)
                if then < now:
                    break
                damping *= 5
            else:
                break
            calm = calm + 1 if now - then < SETTLED * now else 0
            theta, point, now, damping = ahead, there, then, max(damping / 5, 1e-9)
            if calm >= 3:
                break
        return theta, now

    def _bounds(self, theta: Floats) -> Iterator[tuple[int, float, float]]:
        """Of each background's weight, if there is one: where it stands, least and most."""
        for number, place in enumerate(self.surrogate.weights()):
            if not self.fixed[place]:
                whole = float(self.longest @ np.exp(theta[self.surrogate.block(2 * number)]))
                yield place, self.least, self.most * whole

    def _saturated(self, theta: Floats, evidence: Floats) -> tuple[Floats, Floats, Floats]:
        """What saturation makes of evidence, its slope, and its position on the curve."""
        if not self.saturating:
            return evidence, np.ones_like(evidence), np.zeros_like(evidence)
        turned = np.tanh((evidence - theta[-2]) / np.exp(theta[-1]))
        return theta[-2] + np.exp(theta[-1]) * turned, 1.0 - turned**2, turned

    def _normal(self, theta: Floats, point: Point) -> tuple[Floats, Floats]:
        """The normal equations of answers, slopes and prior."""
        fitted, first, turned = self._saturated(theta, point.evidence)
        reach, away = np.exp(theta[-1]), point.evidence - theta[-2]
        answers = first[:, None] * point.gradient
        bent = (-2.0 * turned * first / reach)[:, None] * point.gradient
        if self.saturating:
            answers[:, -2], answers[:, -1] = 1.0 - first, reach * turned - away * first
            bent[:, -2] = 2.0 * turned * first / reach
            bent[:, -1] = bent[:, -2] * away
        left, own = point.left * self.known, first[:, None] * point.own * self.known
        right = first[:, None] * point.right + point.mix[:, :, None] * bent
        misses = (self.slopes - first[:, None] * point.slopes) * self.known
        ranks, questions, types = left.shape
        flat, size = right.reshape(ranks * questions, -1), len(theta)
        both = np.einsum("rqi,tqi->rtq", left, left)
        matrix = flat.T @ np.einsum("rtq,tqp->rqp", both, right).reshape(len(flat), size)
        vector = flat.T @ (left * misses).sum(axis=2).ravel()
        place = np.arange(types)
        for number, mine in enumerate(own):
            block = self.surrogate.block(number)
            cross = (mine * left).reshape(len(flat), types).T @ flat
            matrix[block] += cross
            matrix[:, block] += cross.T
            vector[block] += (mine * misses).sum(axis=0)
            for other, theirs in enumerate(own):
                matrix[block, self.surrogate.block(other)][place, place] += (mine * theirs).sum(0)
        matrix = answers.T @ answers + self.omega * matrix + self.prior
        vector = answers.T @ (self.asked.answers - fitted) + self.omega * vector
        return matrix, vector - self.prior @ (theta - self.centre)


def _solve(matrix: Floats, right: Floats) -> Floats:
    factor, info = lapack.dpotrf(matrix, lower=1)
    return lapack.dpotrs(factor, right, lower=1)[0] if info == 0 else np.full(len(right), np.nan)
