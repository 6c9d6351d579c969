"""Curves of many examples as one: their average, and a band that holds it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from piste.evaluation.metrics.base import Average
from piste.evaluation.results import Results
from piste.types import Floats

_DRAWS = 500
_CHUNK = 2_000_000


@dataclass(frozen=True)
class Spread:
    """The average of curves at every place, and the bounds of 95 % of resampled ones."""

    centre: Floats
    low: Floats
    high: Floats
    examples: int


def spreads(results: Results, name: str, average: Average = "mean") -> dict[str, Spread]:
    """The curve of every method that has it; curves of another length than the first are left out.

    Places where a curve is NaN (fewer units than that were there to remove) don't count.
    """
    found = {}
    for method in results.methods:
        curves = [
            np.asarray(row.curves[name], dtype=np.float64)
            for row in results.rows
            if row.method == method and len(row.curves.get(name, ()))
        ]
        curves = [curve for curve in curves if len(curve) == len(curves[0])]
        if curves and np.isfinite(np.concatenate(curves)).any():
            found[method] = spread(np.stack(curves), average)
    return found


def spread(curves: Floats, average: Average = "mean", *, seed: int = 0) -> Spread:
    """Average and band of curves (examples × places), by resampling whole examples.

    >>> one = spread(np.array([[1.0, 0.0], [1.0, 0.5], [1.0, np.nan]]))
    >>> one.centre.tolist(), one.low.tolist(), one.high.tolist()
    ([1.0, 0.25], [1.0, 0.0], [1.0, 0.5])
    """
    n, places = curves.shape
    curves = np.where(np.isfinite(curves), curves, np.nan)
    put_together = np.nanmean if average == "mean" else np.nanmedian
    rng = np.random.default_rng(seed)
    rows = max(_CHUNK // (n * places), 1)
    with warnings.catch_warnings():
        # A place where no example has a number is NaN, and that is right.
        warnings.simplefilter("ignore", category=RuntimeWarning)
        drawn = [
            put_together(curves[rng.integers(0, n, (min(rows, _DRAWS - start), n))], axis=1)
            for start in range(0, _DRAWS, rows)
        ]
        low, high = np.nanquantile(np.concatenate(drawn), [0.025, 0.975], axis=0)
        return Spread(put_together(curves, axis=0), low, high, n)
