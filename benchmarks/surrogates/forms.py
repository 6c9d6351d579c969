"""The forms of surrogates: evidence, its slopes in soft removal, and their exact derivatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """Evidence at some parameters, its slopes (questions × types), and derivatives of both.

    The slope at type i is Σ_r mix_r left_ri and its derivative, with blocks b of parameters,
    Σ_b own_bi e_(b,i) + Σ_r left_ri right_r; so no questions × types × parameters array is made.
    """

    evidence: Floats
    gradient: Floats
    own: Floats
    left: Floats
    right: Floats
    mix: Floats

    @property
    def slopes(self) -> Floats:
        return np.asarray((self.mix[:, :, None] * self.left).sum(axis=0))


class Mean:
    """The parts of one SLALOM (s, v, w, u) among all parameters; v may differ by question."""

    def __init__(self, counts: Floats, theta: Floats, s: slice, v: Floats, weight: int) -> None:
        shares = counts * np.exp(theta[s])
        self.total = shares.sum(axis=1) + theta[weight]
        inverse = 1.0 / self.total
        self.a = shares * inverse[:, None]
        self.mean = (self.a * v).sum(axis=1) + theta[weight + 1] * inverse
        self.soft = self.a * (v - self.mean[:, None])
        self.gradient = np.zeros((len(counts), len(theta)))  # without that by v
        self.gradient[:, s] = self.soft
        self.gradient[:, weight] = -self.mean * inverse
        self.gradient[:, weight + 1] = inverse
        self.growth = np.zeros_like(self.gradient)  # of log D
        self.growth[:, s] = self.a
        self.growth[:, weight] = inverse


class Plain:
    """A SLALOM: blocks s and v, then w, u, m and log k."""

    blocks, extra = "sv", 4

    def __init__(self, counts: Floats, first: Floats) -> None:
        """``first`` are the parameters of the SLALOM that the search begins at."""
        self.types = counts.shape[1]

    def block(self, number: int) -> slice:
        return slice(number * self.types, (number + 1) * self.types)

    def start(self, first: Floats) -> Floats:
        """The same predictions as the SLALOM's."""
        return first

    def ridge(self, on_s: float, on_v: float, stronger: float) -> Floats:
        """The prior's precision matrix; ``stronger`` on blocks that a SLALOM has not."""
        sizes = np.array([on_s if kind == "s" else on_v for kind in self.blocks])
        sizes[2:] *= stronger
        matrix = np.diag(np.append(np.repeat(sizes, self.types), np.zeros(self.extra)))
        matrix[self.block(1), self.block(1)] -= on_v / self.types  # around the values' mean
        return matrix

    def weights(self) -> list[int]:
        """Where the background's weight stands; its mass follows."""
        return [len(self.blocks) * self.types]

    def at(self, counts: Floats, theta: Floats) -> Point:
        part = self._mean(counts, theta)
        own = np.array([part.soft, part.a])
        right = np.array([-part.growth, -part.gradient])
        mix = np.outer([1.0, 0.0], np.ones(len(counts)))
        return Point(part.mean, part.gradient, own, own, right, mix)

    def _mean(self, counts: Floats, theta: Floats) -> Mean:
        part = Mean(counts, theta, self.block(0), theta[self.block(1)], self.weights()[0])
        part.gradient[:, self.block(1)] = part.a
        return part


class Exponent(Plain):
    """M · (D / D₀)^ρ: ρ stands behind u."""

    extra = 5

    def __init__(self, counts: Floats, first: Floats) -> None:
        super().__init__(counts, first)
        self.usual = float(np.median(self._mean(counts, first).total))

    def start(self, first: Floats) -> Floats:
        return np.insert(first, len(first) - 2, 0.0)

    def at(self, counts: Floats, theta: Floats) -> Point:
        part, rho = self._mean(counts, theta), theta[-3]
        log = np.log(part.total / self.usual)
        factor = np.exp(rho * log)[:, None]
        faster = rho * part.growth
        faster[:, -3] = log
        mean = part.mean[:, None]
        by_a = (rho - 1.0) * part.gradient + rho * mean * (faster - part.growth)
        by_a[:, -3] += part.mean
        return Point(
            part.mean * factor[:, 0],
            factor * (part.gradient + mean * faster),
            factor * np.array([part.soft + rho * mean * part.a, part.a]),
            np.array([part.soft, part.a]),
            factor * np.array([faster - part.growth, by_a]),
            factor[:, 0] * np.array([np.ones(len(counts)), rho * part.mean]),
        )


class TwoChannels(Plain):
    """M₁ + M₂: blocks s₁, v₁, s₂ and v₂, then w₁, u₁, w₂ and u₂."""

    blocks, extra = "svsv", 6

    def start(self, first: Floats) -> Floats:
        types = self.types
        other = np.random.default_rng(0).normal(0.0, 0.1, types)
        tail = first[2 * types :]
        return np.concatenate(
            [first[: 2 * types], other, np.zeros(types), tail[:2], tail[:1], [0.0], tail[2:]]
        )

    def weights(self) -> list[int]:
        return [4 * self.types, 4 * self.types + 2]

    def at(self, counts: Floats, theta: Floats) -> Point:
        parts = []
        for number, weight in enumerate(self.weights()):
            s, v = self.block(2 * number), self.block(2 * number + 1)
            parts.append(Mean(counts, theta, s, theta[v], weight))
            parts[-1].gradient[:, v] = parts[-1].a
        one, two = parts
        own = np.array([one.soft, one.a, two.soft, two.a])
        right = -np.array([one.growth, one.gradient, two.growth, two.gradient])
        mix = np.outer([1.0, 0.0, 1.0, 0.0], np.ones(len(counts)))
        return Point(one.mean + two.mean, one.gradient + two.gradient, own, own, right, mix)


class ByLength(Plain):
    """M with values v + x log n: blocks s, v and x. In soft removal n = Σ λ."""

    blocks = "svv"

    def __init__(self, counts: Floats, first: Floats) -> None:
        super().__init__(counts, first)
        self.usual = float(np.log(np.maximum(counts.sum(axis=1), 1.0)).mean())

    def start(self, first: Floats) -> Floats:
        return np.insert(first, 2 * self.types, np.zeros(self.types))

    def at(self, counts: Floats, theta: Floats) -> Point:
        present = np.maximum(counts.sum(axis=1), 1.0)[:, None]
        length, x = np.log(present) - self.usual, theta[self.block(2)]
        values = theta[self.block(1)] + x * length
        part = Mean(counts, theta, self.block(0), values, self.weights()[0])
        part.gradient[:, self.block(1)] = part.a
        part.gradient[:, self.block(2)] = part.a * length
        growing = part.a @ x
        by_length = -growing[:, None] * part.growth
        by_length[:, self.block(0)] += part.a * x
        by_length[:, self.block(2)] = part.a
        return Point(
            part.mean,
            part.gradient,
            np.array([part.soft, part.a, part.a * length]),
            np.array([part.soft, part.a, counts / present]),
            np.array([-part.growth, -part.gradient, by_length]),
            np.array([np.ones(len(counts)), np.zeros(len(counts)), growing]),
        )
