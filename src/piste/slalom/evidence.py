"""How strong the prior should be: MacKay's fixed point of the marginal likelihood."""

from __future__ import annotations

import numpy as np

from piste.slalom.problem import Floats, Point, Problem, Strengths

# Where a model is nearly additive, only v·e^s is determined: values could grow without bound while
# importances fall. So the values' spread is estimated as if this many more units had values of the
# size of the model's own outputs; it costs a point of R² at most and keeps both scores readable.
DOUBT = 20.0
# Likewise for importances, as if this many more units had a spread of 1: where the data say little
# of them, their prior must not shrink to a point that claims to know.
DOUBT_S = 5.0


def known_parameters(problem: Problem, ridge: Strengths, traces: Strengths) -> Strengths:
    """How many importances and values the data determine, and not the prior (MacKay's γ)."""
    whole_v = problem.types * problem.dimensions
    return (
        min(max(problem.types - ridge[0] * traces[0], 1e-3), problem.types),
        min(max(whole_v - ridge[1] * traces[1], 1e-3), whole_v),
    )


def noise_at(problem: Problem, point: Point, known: Strengths) -> float:
    """Residual variance; the background has parameters too, the common scale of weights none."""
    background = (1 + problem.dimensions) * int(problem.background)
    free = problem.outputs.size - sum(known) - background + 1
    return point.rss / max(free, 1.0)


def updated_ridge(problem: Problem, point: Point, centre: Floats, known: Strengths) -> Strengths:
    """One update of (λ_s, λ_v) = noise against the spread that importances and values have."""
    noise = noise_at(problem, point, known)
    noise = max(noise, 1e-20 * max(problem.variance / problem.dimensions, 1e-300))
    spread = float(((point.linear[: problem.types] - centre) ** 2).sum())
    spread_v = (spread + DOUBT * problem.variance) / (known[1] + DOUBT * problem.dimensions)
    spread_s = (float(point.s @ point.s) + DOUBT_S) / (known[0] + DOUBT_S)
    return bounded(noise / spread_s, noise / max(spread_v, 1e-12))


def bounded(first: float, second: float) -> Strengths:
    """Strengths in the range where they are told from none and from certainty."""
    return float(np.clip(first, 1e-24, 1e8)), float(np.clip(second, 1e-24, 1e8))


# Ratios of successive steps that are taken for steady, the largest step that is prolonged, and how
# often: where it does not help soon, it only keeps the strengths moving.
_LEAST_RATIO, _MOST_RATIO = 0.2, 0.75
_MOST_PROLONGED = 0.5
_PROLONGATIONS = 3


class Acceleration:
    """Goes further where the fixed point is approached by steps in a steady ratio (Aitken)."""

    def __init__(self) -> None:
        self._last: Floats | None = None
        self._left = _PROLONGATIONS

    def __call__(self, ridge: Strengths, updated: Strengths) -> Strengths:
        """The strengths to go on with."""
        move = np.log(updated) - np.log(ridge)
        last, self._last = self._last, move
        if last is None or not self._left or float(np.abs(move).max()) > _MOST_PROLONGED:
            return updated
        ratio = float(move @ last) / max(float(last @ last), 1e-300)
        if ratio < _LEAST_RATIO:
            return updated
        self._last = None
        self._left -= 1
        ahead = np.exp(np.log(ridge) + move / (1 - min(ratio, _MOST_RATIO)))
        return bounded(float(ahead[0]), float(ahead[1]))


def between(one: Strengths, other: Strengths) -> Strengths:
    """Half the way, for strengths that go to and fro."""
    return float(np.sqrt(one[0] * other[0])), float(np.sqrt(one[1] * other[1]))


def distance(one: Strengths, other: Strengths) -> float:
    """The larger change of the two logarithms."""
    return max(abs(float(np.log(a / b))) for a, b in zip(one, other, strict=True))
