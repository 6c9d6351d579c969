"""How well predictions meet the answers to questions that were not fitted."""

from __future__ import annotations

import numpy as np

from piste.explanation import Fidelity
from piste.types import Floats


def measure_fidelity(expected: Floats, answered: Floats) -> Fidelity:
    """R² and mean squared error of predictions, over all outputs, with bootstrap intervals."""
    if len(answered) < 2:
        return Fidelity(float("nan"), float("nan"), len(answered))
    r2 = r_squared(expected, answered)
    mse = float(((expected - answered) ** 2).mean())
    if not np.isfinite(r2):
        return Fidelity(r2, mse, len(answered))
    r2_range, mse_range = _ranges(expected, answered)
    return Fidelity(r2, mse, len(answered), r2_range, mse_range)


def r_squared(expected: Floats, answered: Floats) -> float:
    """1 − Σ(y − ŷ)² / Σ(y − ȳ)²; of equal answers 1 if they are predicted exactly, else NaN."""
    if len(answered) < 2:
        return float("nan")
    residual = float(((expected - answered) ** 2).sum())
    spread = float(((answered - answered.mean(axis=0)) ** 2).sum())
    noise = 1e-24 * float((answered**2).sum())  # what rounding alone makes of equal numbers
    if spread <= noise:
        return 1.0 if residual <= max(noise, 1e-18) else float("nan")
    return 1.0 - residual / spread


_RESAMPLED = 1000


def _ranges(expected: Floats, answered: Floats) -> tuple[tuple[float, float], ...]:
    """95 % bootstrap intervals of R² and mean squared error over the questions."""
    count = len(answered)
    flat = answered.reshape(count, -1)
    misses = ((expected - answered) ** 2).reshape(count, -1).sum(axis=1)
    squares = (flat**2).sum(axis=1)
    times = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), _RESAMPLED)
    missed = times @ misses
    spread = times @ squares - ((times @ flat) ** 2).sum(axis=1) / count
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = np.where(spread > 1e-12 * squares.sum(), 1.0 - missed / spread, np.nan)
    found = []
    for numbers in (r2, missed / flat.size):
        low, high = (
            np.nanquantile(numbers, [0.025, 0.975])
            if np.isfinite(numbers).any()
            else (np.nan, np.nan)
        )
        found.append((float(low), float(high)))
    return tuple(found)
