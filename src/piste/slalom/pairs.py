"""Pairs of units that say something together that neither says apart.

The family has no term for pairs. What a pair adds to the evidence beyond its units,

    Z(S) + δ · [i ∈ S and j ∈ S],

is estimated from what the fit leaves of the answers. With r the residuals, W their precisions, x
the changes of all predictions by δ, and M what the fitted parameters cannot make up for,

    δ = xᵀ M r / xᵀ M x        M = W − W J H⁻¹ Jᵀ W        H = Jᵀ W J + P

and its standard error is √(xᵀ M W⁻¹ M x) / xᵀ M x. Here every answer counts by its variance alone:
the text itself, which the fit counts several times, would decide among few answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from piste.slalom.family import MOST_DENSE, Point, Questions
from piste.slalom.fitting import Fit
from piste.slalom.solver import equations
from piste.slalom.surrogate import log_sizes
from piste.types import Counts, Flags, Floats, Ints

MOST = 6
"""Pairs of a text at most: more are neither read nor well known."""
REACH = 3
"""How far apart the two may stand, in units."""
_CHANCE = 0.01
"""How often a pair is found where there is none, over all that were tried."""
_SMALLEST = 0.1
"""Of the answers' spread: an effect below is of no use to a reader, however certain."""
_LEAST = 5
"""Answers with both units, and without one of them, that an estimate needs."""


@dataclass(frozen=True)
class PairEffect:
    """What two units add to the evidence when both are there."""

    first: int
    second: int
    effect: float
    error: float


def strongest_pairs(
    pairs: Sequence[PairEffect], share: float = _SMALLEST
) -> tuple[PairEffect, ...]:
    """The pairs that matter, the strongest first.

    They differ from 0 by two standard errors and are not below this share of the strongest: fitted
    together with others, an effect may turn out to be nothing.

    >>> found = [PairEffect(0, 1, 0.001, 0.1), PairEffect(1, 2, -1.0, 0.1)]
    >>> [pair.effect for pair in strongest_pairs(found)]
    [-1.0]
    """
    sure = [pair for pair in pairs if abs(pair.effect) > 2 * pair.error]
    order = sorted(sure, key=lambda pair: -abs(pair.effect))
    return tuple(pair for pair in order if abs(pair.effect) >= share * abs(order[0].effect))


def neighbours(able: Flags, segments: Ints) -> Ints:
    """Pairs of able units of one segment that stand near each other, pairs × 2.

    >>> neighbours(np.array([True, True, False, True]), np.zeros(4)).tolist()
    [[0, 1], [0, 3], [1, 3]]
    """
    every = [
        (one, other)
        for one in range(len(able))
        for other in range(one + 1, min(one + REACH + 1, len(able)))
        if able[one] and able[other] and segments[one] == segments[other]
    ]
    return np.array(every, dtype=np.int64).reshape(-1, 2)


def can_have_pairs(fit: Fit, outputs: Floats) -> bool:
    """Whether pairs can be looked for: one output, errors, and a text that is not too long."""
    return (
        fit.posterior is not None and outputs.ndim == 1 and fit.posterior.layout.size <= MOST_DENSE
    )


def find_pairs(
    fit: Fit,
    counts: Counts,
    outputs: Floats,
    together: Flags,
    pairs: Ints,
    most: int = MOST,
) -> tuple[PairEffect, ...]:
    """The pairs that stand out from chance, the strongest first.

    ``counts`` (questions × types) and ``outputs`` are what was fitted, ``together`` (questions ×
    pairs) says which questions hold both units of ``pairs`` (pairs × 2). A pair stands out if its
    effect is further from 0 than that of the strongest of so many would be by chance in one case
    of a hundred, and larger than a tenth of the answers' spread. They are found one after the
    other, each given those before it.

    >>> from itertools import product
    >>> from piste.slalom import fit
    >>> kept = np.array(list(product([0.0, 1.0], repeat=5)))
    >>> answers = kept @ [1.0, 0.5, -2.0, 0.0, 0.3] + 3.0 * kept[:, 1] * kept[:, 2]
    >>> answers += np.random.default_rng(0).normal(0, 0.1, 32)
    >>> pairs = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
    >>> both = kept[:, pairs].all(axis=2)
    >>> found = find_pairs(fit(kept, answers), kept, answers, both, pairs)
    >>> [(pair.first, pair.second, round(pair.effect)) for pair in found]
    [(1, 2, 3)]
    """
    posterior = fit.posterior
    assert posterior is not None
    enough = np.minimum(together.sum(axis=0), (~together).sum(axis=0)) >= _LEAST
    if not enough.any():
        return ()
    asked = Questions(counts[:, fit.active])
    point = Point(asked, posterior.layout, posterior.theta)
    variances = posterior.noise.variances(log_sizes(asked.sizes), point.slope)[:, 0]
    changes = together * point.slope
    ones = np.ones_like(variances)
    left = equations(point.jacobian(), 1.0 / variances, ones, posterior.prior).unexplained(changes)
    missed = left.T @ (outputs - point.predicted[:, 0])
    bound = -float(ndtri(_CHANCE / (2 * int(enough.sum()))))
    sizes = np.einsum("ij,ij->j", changes, left)
    least, smallest = 1e-6 * float(sizes.max()), _SMALLEST * float(outputs.std())
    found: list[PairEffect] = []
    while len(found) < most:
        able = enough & (sizes > least)
        errors = np.sqrt(np.maximum(variances @ left**2, 1e-300))
        strength = np.where(able, missed / errors, 0.0)
        best = int(np.argmax(np.abs(strength)))
        if abs(strength[best]) < bound:
            break
        enough[best] = False
        size, (first, second) = float(sizes[best]), pairs[best].tolist()
        if abs(missed[best] / size) < smallest:
            continue
        effect = float(missed[best]) / size
        found.append(PairEffect(first, second, effect, float(errors[best]) / size))
        alike = changes[:, best] @ left
        missed = missed - effect * alike
        left = left - np.outer(left[:, best], alike / size)
        sizes = sizes - alike**2 / size
    return tuple(found)
