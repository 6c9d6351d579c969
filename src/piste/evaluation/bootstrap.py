"""How sure an average over examples is: percentile bootstrap, paired for comparisons."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from piste.errors import PisteError
from piste.evaluation.metrics.base import Average
from piste.evaluation.results import Difference, Interval, Results
from piste.validation import check_count

# Numbers drawn at once: a few dozen megabytes.
_CHUNK = 4_000_000


def interval(
    values: ArrayLike,
    *,
    average: Average = "mean",
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Interval:
    """The average and the interval that holds it in ``level`` of ``draws`` resampled examples.

    Values that are NaN are left out. A single example says nothing of its spread: its bounds
    are NaN; of no example the average is NaN, too.

    >>> interval([1, 2, 3, 4], draws=1000)
    Interval(centre=2.5, low=1.5, high=3.5, examples=4)
    >>> interval([1, 2, 900], average="median").centre
    2.0
    >>> interval([0.5])
    Interval(centre=0.5, low=nan, high=nan, examples=1)
    """
    check_count("draws", draws)
    if not 0 < level < 1:
        raise PisteError(f"level: expected a number between 0 and 1, got {level!r}.")
    numbers = np.asarray(values, dtype=np.float64).ravel()
    numbers = numbers[~np.isnan(numbers)]
    n = len(numbers)
    put_together = np.mean if average == "mean" else np.median
    centre = float(put_together(numbers)) if n else math.nan
    if n < 2:
        return Interval(centre, math.nan, math.nan, n)
    rng = np.random.default_rng(seed)
    rows = max(_CHUNK // n, 1)
    averages = np.concatenate(
        [
            put_together(numbers[rng.integers(0, n, (min(rows, draws - start), n))], axis=1)
            for start in range(0, draws, rows)
        ]
    )
    low, high = np.quantile(averages, [(1 - level) / 2, (1 + level) / 2])
    return Interval(centre, float(low), float(high), n)


def difference(
    first: Mapping[str, float],
    second: Mapping[str, float],
    *,
    average: Average = "mean",
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Interval:
    """The average of first − second over the examples both have, with its interval.

    >>> difference({"a": 1.0, "b": 2.0, "c": 9.0}, {"a": 0.5, "b": 1.5, "d": 7.0})
    Interval(centre=0.5, low=0.5, high=0.5, examples=2)
    """
    paired = [first[example] - second[example] for example in first if example in second]
    return interval(paired, average=average, level=level, draws=draws, seed=seed)


def differences(
    results: Results,
    figure: str,
    reference: str,
    *,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> list[Difference]:
    """Every other method minus the reference, paired by example."""
    if figure not in results.figures:
        raise PisteError(f"There is no figure {figure!r}: there are {', '.join(results.figures)}.")
    if reference not in results.methods:
        raise PisteError(
            f"There is no method {reference!r} in these results: there are "
            f"{', '.join(results.methods)}."
        )
    against = results.values(reference, figure)
    return [
        Difference(
            figure,
            method,
            reference,
            difference(
                results.values(method, figure),
                against,
                average=results.figures[figure].average,
                level=level,
                draws=draws,
                seed=seed,
            ),
        )
        for method in results.methods
        if method != reference
    ]


def summary(
    results: Results, *, level: float = 0.95, draws: int = 2000, seed: int = 0
) -> dict[tuple[str, str], Interval]:
    """The average of every figure of every method; pairs without any number are left out."""
    found: dict[tuple[str, str], Interval] = {}
    for method in results.methods:
        for name, figure in results.figures.items():
            numbers = list(results.values(method, name).values())
            if numbers:
                found[method, name] = interval(
                    numbers, average=figure.average, level=level, draws=draws, seed=seed
                )
    return found
