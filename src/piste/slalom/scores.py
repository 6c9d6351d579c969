"""Everything that follows from a surrogate for the units of one text, with standard errors.

All work is done once per type of unit and spread to the units at the end: equal units have equal
scores.
"""

from __future__ import annotations

import numpy as np

from piste.slalom import game
from piste.slalom.classes import ClassPosterior
from piste.slalom.family import Layout
from piste.slalom.fitting import Fit
from piste.slalom.surrogate import Parameters, Slalom
from piste.threads import threads_for
from piste.types import Floats, Ints

SCORES = ("value", "importance", "contribution", "removal", "shapley", "gradient")
_STEP = 1e-3  # of a direction of the covariance, on both sides


def text_scores(
    slalom: Slalom,
    types: Ints,
    fit: Fit | None = None,
    *,
    linear: bool = False,
    pairs: Ints | None = None,
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
    about, and for the importances of an additive form, which has none.

    >>> scores, _ = text_scores(Slalom(np.array([1.0, -1.0]), np.zeros(2)), np.array([0, 1, 0]))
    >>> scores["gradient"].round(3).tolist()
    [0.222, -0.444, 0.222]
    """
    with threads_for(0):  # all matrices here are small, whatever the text's length
        several = slalom.evidence.ndim == 2
        classes = slalom.evidence.shape[1] if several else 1
        found = [_of_class(slalom, types, fit, class_, linear, pairs) for class_ in range(classes)]
    scores, errors = [one[0] for one in found], [one[1] for one in found]
    return (_stacked(scores), _stacked(errors)) if several else (scores[0], errors[0])


def _of_class(
    slalom: Slalom, types: Ints, fit: Fit | None, class_: int, linear: bool, pairs: Ints | None
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    rows, parameters = types, Parameters.of(slalom, class_).centred()
    if pairs is not None and fit is not None:  # equal units differ by what they are paired with
        rows = np.arange(len(types))
        parameters = parameters.of_units(types, (pairs, fit.pairs[:, None]))
    counts = np.bincount(rows, minlength=len(parameters.evidence)).astype(np.float64)[:, None]
    scores = {name: one[rows, 0] for name, one in _scores(parameters, counts, linear).items()}
    values, drawing = game.shapley(parameters, rows)
    scores["shapley"] = values[rows]
    if fit is None or fit.posterior is None:
        errors = {name: np.full(len(types), np.nan) for name in scores}
    else:
        layout, theta, factor = _posterior_of(fit, class_)
        ends = []
        for side in (_STEP, -_STEP):
            points = theta[:, None] + side * factor
            end = layout.parameters(points, fit.active.astype(np.float64)).centred()
            if pairs is not None:
                end = end.of_units(types, (pairs, points[layout.pairs]))
            ends.append(_scores(end, counts, linear) | {"shapley": game.shapley_at(end, rows)})
        moved = {
            name: np.linalg.norm((ends[0][name] - ends[1][name]) / (2 * _STEP), axis=1)
            for name in ends[0]
        }
        moved["shapley"] = np.hypot(moved["shapley"], drawing)
        if not layout.weighted:
            moved["importance"] = np.full_like(moved["importance"], np.inf)
        known = fit.active[types]
        errors = {name: np.where(known, own[rows], np.inf) for name, own in moved.items()}
    return {name: scores[name] for name in (*SCORES, *(["linear"] if linear else []))}, errors


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
