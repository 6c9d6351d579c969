"""Everything that follows from values and importances, with standard errors by the delta method.

A covariance is given by a factor L with L Lᵀ = covariance: every column is a direction in which
the parameters may move. Pushing all directions through a score gives its changes D, and the
standard errors are the row norms of D.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from piste.slalom.fitting import Fit
from piste.slalom.shapley import shapley, shapley_changes
from piste.slalom.surrogate import Slalom

Floats = NDArray[np.float64]

SCORES = ("value", "importance", "linear", "gradient", "removal", "shapley")

# Beyond this many directions a sample of the covariance is as good and far cheaper.
_MOST_DIRECTIONS = 1200
_SAMPLED_DIRECTIONS = 200


@dataclass(frozen=True)
class Changes:
    """Changes of all parameters along directions (columns), spread from types to units."""

    importances: Floats
    values: Floats
    weight: Floats
    mass: Floats


def directions(
    fit: Fit, types: NDArray[np.int64], class_: int
) -> tuple[Changes, NDArray[np.bool_]]:
    """The fit's covariance factor for one class, and which units it says anything about."""
    factor = fit.curvature.directions(class_)
    if factor.shape[1] > _MOST_DIRECTIONS:
        draws = np.random.default_rng(0).standard_normal((factor.shape[1], _SAMPLED_DIRECTIONS))
        factor = factor @ draws / np.sqrt(_SAMPLED_DIRECTIONS)
    count = int(fit.active.sum())
    background = len(fit.curvature.linear) - count
    where = np.full(len(fit.active), -1)
    where[fit.active] = np.arange(count)
    chosen = where[types]
    known = chosen >= 0
    none = np.zeros(factor.shape[1])
    importances = factor[:count] - factor[:count].mean(axis=0)
    # Moving all weights by a common factor moves the background's along with them.
    scale = factor[:count].mean(axis=0)
    values = factor[count + background : 2 * count + background]
    weight, mass = none, none
    if background:
        base = float(np.atleast_1d(np.asarray(fit.slalom.base))[class_])
        weight = factor[count] - fit.slalom.weight * scale
        mass = factor[-1] - fit.slalom.weight * base * scale
    spread = Changes(
        np.where(known[:, None], importances[chosen], 0.0),
        np.where(known[:, None], values[chosen], 0.0),
        weight,
        mass,
    )
    return spread, known


def unit_scores(
    slalom: Slalom, types: NDArray[np.int64], class_: int | None = None
) -> dict[str, Floats]:
    """All scores of the units of a text, one class at a time.

    =============  ======================================================================
    ``value``      v_i, what the unit says alone
    ``importance`` s_i, its weight against the others
    ``linear``     v_i e^{s_i}, the paper's linearised score (section 5.4)
    ``gradient``   a_i (v_i − F), derivative of soft removal at λ = 1 (eq. 60–64)
    ``removal``    F(t) − F(t without i) = a_i (v_i − F) / (1 − a_i)
    ``shapley``    Shapley value of the surrogate's own game
    =============  ======================================================================
    """
    v, s, weight, base = _game(slalom, types, class_)
    attention, whole = _attention(v, s, weight, base)
    gradient = attention * (v - whole)
    rest = 1.0 - attention
    safe = np.where(rest > 0, rest, 1.0)
    return {
        "value": v,
        "importance": s,
        "linear": v * np.exp(s),
        "gradient": gradient,
        "removal": np.where(rest > 0, gradient / safe, whole - base),
        "shapley": shapley(v, s, background=(weight, base), empty=base),
    }


def unit_errors(
    slalom: Slalom, types: NDArray[np.int64], changes: Changes, class_: int | None = None
) -> dict[str, Floats]:
    """Standard errors of :func:`unit_scores`."""
    v, s, weight, base = _game(slalom, types, class_)
    attention, whole = _attention(v, s, weight, base)
    a, e = attention[:, None], np.exp(s)[:, None]
    total = float(np.exp(s).sum() + weight)
    ds, dv = changes.importances, changes.values
    d_log_total = attention @ ds + changes.weight / total
    d_attention = a * (ds - d_log_total)
    d_whole = (
        attention @ dv + attention @ (ds * v[:, None]) - whole * d_log_total + changes.mass / total
    )
    gap = (v - whole)[:, None]
    d_gradient = d_attention * gap + a * (dv - d_whole)
    rest = np.maximum(1.0 - a, 1e-12)
    d_removal = d_gradient / rest + a * gap * d_attention / rest**2
    d_shapley = shapley_changes(v, s, (weight, base), dv, ds, changes.weight, changes.mass)
    moved = {
        "value": dv,
        "importance": ds,
        "linear": e * (dv + v[:, None] * ds),
        "gradient": d_gradient,
        "removal": d_removal,
        "shapley": d_shapley,
    }
    return {name: np.linalg.norm(change, axis=1) for name, change in moved.items()}


def _game(
    slalom: Slalom, types: NDArray[np.int64], class_: int | None
) -> tuple[Floats, Floats, float, float]:
    values = slalom.values if slalom.values.ndim == 1 else slalom.values[:, class_ or 0]
    base = float(np.atleast_1d(np.asarray(slalom.base))[class_ or 0])
    return values[types], slalom.importances[types], slalom.weight, base


def _attention(v: Floats, s: Floats, weight: float, base: float) -> tuple[Floats, float]:
    mass = np.exp(s)
    total = float(mass.sum() + weight)
    return mass / total, float((mass @ v + weight * base) / total)
