"""Everything that follows from values and importances, with standard errors by the delta method.

A covariance is given by a factor L with L Lᵀ = covariance: every column is a direction in which
the parameters may move. Pushing all directions through a score gives its changes D, and the
standard errors are the row norms of D.

All work is done once per type of unit and spread to the units at the end: equal units have equal
scores.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from piste.slalom.results import Fit
from piste.slalom.saturated import SaturatedGame
from piste.slalom.shapley import shapley, shapley_changes
from piste.slalom.surrogate import Slalom
from piste.slalom.threads import threads_for

Floats = NDArray[np.float64]
Types = NDArray[np.int64]

SCORES = ("value", "importance", "linear", "gradient", "removal", "shapley")

# Beyond this many types a sample of the covariance is far cheaper and as good: 200 directions give
# standard errors to one part in twenty.
_MOST_TYPES = 400
_SAMPLED_DIRECTIONS = 200


def text_scores(
    slalom: Slalom, types: Types, fit: Fit | None = None
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Scores and standard errors of the units of a text, units × classes if there are classes.

    =============  ======================================================================
    ``value``      v_i, what the unit says alone
    ``importance`` s_i, its weight against the others (one for all classes)
    ``linear``     v_i e^{s_i}, the paper's linearised score (section 5.4)
    ``gradient``   a_i (v_i − F), derivative of soft removal at λ = 1 (eq. 60–64)
    ``removal``    F(t) − F(t without i) = a_i (v_i − F) / (1 − a_i)
    ``shapley``    Shapley value of the surrogate's own game
    =============  ======================================================================

    With a saturation h, the first three are of the evidence F, and the others of the answer h(F),
    for that is what changes when a unit goes.

    Without a fit errors are NaN; for units no question was about they are infinite.

    >>> scores, _ = text_scores(Slalom(np.array([1.0, -1.0]), np.zeros(2)), np.array([0, 1, 0]))
    >>> scores["gradient"].round(3).tolist()
    [0.222, -0.444, 0.222]
    """
    with threads_for(0):  # all matrices here are small blocks, whatever the text's length
        return _text_scores(slalom, types, fit)


def _text_scores(
    slalom: Slalom, types: Types, fit: Fit | None
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    several = slalom.values.ndim == 2
    classes = slalom.values.shape[1] if several else 1
    scores, errors = [], []
    for class_ in range(classes):
        game = _Game(slalom, types, class_)
        scores.append({name: array[types] for name, array in game.scores().items()})
        if fit is None:
            errors.append({name: np.full(len(types), np.nan) for name in SCORES})
            continue
        own = game.errors(_directions(fit, class_))
        known = fit.active[types]
        errors.append({name: np.where(known, own[name][types], np.inf) for name in SCORES})
    if not several:
        return scores[0], errors[0]
    return _stacked(scores), _stacked(errors)


def _stacked(parts: list[dict[str, Floats]]) -> dict[str, Floats]:
    return {
        name: parts[0][name] if name == "importance" else np.stack([p[name] for p in parts], axis=1)
        for name in SCORES
    }


@dataclass(frozen=True)
class _Changes:
    """Changes of all parameters along directions (columns)."""

    importances: Floats
    values: Floats
    weight: Floats
    mass: Floats


def _directions(fit: Fit, class_: int) -> _Changes:
    """The fit's covariance factor for one class, in the normalisation Σ s = 0."""
    most = sys.maxsize if len(fit.active) <= _MOST_TYPES else _SAMPLED_DIRECTIONS
    factor = fit.curvature.directions(class_, most)
    count, columns = int(fit.active.sum()), len(factor) // 2
    background = columns - count
    # Moving all weights by a common factor moves the background's along with them.
    scale = factor[:count].mean(axis=0)
    importances = np.zeros((len(fit.active), factor.shape[1]))
    values = np.zeros_like(importances)
    importances[fit.active] = factor[:count] - scale
    values[fit.active] = factor[columns : columns + count]
    weight = mass = np.zeros(factor.shape[1])
    # At weight 0 the background only speaks where nothing else does: no score depends on it.
    if background and fit.slalom.weight > 0:
        base = float(np.atleast_1d(np.asarray(fit.slalom.base))[class_])
        weight = factor[count] - fit.slalom.weight * scale
        mass = factor[-1] - fit.slalom.weight * base * scale
    return _Changes(importances, values, weight, mass)


class _Game:
    """One class of a SLALOM on one text: ``counts`` copies of every type."""

    def __init__(self, slalom: Slalom, types: Types, class_: int) -> None:
        self.v = slalom.values if slalom.values.ndim == 1 else slalom.values[:, class_]
        self.s = slalom.importances
        self.weight = slalom.weight
        self.base = float(np.atleast_1d(np.asarray(slalom.base))[class_])
        self.link = slalom.link
        self.counts = np.bincount(types, minlength=len(self.s)).astype(np.float64)
        mass = np.exp(self.s)
        self.total = float(self.counts @ mass + self.weight)
        self.attention = mass / self.total
        self.whole = float((self.counts * mass) @ self.v + self.weight * self.base) / self.total
        self.saturated: SaturatedGame | None = None
        if self.link is not None:
            # A common factor of all weights changes nothing; this keeps e^s in range.
            self.scale = float(np.exp(-self.s.max()))
            self.saturated = SaturatedGame(
                mass * self.scale, self.v, self.weight * self.scale, self.base, self.link, types
            )
        self.drawing = np.zeros(len(self.s))
        """Errors of Shapley values from drawing orders."""

    def scores(self) -> dict[str, Floats]:
        gradient = self.attention * (self.v - self.whole)
        rest = 1.0 - self.attention
        safe = np.where(rest > 1e-12, rest, 1.0)
        removal = np.where(rest > 1e-12, gradient / safe, self.whole - self.base)
        if self.saturated is not None and self.link is not None:
            whole = np.array([self.whole])
            gradient = self.link.slope(whole) * gradient
            removal = self.link(whole) - self.link(whole - removal)
            fair, self.drawing = self.saturated.shapley()
        else:
            background = (self.weight, self.base)
            fair = shapley(
                self.v, self.s, background=background, empty=self.base, counts=self.counts
            )
        return {
            "value": self.v,
            "importance": self.s,
            "linear": self.v * np.exp(self.s),
            "gradient": gradient,
            "removal": removal,
            "shapley": fair,
        }

    def errors(self, changes: _Changes) -> dict[str, Floats]:
        a, v = self.attention[:, None], self.v[:, None]
        ds, dv = changes.importances, changes.values
        share = self.counts * self.attention
        d_log_total = share @ ds + changes.weight / self.total
        d_attention = a * (ds - d_log_total)
        d_whole = share @ (dv + v * ds) - self.whole * d_log_total + changes.mass / self.total
        gap = v - self.whole
        d_gradient = d_attention * gap + a * (dv - d_whole)
        rest = np.maximum(1.0 - a, 1e-12)
        d_removal = d_gradient / rest + a * gap * d_attention / rest**2
        if self.saturated is not None and self.link is not None:
            whole = np.array([self.whole])
            steep, without = self.link.slope(whole), whole - a * gap / rest
            d_removal = steep * d_whole - self.link.slope(without) * (d_whole - d_removal)
            d_gradient = steep * d_gradient + self.link.bend(whole) * a * gap * d_whole
            mass = np.exp(self.s)[:, None] * self.scale
            d_shapley = self.saturated.changes(
                mass * ds,
                mass * (dv + v * ds),
                changes.weight * self.scale,
                changes.mass * self.scale,
            )
        else:
            d_shapley = shapley_changes(
                self.v,
                self.s,
                (self.weight, self.base),
                dv,
                ds,
                changes.weight,
                changes.mass,
                counts=self.counts,
            )
        moved = {
            "value": dv,
            "importance": ds,
            "linear": np.exp(self.s)[:, None] * (dv + v * ds),
            "gradient": d_gradient,
            "removal": d_removal,
            "shapley": d_shapley,
        }
        found = {name: np.linalg.norm(change, axis=1) for name, change in moved.items()}
        return found | {"shapley": np.hypot(found["shapley"], self.drawing)}
