"""The parameters of one output, at one point or at many at once.

Scores are functions of the parameters. Evaluating them at θ ± δ·column for every column of a
factor L of the covariance gives their changes along all directions, and the norm of those is the
standard error (delta method).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from piste.slalom.family import Layout
from piste.slalom.link import Saturation
from piste.slalom.surrogate import Slalom
from piste.types import Floats, Ints


@dataclass(frozen=True)
class Parameters:
    """Arrays whose last axis runs over points: types × points, or points."""

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

    @staticmethod
    def at(layout: Layout, points: Floats, known: Floats | None = None) -> Parameters:
        """Columns of ``points`` as parameter vectors of a layout with one output.

        ``known`` marks the types the layout has, if it has not all of them.
        """
        importances, evidence = layout.log_weights(points), points[layout.evidence]
        if known is not None:
            every = np.zeros((2, len(known), points.shape[1]))
            every[0][known.astype(bool)], every[1][known.astype(bool)] = importances, evidence
            importances, evidence = every
        if layout.mixing is None:
            assert layout.form.mixing is not None
            mixing = np.full(points.shape[1], layout.form.mixing)
        else:
            mixing = np.clip(points[layout.mixing], 0.0, 1.0)
        background = link = None
        if layout.background is not None:
            background = points[layout.background], points[layout.background + 1]
        if layout.link is not None:
            link = points[layout.link], np.exp(np.minimum(points[layout.link + 1], 50.0))
        base = points[layout.base][0]
        return Parameters(importances, evidence, mixing, base, background, link)

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

    @property
    def weights(self) -> Floats:
        return np.exp(self.importances)

    @property
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
