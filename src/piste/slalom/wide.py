"""One SLALOM for very many types, fitted to answers and slopes of very many texts.

What the joint fit does for the few hundred types of a text, this does for the tens of thousands of
a corpus: questions are lists of the units they hold, nothing is ever a matrix, and the minimum is
found by L-BFGS. In units of the answers' spread it minimises

    Σ_m (h(F_m) − y_m)² + ω Σ_mi (h'(F_m) a_mi (v_i − F_m) − g_mi)²
        + λ_s Σ_i (s_i − s⁰_i)² + λ_v Σ_i (v_i − v⁰_i)²

with a background, and a saturation h on top. Without a prior s⁰ is 0 and v⁰ what the background
says, so that a type nobody asked about changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from piste.slalom.link import Saturation
from piste.slalom.surrogate import Slalom

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A step in a value must be this much longer than one in an importance to change as much.
_VALUE_SCALE = 8.0
_FIRST_WEIGHT = 20.0
_FIRST_REACH = 2.0
"""Where the search begins: units of the background, and of the largest answer."""
_LEAST_SHARE = 1e-3
_EXTRA = 4
"""Background's weight and base, saturation's middle and reach."""


@dataclass(frozen=True)
class Asked:
    """Questions as lists of units: of every unit its question, its type and its slope.

    A slope is NaN where it is unknown.
    """

    question: Ints
    type: Ints
    slope: Floats
    output: Floats
    types: int

    def of(self, chosen: NDArray[np.bool_]) -> Asked:
        """Only some of the questions, numbered anew."""
        numbers = np.cumsum(chosen) - 1
        units = chosen[self.question]
        return Asked(
            numbers[self.question[units]],
            self.type[units],
            self.slope[units],
            self.output[chosen],
            self.types,
        )


def gather(parts: list[Asked], types: int) -> Asked:
    """All questions of several parts, over this many types."""
    starts = np.cumsum([0, *(len(part.output) for part in parts)])
    shifted = [part.question + start for part, start in zip(parts, starts, strict=False)]
    return Asked(
        np.concatenate(shifted),
        np.concatenate([part.type for part in parts]),
        np.concatenate([part.slope for part in parts]),
        np.concatenate([part.output for part in parts]),
        types,
    )


def fit_wide(
    asked: Asked,
    ridge: tuple[float, float],
    *,
    start: Slalom | None = None,
    prior: Slalom | None = None,
    iterations: int = 200,
) -> Slalom:
    """The SLALOM with background and saturation that answers and slopes ask for.

    ``ridge`` is (λ_s, λ_v), in units of the answers' variance. ``start`` is where the search
    begins, ``prior`` what the ridge pulls to.

    >>> rng = np.random.default_rng(0)
    >>> truth = Slalom(np.array([2.0, -1.0, 0.5]), np.array([0.5, 0.0, -0.5]), 1.0, 0.1)
    >>> held = rng.random((60, 3)) < 0.6
    >>> question, type = np.nonzero(held)
    >>> asked = Asked(question, type, np.full(len(type), np.nan), truth.predict(held), 3)
    >>> found = fit_wide(asked, (1e-6, 1e-6), iterations=500)
    >>> bool(np.abs(found.predict(held) - asked.output).max() < 0.02)
    True
    """
    scale = float(asked.output.std()) or 1.0
    objective = _Objective(asked, ridge, scale, prior)
    begin = _packed(start or prior or _first(asked), scale)
    found = minimize(
        objective,
        begin / objective.steps,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20},
    )
    return _unpacked(found.x * objective.steps, asked.types, scale)


class _Objective:
    """What is minimised, with its gradient, as a function of scaled parameters."""

    def __init__(
        self, asked: Asked, ridge: tuple[float, float], scale: float, prior: Slalom | None
    ) -> None:
        self.types, self.ridge = asked.types, ridge
        self.question, self.type = map(torch.from_numpy, (asked.question, asked.type))
        self.output = torch.from_numpy(asked.output / scale)
        known = np.isfinite(asked.slope)
        slopes = np.where(known, asked.slope, 0.0) / scale
        self.slope, self.known = torch.from_numpy(slopes), torch.from_numpy(known.astype(float))
        spread = float((slopes[known] ** 2).mean()) if known.any() else 1.0
        # All slopes of a question together count as much as its answer.
        share = max(len(asked.output), 1) / max(int(known.sum()), 1)
        self.slope_weight = share / max(spread, 1e-12)
        self.prior = None if prior is None else torch.from_numpy(_packed(prior, scale))
        self.steps = np.ones(2 * asked.types + _EXTRA)
        self.steps[: asked.types] = _VALUE_SCALE

    def __call__(self, scaled: Floats) -> tuple[float, Floats]:
        moved = torch.from_numpy(scaled * self.steps).requires_grad_()
        with torch.enable_grad():
            total = self._total(moved)
        (gradient,) = torch.autograd.grad(total, moved)
        return float(total.detach()), gradient.numpy() * self.steps

    def _total(self, x: torch.Tensor) -> torch.Tensor:
        n = self.types
        values, importances = x[:n], x[n : 2 * n]
        weight, base = x[2 * n].exp(), x[2 * n + 1]
        middle, reach = x[2 * n + 2], x[2 * n + 3].exp()
        nothing = torch.zeros(len(self.output), dtype=torch.float64)
        mass, own = importances.exp()[self.type], values[self.type]
        total = nothing.index_add(0, self.question, mass) + weight
        top = nothing.index_add(0, self.question, mass * own) + weight * base
        evidence = top / total
        turned = ((evidence - middle) / reach).tanh()
        share = mass / total[self.question]
        slope = share * (own - evidence[self.question]) * (1 - turned**2)[self.question]
        missed = ((middle + reach * turned - self.output) ** 2).sum()
        steep = (self.known * (slope - self.slope) ** 2).sum()
        if self.prior is None:
            apart = importances, values - base
        else:
            apart = importances - self.prior[n : 2 * n], values - self.prior[:n]
        pulled = self.ridge[0] * (apart[0] ** 2).sum() + self.ridge[1] * (apart[1] ** 2).sum()
        return missed + self.slope_weight * steep + pulled


def _first(asked: Asked) -> Slalom:
    mean = float(asked.output.mean())
    values, importances = np.full(asked.types, mean), np.zeros(asked.types)
    reach = _FIRST_REACH * max(float(np.abs(asked.output).max()), 1e-6)
    return Slalom(values, importances, _FIRST_WEIGHT, mean, Saturation(mean, reach))


def _packed(slalom: Slalom, scale: float) -> Floats:
    link = slalom.link or Saturation(0.0, 1e3 * scale)
    weight = max(float(slalom.weight), _LEAST_SHARE)
    extra = [np.log(weight), slalom.base / scale, link.middle / scale, np.log(link.reach / scale)]
    return np.concatenate([slalom.values / scale, slalom.importances, np.array(extra, dtype=float)])


def _unpacked(x: Floats, types: int, scale: float) -> Slalom:
    weight, base, middle, reach = x[2 * types :]
    link = Saturation(float(middle) * scale, float(np.exp(reach)) * scale)
    values, importances = x[:types] * scale, x[types : 2 * types].copy()
    return Slalom(values, importances, float(np.exp(weight)), float(base) * scale, link)
