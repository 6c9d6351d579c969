"""How far answers lie from the surrogate: a variance for every question.

What a surrogate misses is noise in the evidence, before saturation: on a plateau of the answers
hardly any of it gets through. It also differs between few and many units. So the variance of a
question with n units is

    σ² · n^β · (ρ + (∂F/∂Z)²) / (1 + ρ)

with σ², β and ρ by likelihood. In the fit a question about one unit alone counts e² times as much
as its variance asks for, because a unit's value is what the model says of it alone, and so does
the largest question, the text that is explained; standard errors take it into account.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from piste.types import Floats

EMPHASIS = float(np.exp(2.0))
"""How much more than by its variance a question about one unit, or about all, counts."""
_LEAKS = (0.0025, 0.01, 0.04, 0.16, 0.64)
"""Values of ρ that are tried."""
_STEEPEST = 0.4
"""The largest |β|: more would take the long questions out of the fit."""
_STEP = 0.4
_PULL = 8.0
"""Of β to 0, in squared errors: a few questions say nothing on it."""


@dataclass(frozen=True)
class Noise:
    """σ² of every output, β, and ρ (infinite without a saturation)."""

    scale: Floats
    by_size: float = 0.0
    leak: float = np.inf

    def variances(self, log_sizes: Floats, slope: Floats) -> Floats:
        """Questions × outputs, from the logarithms of sizes and the slope of the link."""
        return self.scale * _shape(log_sizes, slope, self.by_size, self.leak)

    def updated(
        self, residuals: Floats, free: Floats, log_sizes: Floats, slope: Floats, floor: Floats
    ) -> Noise:
        """A step towards the likeliest noise; ``free`` is 1 − leverage of every answer."""
        squares = residuals**2

        def scale_for(leak: float) -> tuple[Floats, Floats]:
            shape = _shape(log_sizes, slope, self.by_size, leak)
            return np.maximum((squares / shape).sum(axis=0) / free.sum(axis=0), floor), shape

        def loss(leak: float) -> float:
            scale, shape = scale_for(leak)
            return float((free * np.log(scale * shape)).sum())

        leak = self.leak if np.isinf(self.leak) else float(min(_LEAKS, key=loss))
        scale, shape = scale_for(leak)
        excess = squares / (scale * shape)
        centred = (log_sizes - log_sizes.mean())[:, None]
        push = ((excess - free) * centred).sum() - _PULL * self.by_size
        stiffness = (excess * centred**2).sum() + _PULL
        step = float(np.clip(push / stiffness, -_STEP, _STEP))
        by_size = float(np.clip(self.by_size + step, -_STEEPEST, _STEEPEST))
        return Noise(scale, by_size, leak)


def log_sizes(sizes: Floats) -> Floats:
    """Logarithms of numbers of units; no unit at all is above 0, for it is none about one alone."""
    return np.where(sizes > 0, np.log(np.maximum(sizes, 1.0)), 1e-9)


def emphasis(sizes: Floats) -> Floats:
    """How much more questions count than by their variance, questions × 1."""
    told = (log_sizes(sizes) <= 0) | (sizes == sizes.max())
    return np.where(told, EMPHASIS, 1.0)[:, None]


def _shape(log_sizes: Floats, slope: Floats, by_size: float, leak: float) -> Floats:
    passed = np.ones_like(slope) if np.isinf(leak) else (leak + slope**2) / (1.0 + leak)
    return np.exp(by_size * log_sizes)[:, None] * passed
