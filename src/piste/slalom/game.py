"""Shapley values and interactions of the answer that the surrogate expects.

The integrals that make those of the paper's SLALOM exact (:mod:`piste.slalom.shapley`) need a
ratio of sums, and an additive model needs none. In every other case few players are done by all
their sets; of more, orders of joining are drawn, each with its reverse, and what that leaves open
counts as an error. Either way values add up to F(all) − F(∅) exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np

from piste.slalom.parameters import Parameters
from piste.slalom.shapley import interactions as interactions_of_a_mean
from piste.slalom.shapley import shapley as shapley_of_a_mean
from piste.types import Floats, Ints

_FEW = 11
"""Players of whom all 2,048 sets are looked at."""
_PAIRS = 384
_MOST = 1_000_000
"""Players × pairs of orders × points that are drawn at most."""
_PAIRS_OF_ERRORS = (4, 48)  # from and to: a standard error is good enough to a tenth
_SETS = 256
"""Sets that interactions are averaged over."""
_AT_ONCE = 250_000  # numbers per array


def shapley(parameters: Parameters, players: Ints) -> tuple[Floats, Floats]:
    """Values of all types at the first point, and their errors from drawing orders.

    ``players`` has the type of every unit; a value is that of one copy.

    >>> from piste.slalom import Slalom
    >>> from piste.slalom.link import Saturation
    >>> slalom = Slalom(np.array([9.0, 0.0]), np.zeros(2), link=Saturation(0.0, 2.0))
    >>> values, errors = shapley(Parameters.of(slalom), np.array([0, 1]))
    >>> values.round(3).tolist(), errors.tolist()
    ([1.978, -0.022], [0.0, 0.0])
    """
    types = len(parameters.importances)
    if parameters.link is None and parameters.mixing[0] == 0.0:
        return parameters.evidence[:, 0], np.zeros(types)
    if parameters.link is None and parameters.mixing[0] == 1.0:
        return _of_a_mean(parameters, players), np.zeros(types)
    if len(players) <= _FEW:
        return _over_sets(parameters, players)[:, 0], np.zeros(types)
    sums, squares = np.zeros(types), np.zeros(types)
    pairs = int(np.clip(_MOST // len(players), 8, _PAIRS))
    for orders in _drawn(len(players), pairs):
        gains = _gains(parameters, players[orders])[..., 0]
        found = np.stack(
            [_per_type(g, players[o], types) for g, o in zip(gains, orders, strict=True)]
        )
        both = (found[0::2] + found[1::2]) / 2
        sums += both.sum(axis=0)
        squares += (both**2).sum(axis=0)
    mean = sums / pairs
    return mean, np.sqrt(np.maximum(squares / pairs - mean**2, 0.0) / max(pairs - 1, 1))


def shapley_at(parameters: Parameters, players: Ints) -> Floats:
    """Values of all types at every point (types × points), from few orders: for errors."""
    types = len(parameters.importances)
    if parameters.link is None and not parameters.mixing.any():
        return parameters.evidence
    if len(players) <= _FEW:
        return _over_sets(parameters, players)
    found = np.zeros((types, len(parameters.base)))
    each = 8 * len(players) * len(parameters.base)
    pairs = int(np.clip(_MOST // each, *_PAIRS_OF_ERRORS))
    for orders in _drawn(len(players), pairs):
        for order in orders:
            gains = _gains(parameters, players[order][None])[0]
            found += _per_type(gains, players[order], types)
    return found / (2 * pairs)


def interactions(parameters: Parameters, players: Ints) -> Floats:
    """Pairwise Shapley interactions of the units, players × players, zero on the diagonal.

    I_ij = ∫_0^1 E_{S∼Bernoulli(q), i,j∉S}[F(S∪ij) − F(S∪i) − F(S∪j) + F(S)] dq. Exact for an
    additive model and the paper's SLALOM, else a mean over sets that are drawn evenly in q.
    """
    count = len(players)
    if parameters.link is None and parameters.mixing[0] == 0.0:
        return np.zeros((count, count))
    if parameters.link is None and parameters.mixing[0] == 1.0:
        values = (parameters.base + parameters.evidence)[players, 0]
        return interactions_of_a_mean(
            values,
            parameters.importances[players, 0],
            background=_background(parameters),
            empty=float(parameters.base[0]),
        )
    rng = np.random.default_rng(0)
    weights, parts = parameters.weights[players, 0], parameters.parts[players, 0]
    always = [float(one[0]) for one in parameters.always]
    total = np.zeros((count, count))
    for number in range(_SETS):
        q = (number + rng.random()) / _SETS
        present = (rng.random(count) < q).astype(np.float64)
        kept = always[0] + present @ weights, always[1] + present @ parts
        # Of a pair, both are first taken out of the set, and then put in or not.
        out_w, out_p = present * weights, present * parts
        without_w = kept[0] - (out_w[:, None] + out_w[None, :])
        # What rounding leaves when both were all there was is nothing.
        without_w = np.where(without_w > 1e-12 * kept[0], without_w, 0.0)
        without_p = kept[1] - (out_p[:, None] + out_p[None, :])
        for first, second, sign in ((1, 1, 1.0), (1, 0, -1.0), (0, 1, -1.0), (0, 0, 1.0)):
            w = without_w + (first * weights[:, None] + second * weights[None, :])
            p = without_p + (first * parts[:, None] + second * parts[None, :])
            total += sign * parameters.answer(parameters.gathered(w, p))
    np.fill_diagonal(total, 0.0)
    return (total + total.T) / (2 * _SETS)


def _background(parameters: Parameters) -> tuple[float, float]:
    """Weight and value of what is always present, as of the paper's mean."""
    if parameters.background is None:
        return 0.0, float(parameters.base[0])
    level, own = parameters.background
    return float(np.exp(level[0])), float(parameters.base[0] + own[0])


def _of_a_mean(parameters: Parameters, players: Ints) -> Floats:
    """Those of a softmax-weighted mean, by the exact integrals."""
    present, copies = np.unique(players, return_counts=True)
    found = np.zeros(len(parameters.importances))
    found[present] = shapley_of_a_mean(
        (parameters.base + parameters.evidence)[present, 0],
        parameters.importances[present, 0],
        background=_background(parameters),
        empty=float(parameters.base[0]),
        counts=copies,
    )
    return found


def _gains(parameters: Parameters, types: Ints) -> Floats:
    """What each player adds when it joins, orders × players × points."""
    weight, part = parameters.always
    w = np.cumsum(parameters.weights[types], axis=1) + weight
    p = np.cumsum(parameters.parts[types], axis=1) + part
    first = np.ones((len(types), 1, 1))
    w, p = np.concatenate([first * weight, w], axis=1), np.concatenate([first * part, p], axis=1)
    return np.diff(parameters.answer(parameters.gathered(w, p)), axis=1)


def _per_type(gains: Floats, types: Ints, count: int) -> Floats:
    """The mean over a type's copies, of gains in an order."""
    copies = np.maximum(np.bincount(types, minlength=count), 1)
    if gains.ndim == 1:
        return np.bincount(types, gains, count) / copies
    sums = np.zeros((count, gains.shape[1]))
    np.add.at(sums, types, gains)
    return sums / copies[:, None]


def _drawn(players: int, pairs: int) -> Iterator[Ints]:
    """Orders and their reverses, one after the other; always the same ones."""
    rng, everyone = np.random.default_rng(0), np.arange(players)
    rows = max(_AT_ONCE // players, 1)
    for start in range(0, pairs, rows):
        count = min(rows, pairs - start)
        orders = rng.permuted(np.tile(everyone, (count, 1)), axis=1)
        yield np.stack([orders, orders[:, ::-1]], axis=1).reshape(2 * count, -1)


def _over_sets(parameters: Parameters, players: Ints) -> Floats:
    """Values from all sets of the players, types × points."""
    count = len(players)
    sets = np.arange(2**count)
    present = ((sets[:, None] >> np.arange(count)) & 1).astype(np.float64)
    weight, part = parameters.always
    answers = parameters.answer(
        parameters.gathered(
            present @ parameters.weights[players] + weight,
            present @ parameters.parts[players] + part,
        )
    )
    sizes = present.sum(axis=1).astype(int)
    # |S|! (n − 1 − |S|)! / n! for those without the player, by one less for those with it
    chances = np.array([1.0 / (count * comb(count - 1, k)) for k in range(count)])
    joined, missing = chances[np.maximum(sizes - 1, 0)], chances[np.minimum(sizes, count - 1)]
    share = np.where(present > 0, joined[:, None], -missing[:, None])
    return _per_type(share.T @ answers, players, len(parameters.importances))
