"""Everything that follows from a surrogate for the units of one text, with standard errors.

All work is done once per type of unit and spread to the units at the end: equal units have equal
scores.

The integrals that make the Shapley values of the paper's SLALOM exact (:mod:`piste.slalom.shapley`)
need a ratio of sums, and an additive model needs none. In every other case few players are done by
all their sets; of more, orders of joining are drawn, each with its reverse, and what that leaves
open counts as an error. Either way values add up to F(all) − F(∅) exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import Any

import numpy as np
from scipy import sparse

from piste.slalom.classes import ClassPosterior
from piste.slalom.family import Layout
from piste.slalom.fitting import Fit, threads_for
from piste.slalom.shapley import interactions as interactions_of_a_mean
from piste.slalom.shapley import shapley as shapley_of_a_mean
from piste.slalom.surrogate import Parameters, Slalom
from piste.types import Floats, Ints

SCORES = ("value", "importance", "contribution", "removal", "shapley", "gradient")
_STEP = 1e-3  # of a direction of the covariance
_FEW = 11
"""Players of whom all 2,048 sets are looked at."""
_PAIRS = 384
_MOST = 1_000_000
"""Players × pairs of orders × points that are drawn at most."""
_PAIRS_OF_ERRORS = (4, 48)  # from and to: a standard error is good enough to a tenth
_SETS = 256
"""Sets that interactions are averaged over."""
_AT_ONCE = 250_000  # numbers per array


def text_scores(
    slalom: Slalom,
    types: Ints,
    fit: Fit | None = None,
    *,
    linear: bool = False,
    pairs: Ints | None = None,
    with_shapley: bool = True,
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Scores and standard errors of the units of a text, units × classes if there are classes.

    With t the text, W its total weight, Z its evidence and h the saturation (or nothing):

    ================ =====================================================================
    ``value``        F({i}), what is expected of the unit alone
    ``importance``   s_i, its log-weight against the others (one for all classes)
    ``contribution`` (w_i / W)^γ e_i + ½ Σ δ_ij, its part in this text: all add up to Z − b
    ``removal``      F(t) − F(t without i)
    ``shapley``      Shapley value of the game F
    ``gradient``     ∂F/∂log λ_i of soft removal at λ = 1 (eq. 60–64 for γ = 1)
    ``linear``       value × e^importance, the paper's linearised score (section 5.4)
    ================ =====================================================================

    ``pairs`` (pairs × 2) are units to which the fit gave evidence of their own: half of it belongs
    to each of the two. Without a fit errors are NaN; they are infinite for units no question was
    about, unless there was a guide, and for the importances of an additive form, which has none.
    Shapley values take longer than all others together, and are left out if ``with_shapley`` is
    false.

    >>> scores, _ = text_scores(Slalom(np.array([1.0, -1.0]), np.zeros(2)), np.array([0, 1, 0]))
    >>> scores["gradient"].round(3).tolist()
    [0.222, -0.444, 0.222]
    """
    with threads_for(0):  # all matrices here are small, whatever the text's length
        several = slalom.evidence.ndim == 2
        classes = slalom.evidence.shape[1] if several else 1
        found = [
            _of_class(slalom, types, fit, class_, linear, pairs, with_shapley)
            for class_ in range(classes)
        ]
    scores, errors = [one[0] for one in found], [one[1] for one in found]
    return (_stacked(scores), _stacked(errors)) if several else (scores[0], errors[0])


def _of_class(
    slalom: Slalom,
    types: Ints,
    fit: Fit | None,
    class_: int,
    linear: bool,
    pairs: Ints | None,
    with_shapley: bool,
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    rows, parameters = types, Parameters.of(slalom, class_).centred()
    if pairs is not None and fit is not None:  # equal units differ by what they are paired with
        rows = np.arange(len(types))
        parameters = parameters.of_units(types, (pairs, fit.pairs[:, None]))
    counts = np.bincount(rows, minlength=len(parameters.evidence)).astype(np.float64)[:, None]
    scores = {name: one[rows, 0] for name, one in _scores(parameters, counts, linear).items()}
    if with_shapley:
        values, drawing = shapley(parameters, rows)
        scores["shapley"] = values[rows]
    if fit is None or fit.posterior is None:
        errors = {name: np.full(len(types), np.nan) for name in scores}
    else:
        layout, theta, factor = _posterior_of(fit, class_)
        if layout.mixing is not None:  # steps lead away from the nearer end of the mixing
            factor = factor * np.where(
                factor[layout.mixing] * (0.5 - theta[layout.mixing]) < 0, -1, 1
            )
        points = np.concatenate([theta[:, None], theta[:, None] + _STEP * factor], axis=1)
        ends = layout.parameters(points, fit.active.astype(np.float64)).centred()
        if pairs is not None:
            ends = ends.of_units(types, (pairs, points[layout.pairs]))
        there = _scores(ends, counts, linear)
        if with_shapley:
            there["shapley"] = shapley_at(ends, rows)
        moved = {
            name: np.linalg.norm((one[:, 1:] - one[:, :1]) / _STEP, axis=1)
            for name, one in there.items()
        }
        if with_shapley:
            moved["shapley"] = np.hypot(moved["shapley"], drawing)
        if not layout.weighted:
            moved["importance"] = np.full_like(moved["importance"], np.inf)
        known = fit.active[types]
        errors = {name: np.where(known, own[rows], np.inf) for name, own in moved.items()}
    return {name: scores[name] for name in (*SCORES, "linear") if name in scores}, errors


def _scores(parameters: Parameters, counts: Floats, linear: bool) -> dict[str, Floats]:
    """All scores but Shapley values, rows (types or units) × points; log-weights are centred."""
    weights, parts, (weight, part) = parameters.weights, parameters.parts, parameters.always
    total_weight = (counts * weights).sum(axis=0) + weight
    total_part = (counts * parts).sum(axis=0) + part
    paired, all_pairs = parameters.pair_shares, parameters.all_pairs
    family = parameters.gathered(total_weight, total_part)
    evidence = family + all_pairs
    own = parts * total_weight**-parameters.mixing
    left = np.maximum(total_weight - weights, 0.0)
    # What rounding leaves of the weight of a text's only unit is none.
    left = np.where(left > 1e-12 * total_weight, left, 0.0)
    without = parameters.gathered(left, total_part - parts) + all_pairs - paired
    pull = parameters.mixing * (family - parameters.base) * weights / total_weight
    value = parameters.answer(parameters.gathered(weights + weight, parts + part))
    importance = parameters.importances
    found = {
        "value": value,
        "importance": importance,
        "contribution": own + paired / 2,
        "removal": parameters.answer(evidence) - parameters.answer(without),
        "gradient": parameters.slope(evidence) * (own + paired - pull),
    }
    return found | ({"linear": value * np.exp(importance)} if linear else {})


def _posterior_of(fit: Fit, class_: int) -> tuple[Layout, Floats, Floats]:
    """Layout, parameters and covariance factor of one class."""
    posterior = fit.posterior
    assert posterior is not None
    if isinstance(posterior, ClassPosterior):
        layout, theta, factor = posterior.of_class(class_)
        slalom = fit.slalom
        theta[layout.evidence] = slalom.evidence[fit.active, class_]
        theta[layout.base] = np.asarray(slalom.base)[class_]
        return layout, theta, factor
    return posterior.layout, posterior.theta, posterior.factor


def _stacked(parts: list[dict[str, Floats]]) -> dict[str, Floats]:
    return {
        name: parts[0][name] if name == "importance" else np.stack([p[name] for p in parts], axis=1)
        for name in parts[0]
    }


# -- Shapley values and interactions of the expected answer --------------------------------------


def shapley(parameters: Parameters, players: Ints) -> tuple[Floats, Floats]:
    """Values of all types at the first point, and their errors from drawing orders.

    ``players`` has the type of every unit; a value is that of one copy.

    >>> from piste.slalom import Slalom
    >>> from piste.slalom.surrogate import Saturation
    >>> slalom = Slalom(np.array([9.0, 0.0]), np.zeros(2), link=Saturation(0.0, 2.0))
    >>> values, errors = shapley(Parameters.of(slalom), np.array([0, 1]))
    >>> values.round(3).tolist(), errors.tolist()
    ([1.978, -0.022], [0.0, 0.0])
    """
    types = len(parameters.importances)
    paired = parameters.pair_shares / 2
    if parameters.link is None and parameters.mixing[0] == 0.0:
        return (parameters.evidence + paired)[:, 0], np.zeros(types)
    if parameters.link is None and parameters.mixing[0] == 1.0:
        return _of_a_mean(parameters, players) + paired[:, 0], np.zeros(types)
    if len(players) <= _FEW:
        return _over_sets(parameters, players)[:, 0], np.zeros(types)
    sums, squares, means = np.zeros(types), np.zeros(types), _means(players, types)
    pairs = int(np.clip(_MOST // len(players), 8, _PAIRS))
    for orders in _drawn(len(players), pairs):
        found = np.empty(orders.shape)
        np.put_along_axis(found, orders, _gains(parameters, players[orders])[..., 0], axis=1)
        both = (means @ (found[0::2] + found[1::2]).T / 2).T
        sums += both.sum(axis=0)
        squares += (both**2).sum(axis=0)
    mean = sums / pairs
    return mean, np.sqrt(np.maximum(squares / pairs - mean**2, 0.0) / max(pairs - 1, 1))


def shapley_at(parameters: Parameters, players: Ints) -> Floats:
    """Values of all types at every point (types × points), from few orders: for errors."""
    types = len(parameters.importances)
    if parameters.link is None and not parameters.mixing.any():
        return parameters.evidence + parameters.pair_shares / 2
    if len(players) <= _FEW:
        return _over_sets(parameters, players)
    found = np.zeros((len(players), len(parameters.base)))
    each = 8 * len(players) * len(parameters.base)
    pairs = int(np.clip(_MOST // each, *_PAIRS_OF_ERRORS))
    for orders in _drawn(len(players), pairs):
        for order in orders:
            found[order] += _gains(parameters, players[order][None])[0]
    return np.asarray(_means(players, types) @ found / (2 * pairs))


def interactions(parameters: Parameters, players: Ints) -> Floats:
    """Pairwise Shapley interactions of the units, players × players, zero on the diagonal.

    I_ij = ∫_0^1 E_{S∼Bernoulli(q), i,j∉S}[F(S∪ij) − F(S∪i) − F(S∪j) + F(S)] dq. Exact for an
    additive model and the paper's SLALOM, else a mean over sets that are drawn evenly in q.
    """
    count = len(players)
    paired = np.zeros((count, count))
    if parameters.pairs is not None:
        (first, second), effect = parameters.pairs[0].T, parameters.pairs[1][:, 0]
        paired[first, second], paired[second, first] = effect, effect
    if parameters.link is None and parameters.mixing[0] == 0.0:
        return paired
    if parameters.link is None and parameters.mixing[0] == 1.0:
        values = (parameters.base + parameters.evidence)[players, 0]
        return paired + interactions_of_a_mean(
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
        # What a unit adds together with those of the set, the other one of the two left out.
        joint = (paired @ present)[:, None] - paired * present
        both = present[:, None] * present * paired
        rest = (present @ paired @ present) / 2
        rest = rest - present[:, None] * joint - (present[:, None] * joint).T - both
        for one, other, sign in ((1, 1, 1.0), (1, 0, -1.0), (0, 1, -1.0), (0, 0, 1.0)):
            w = without_w + (one * weights[:, None] + other * weights[None, :])
            p = without_p + (one * parts[:, None] + other * parts[None, :])
            more = rest + one * joint + other * joint.T + one * other * paired
            total += sign * parameters.answer(parameters.gathered(w, p) + more)
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
    p = _sums(parameters.parts[types], part)
    if parameters.mixing.any():
        evidence = parameters.gathered(_sums(parameters.weights[types], weight), p)
    else:  # nothing is shared out by weights
        evidence = parameters.base + p
    if parameters.pairs is not None:  # rows are units then: a pair adds when the second one joins
        places = np.argsort(types, axis=1)[:, parameters.pairs[0]].max(axis=2) + 1
        jumps = np.zeros_like(evidence)
        np.add.at(jumps, (np.arange(len(types))[:, None], places), parameters.pairs[1])
        evidence = evidence + np.cumsum(jumps, axis=1)
    return np.diff(parameters.answer(evidence), axis=1)


def _sums(steps: Floats, start: Floats) -> Floats:
    """Sums along the second axis, from none of the steps to all of them."""
    orders, count, points = steps.shape
    sums = np.empty((orders, count + 1, points))
    sums[:, 0] = start
    np.cumsum(steps, axis=1, out=sums[:, 1:])
    sums[:, 1:] += start
    return sums


def _means(players: Ints, types: int) -> Any:
    """The matrix (types × players) that takes means over a type's copies, sparse."""
    copies = np.bincount(players, minlength=types)
    places = players, np.arange(len(players))
    return sparse.csr_array((1.0 / copies[players], places), shape=(types, len(players)))


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
    evidence = parameters.gathered(
        present @ parameters.weights[players] + weight,
        present @ parameters.parts[players] + part,
    )
    if parameters.pairs is not None:
        evidence = evidence + present[:, parameters.pairs[0]].prod(axis=2) @ parameters.pairs[1]
    answers = parameters.answer(evidence)
    sizes = present.sum(axis=1).astype(int)
    # |S|! (n − 1 − |S|)! / n! for those without the player, by one less for those with it
    chances = np.array([1.0 / (count * comb(count - 1, k)) for k in range(count)])
    joined, missing = chances[np.maximum(sizes - 1, 0)], chances[np.minimum(sizes, count - 1)]
    share = np.where(present > 0, joined[:, None], -missing[:, None])
    return np.asarray(_means(players, len(parameters.importances)) @ (share.T @ answers))
