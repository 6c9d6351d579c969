"""Concept scores and how sure they are: intervals, tests against random sets, many tests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from piste.concepts.report import SURE, ConceptScore
from piste.concepts.request import ClassExamples
from piste.concepts.sensitivity import KINDS, Kind, Sensitivities
from piste.concepts.vectors import FittedVectors
from piste.types import Floats

Correction: TypeAlias = Literal["holm", "bh"]
CORRECTIONS: tuple[str, ...] = ("holm", "bh")

LEVEL = 0.95
_DRAWS = 1000
_EQUAL = 1e-9
"""Spread of shares below which they are all the same."""


def two_way_interval(hits: ArrayLike, seed: int = 0) -> tuple[float, float]:
    """95 % interval of the mean of a vectors × examples matrix, both drawn anew.

    So it covers that other vectors might have been fitted, and other examples looked at.

    >>> two_way_interval(np.ones((5, 8)))
    (1.0, 1.0)
    """
    matrix = np.asarray(hits, dtype=np.float64)
    rng = np.random.default_rng(seed)
    vectors, examples = (
        rng.multinomial(count, np.full(count, 1 / count), _DRAWS) / count for count in matrix.shape
    )
    means = np.einsum("dv,ve,de->d", vectors, matrix, examples, optimize=True)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def range_of(values: ArrayLike) -> tuple[float, float]:
    """What holds 95 % of the values."""
    low, high = np.quantile(np.asarray(values), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def as_random(value: float, random: ArrayLike, *, above: bool = False) -> float:
    """Two-sided p that a value is one more draw from where the random ones came from.

    t = (value − mean) / (s · √(1 + 1/n)) with n − 1 degrees of freedom. This is no test of means:
    however many random values there are, a value that lies among them stays unremarkable. With
    ``above`` only larger values are remarkable.

    >>> round(as_random(0.5, [-1.0, 0.0, 1.0]), 2), as_random(50.0, [-1.0, 0.0, 1.0]) < 0.001
    (0.71, True)
    """
    draws = np.asarray(random, dtype=np.float64)
    count = len(draws)
    spread = float(draws.std(ddof=1)) * math.sqrt(1 + 1 / count)
    away = value - float(draws.mean())
    if spread <= 1e-12 * abs(away) or spread == 0:
        return 0.0 if away > 0 or (away < 0 and not above) else 1.0
    if above:
        return float(stats.t.sf(away / spread, count - 1))
    return float(2 * stats.t.sf(abs(away) / spread, count - 1))


def welch(first: ArrayLike, second: ArrayLike) -> float:
    """Two-sided p of Welch's t-test that two means are equal."""
    one, other = (np.asarray(values, dtype=np.float64) for values in (first, second))
    means, spreads = (one.mean(), other.mean()), (one.std(ddof=1), other.std(ddof=1))
    if max(spreads) < _EQUAL:
        return 1.0 if abs(means[0] - means[1]) < _EQUAL else 0.0
    # From moments: scores may all be the same, of which scipy complains when it is given them.
    found = stats.ttest_ind_from_stats(
        means[0], spreads[0], len(one), means[1], spreads[1], len(other), equal_var=False
    )
    return float(found.pvalue)


def against_half(scores: ArrayLike) -> float:
    """Two-sided p of the one-sample t-test that the mean score is 0.5."""
    values = np.asarray(scores, dtype=np.float64)
    if np.ptp(values) < _EQUAL:
        return 1.0 if abs(values[0] - 0.5) < _EQUAL else 0.0
    return float(stats.ttest_1samp(values, 0.5).pvalue)


def corrected(chances: Sequence[float], how: Correction) -> Floats:
    """p-values for many tests at once: Holm's (any one false alarm) or Benjamini and Hochberg's.

    >>> corrected([0.01, 0.04, 0.03], "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    >>> corrected([0.01, 0.04, 0.03], "bh").round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    values = np.asarray(chances, dtype=np.float64)
    if not values.size:
        return values
    if how == "bh":
        adjusted: Floats = stats.false_discovery_control(values)
        return adjusted
    order = np.argsort(values)
    steps = values[order] * np.arange(len(values), 0, -1)
    holm = np.empty_like(values)
    holm[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return holm


def tested_scores(
    of: ClassExamples,
    layer: int,
    kind: Kind,
    found: Sensitivities,
    fitted: FittedVectors,
    seed: int,
) -> Iterator[ConceptScore]:
    """Every concept's score against those of the random sets; not corrected yet."""
    random_means = found.random.mean(axis=(1, 2))
    random_shares = (found.random > 0).mean(axis=2)
    low, high = range_of(random_shares.mean(axis=1))
    for name, numbers in found.concepts.items():
        hits = numbers > 0
        shares = hits.mean(axis=1)
        accuracy = float(fitted.accuracies[name].mean())
        accuracy_low, accuracy_high = range_of(fitted.accuracies[name])
        interval = two_way_interval(hits, seed)
        p = as_random(float(numbers.mean()), random_means)
        yield ConceptScore(
            concept=name,
            target=of.name,
            layer=layer,
            kind=kind,
            score=float(shares.mean()),
            low=interval[0],
            high=interval[1],
            sensitivity=float(numbers.mean()),
            random_score=float(random_shares.mean()),
            random_low=low,
            random_high=high,
            p=p,
            p_corrected=p,
            p_welch=welch(shares, random_shares[:, 0]),
            p_half=against_half(shares),
            accuracy=accuracy,
            accuracy_low=accuracy_low,
            accuracy_high=accuracy_high,
            random_accuracy=float(fitted.random_accuracies.mean()),
            separable=as_random(accuracy, fitted.random_accuracies, above=True) < SURE,
        )


def correct_scores(scores: Sequence[ConceptScore], how: Correction) -> tuple[ConceptScore, ...]:
    """For all concepts, classes and layers of a kind at once: kinds are views of one question."""
    found = list(scores)
    for kind in KINDS:
        places = [place for place, one in enumerate(scores) if one.kind == kind]
        chances = corrected([scores[place].p for place in places], how)
        for place, p in zip(places, chances, strict=True):
            found[place] = replace(found[place], p_corrected=float(p))
    return tuple(found)
