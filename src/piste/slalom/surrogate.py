"""The surrogate: units that compete for weight, add up, or stand between; and what it misses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from piste.types import Floats, Ints

EMPHASIS = float(np.exp(2.0))
"""How much more than by its variance a question about one unit, or about all, counts."""
_LEAKS = (0.0025, 0.01, 0.04, 0.16, 0.64)
"""Values of ρ that are tried."""
_STEEPEST = 0.4
"""The largest |β|: more would take the long questions out of the fit."""
_STEP = 0.4
"""The largest change of β at once."""
_USUAL = 20.0
"""Answers that a usual noise counts for."""
_PULL = 8.0
"""Of β to 0, in squared errors: a few questions say nothing on it."""


@dataclass(frozen=True)
class Saturation:
    """A model's number can't grow beyond what its last layers let through.

    h(Z) = m + k tanh((Z − m) / k): the evidence Z near the middle m, never beyond m ± k.

    It is steepest in the middle, where its slope is 1, so values there are what they are without
    it; k → ∞ is no saturation at all.

    >>> Saturation(0.0, 2.0)(np.array([0.1, 50.0])).round(3).tolist()
    [0.1, 2.0]
    """

    middle: float
    reach: float

    def __call__(self, evidence: Floats) -> Floats:
        turned = np.tanh((evidence - self.middle) / self.reach)
        return self.middle + self.reach * turned

    def slope(self, evidence: Floats) -> Floats:
        """h′(Z): how much of a small change gets through."""
        return np.asarray(1.0 - np.tanh((evidence - self.middle) / self.reach) ** 2)

    @property
    def lowest(self) -> float:
        return self.middle - self.reach

    @property
    def highest(self) -> float:
        return self.middle + self.reach


@dataclass(frozen=True)
class Background:
    """What every question contains besides its units, such as [CLS]: e^{s_0} and e_0."""

    importance: float
    evidence: Floats | float


@dataclass(frozen=True)
class Slalom:
    """One family from the paper's SLALOM (words compete) to an additive model (words add up).

    With weights w = e^s and c_i copies of unit i (the background, if any, is one more unit)::

        Z(c) = b + Σ c_i w_i^γ e_i / (Σ c_i w_i)^γ        F(c) = m + k·tanh((Z − m) / k)

    ``mixing`` γ = 1 without background and link is eq. 4, a softmax-weighted mean of the values
    b + e_i. γ = 0 is an additive model. ``evidence`` is flat for one explained number, or types ×
    classes with weights shared by all classes (C.1). Of nothing at all, Z = b.

    >>> Slalom(np.array([1.0, -1.0]), np.zeros(2)).predict([[1, 1], [2, 0]]).tolist()
    [0.0, 1.0]
    >>> Slalom(np.array([1.0, -1.0]), np.zeros(2), mixing=0.0).predict([[1, 1], [2, 0]]).tolist()
    [0.0, 2.0]
    """

    evidence: Floats
    importances: Floats
    mixing: float = 1.0
    base: Floats | float = 0.0
    background: Background | None = None
    link: Saturation | None = None

    def predict(self, counts: ArrayLike | Any, more: Floats | float = 0.0) -> Floats:
        """The expected answer to every row of counts: questions, or questions × classes.

        Counts (questions × types) may be dense or any scipy.sparse, which is never made dense.
        ``more`` is evidence besides that of the units, such as that of pairs.
        """
        total = self.total_evidence(counts) + more
        return total if self.link is None else self.link(total)

    def total_evidence(self, counts: ArrayLike | Any) -> Floats:
        """Z, before saturation."""
        matrix: Any = counts
        if not sparse.issparse(counts):
            matrix = np.atleast_2d(np.asarray(counts, dtype=np.float64))
        shift = float(np.max(self.importances, initial=-np.inf))
        if self.background is not None:
            shift = max(shift, self.background.importance)
        shift = shift if np.isfinite(shift) else 0.0
        logs = self.importances - shift
        weight = matrix @ np.exp(logs)
        parts = np.exp(self.mixing * logs)
        several = self.evidence.ndim == 2
        top = matrix @ ((parts[:, None] if several else parts) * self.evidence)
        if self.background is not None:
            log = self.background.importance - shift
            weight = weight + np.exp(log)
            top = top + np.exp(self.mixing * log) * np.asarray(self.background.evidence)
        share = np.where(weight > 0, weight, 1.0) ** -self.mixing
        return np.asarray(self.base) + top * (share[:, None] if several else share)

    @property
    def values(self) -> Floats:
        """F of every type alone: types, or types × classes."""
        return self.predict(sparse.eye_array(len(self.importances), format="csr"))


@dataclass(frozen=True)
class Parameters:
    """The parameters of one output, at one point or at many at once.

    Arrays have points as their last axis: types × points, or points. Scores are functions of the
    parameters: evaluating them at θ + δ·column for every column of a factor L of the covariance
    gives their changes along all directions, and the norm of those is the standard error (delta
    method).
    """

    importances: Floats
    evidence: Floats
    mixing: Floats
    base: Floats
    background: tuple[Floats, Floats] | None
    link: tuple[Floats, Floats] | None
    pairs: tuple[Ints, Floats] | None = None
    """Of units that add something together: pairs × 2 indices, and pairs × points of evidence."""

    @staticmethod
    def of(slalom: Slalom, class_: int = 0) -> Parameters:
        """The one point of a surrogate, for one of its classes."""

        def number(given: Floats | float) -> Floats:
            return np.atleast_1d(np.asarray(given, dtype=np.float64))[class_ : class_ + 1]

        evidence = slalom.evidence if slalom.evidence.ndim == 1 else slalom.evidence[:, class_]
        background = link = None
        if slalom.background is not None:
            level = np.array([slalom.background.importance])
            background = level, number(slalom.background.evidence)
        if slalom.link is not None:
            link = np.array([slalom.link.middle]), np.array([slalom.link.reach])
        return Parameters(
            slalom.importances[:, None],
            evidence[:, None],
            np.array([slalom.mixing]),
            number(slalom.base) if np.ndim(slalom.base) else np.array([float(slalom.base)]),
            background,
            link,
        )

    def centred(self) -> Parameters:
        """The same with log-weights whose mean is 0."""
        mean = self.importances.mean(axis=0)
        background = self.background
        if background is not None:
            background = background[0] - mean, background[1]
        return replace(self, importances=self.importances - mean, background=background)

    def of_units(self, types: Ints, pairs: tuple[Ints, Floats]) -> Parameters:
        """A row for every unit instead of every type, and what pairs of units add."""
        return replace(
            self, importances=self.importances[types], evidence=self.evidence[types], pairs=pairs
        )

    @property
    def pair_shares(self) -> Floats:
        """All that a unit adds together with others, units × points; 0 without pairs."""
        found = np.zeros_like(self.evidence)
        if self.pairs is not None:
            for side in (0, 1):
                np.add.at(found, self.pairs[0][:, side], self.pairs[1])
        return found

    @property
    def all_pairs(self) -> Floats:
        """What all pairs add, points."""
        return self.pair_shares.sum(axis=0) / 2

    @cached_property
    def weights(self) -> Floats:
        return np.exp(self.importances)

    @cached_property
    def parts(self) -> Floats:
        """w^γ e, what a unit puts into the sum."""
        return np.asarray(np.exp(self.mixing * self.importances) * self.evidence)

    @property
    def always(self) -> tuple[Floats, Floats]:
        """Weight and part of the background."""
        if self.background is None:
            return np.zeros_like(self.base), np.zeros_like(self.base)
        level, own = self.background
        return np.exp(level), np.exp(self.mixing * level) * own

    def gathered(self, weight: Floats, part: Floats) -> Floats:
        """Evidence Z for sums of weights and of parts."""
        there = weight > 1e-300
        share = np.where(there, weight, 1.0) ** -self.mixing
        return np.asarray(self.base + np.where(there, part, 0.0) * share)

    def answer(self, evidence: Floats) -> Floats:
        if self.link is None:
            return evidence
        middle, reach = self.link
        return np.asarray(middle + reach * np.tanh((evidence - middle) / reach))

    def slope(self, evidence: Floats) -> Floats:
        if self.link is None:
            return np.ones_like(evidence)
        middle, reach = self.link
        return np.asarray(1.0 - np.tanh((evidence - middle) / reach) ** 2)

    @property
    def saturation(self) -> Saturation | None:
        """The link of the first point."""
        return (
            None
            if self.link is None
            else Saturation(float(self.link[0][0]), float(self.link[1][0]))
        )


@dataclass(frozen=True)
class Noise:
    """How far answers lie from the surrogate: a variance for every question.

    What a surrogate misses is noise in the evidence, before saturation: on a plateau of the
    answers hardly any of it gets through. It also differs between few and many units. So the
    variance of a question with n units is

        σ² · n^β · (ρ + (∂F/∂Z)²) / (1 + ρ)

    with σ² of every output, β and ρ (infinite without a saturation) by likelihood. In the fit a
    question about one unit alone counts e² times as much as its variance asks for, because a
    unit's value is what the model says of it alone, and so does the largest question, the text
    that is explained; standard errors take it into account.
    """

    scale: Floats
    by_size: float = 0.0
    leak: float = np.inf

    def variances(self, log_sizes: Floats, slope: Floats) -> Floats:
        """Questions × outputs, from the logarithms of sizes and the slope of the link."""
        return self.scale * _shape(log_sizes, slope, self.by_size, self.leak)

    def moved(self, residuals: Floats, free: Floats, log_sizes: Floats, slope: Floats) -> Noise:
        """The same shape with a scale between this one and that of residuals, by their number."""
        shape = _shape(log_sizes, slope, self.by_size, self.leak)
        squares = (residuals**2 / shape).sum(axis=0) + _USUAL * self.scale
        return replace(self, scale=squares / (free.sum(axis=0) + _USUAL))

    def updated(
        self,
        residuals: Floats,
        free: Floats,
        log_sizes: Floats,
        slope: Floats,
        floor: Floats,
        chooses_leak: bool = True,
    ) -> Noise:
        """A step towards the likeliest noise; ``free`` is 1 − leverage of every answer."""
        squares = residuals**2

        def scale_for(leak: float) -> tuple[Floats, Floats]:
            shape = _shape(log_sizes, slope, self.by_size, leak)
            return np.maximum((squares / shape).sum(axis=0) / free.sum(axis=0), floor), shape

        def loss(leak: float) -> float:
            scale, shape = scale_for(leak)
            return float((free * np.log(scale * shape)).sum())

        kept = np.isinf(self.leak) or not chooses_leak
        leak = self.leak if kept else float(min(_LEAKS, key=loss))
        scale, shape = scale_for(leak)
        excess = squares / (scale * shape)
        centred = (log_sizes - log_sizes.mean())[:, None]
        push = ((excess - free) * centred).sum() - _PULL * self.by_size
        stiffness = (excess * centred**2).sum() + _PULL
        step = float(np.clip(push / stiffness, -_STEP, _STEP))
        by_size = float(np.clip(self.by_size + step, -_STEEPEST, _STEEPEST))
        return Noise(scale, by_size, leak)


def log_sizes(sizes: Floats) -> Floats:
    """Logarithms of numbers of units; no unit at all is above 0, for it is none about one alone."""
    return np.where(sizes > 0, np.log(np.maximum(sizes, 1.0)), 1e-9)


def emphasis(sizes: Floats) -> Floats:
    """How much more questions count than by their variance, questions × 1."""
    told = (log_sizes(sizes) <= 0) | (sizes == sizes.max())
    return np.where(told, EMPHASIS, 1.0)[:, None]


def _shape(log_sizes: Floats, slope: Floats, by_size: float, leak: float) -> Floats:
    passed = np.ones_like(slope) if np.isinf(leak) else (leak + slope**2) / (1.0 + leak)
    return np.exp(by_size * log_sizes)[:, None] * passed
