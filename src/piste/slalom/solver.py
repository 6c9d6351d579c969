"""One solver for the whole family: damped Gauss–Newton with priors and noise from the data.

The posterior of the parameters θ = (s, e, b, γ, background, link) is maximised by
Levenberg–Marquardt with the exact Jacobian; after every step the scales of the priors
s ∼ N(0, σ_s²), e ∼ N(0, σ_e²) and the noise are set to what makes the answers most likely
(expectation–maximisation of the marginal likelihood). The linear algebra of a step is in
:mod:`piste.slalom.equations`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from piste.slalom.equations import Equations, equations
from piste.slalom.family import Form, Layout, Point, Questions
from piste.slalom.surrogate import Noise, emphasis, log_sizes
from piste.types import Floats

_ITERATIONS = 60
_SETTLED = 1e-3  # of the objective in a step
_ROUGH_ITERATIONS, _ROUGHLY = 6, 4e-3
_SCALES_SETTLED = 0.04  # of the logarithm of a prior's scale, or of β
_STILL = 1  # steps in a row that gain nothing and end a fit, whatever scales do
_ROUNDING = 1e-10  # of the answers' variance: noise below is rounding
_SHAPED, _FIRST_LEAK = 4, 0.16  # the step from which on noise may depend on the slope of the link
_LEAK_STEPS = 8  # near a solution in which ρ is chosen; later it stays
_SWINGS = 6  # steps with half of a new slope of the link; later ones count ever less
_LEAST_DAMPING = 1e-3  # below, a step is not damped at all, and costs no equations of its own
_FURTHEST = 9.0  # an importance beyond is the same as one there
_WIDEST = 3.0  # standard deviation of the prior on importances
_LEAST_WIDTH = 0.02
_PAIR = 1.0  # of the answers' spread: the prior on what a pair adds
_SAMPLES = 96
"""Samples that stand for the covariance of a large problem: errors to one part in fourteen."""
_ROUGH_SAMPLES = 32
"""The same for a fit that ends early."""
_FEW_SAMPLES = 12
"""Samples that scales are learned from in a large problem."""
_SELDOM = 2
"""Scales are learned at the first steps and every second one after."""


@dataclass(frozen=True)
class Posterior:
    """Where the solver ended: parameters θ, the equations there, and the noise."""

    layout: Layout
    theta: Floats
    equations: Equations
    samples: int
    noise: Noise
    log_evidence: float
    """Logarithm of the marginal likelihood (Laplace); NaN for large problems."""
    left_out: Floats
    """Leave-one-out residuals, questions × outputs, from the fit's own leverages."""
    iterations: int
    converged: bool
    scales: tuple[float, Floats]
    """Standard deviations of the priors on importances and on evidence (one per output)."""

    @property
    def prior(self) -> Floats:
        """Precisions of the priors on all parameters."""
        return self.equations.prior

    @cached_property
    def factor(self) -> Floats:
        """L with L Lᵀ the covariance of θ, or this many samples of it for a large problem."""
        return self.equations.factor(self.samples)


@dataclass
class _Priors:
    """Means and precisions of the Gaussian priors on all parameters."""

    mean: Floats
    precision: Floats

    def cost(self, theta: Floats) -> float:
        return float((self.precision * (theta - self.mean) ** 2).sum())


def solve(
    asked: Questions,
    outputs: Floats,
    form: Form,
    *,
    start: Posterior | None = None,
    prior: tuple[Floats, Floats] | None = None,
    noise: Noise | None = None,
    roughly: bool = False,
    rival: float = -np.inf,
) -> Posterior:
    """Fit a form to outputs (questions × outputs).

    ``start`` is an earlier fit of the same types to begin at. ``prior`` are means and standard
    deviations of all parameters (in the order of :class:`~piste.slalom.family.Layout`), where
    something is known before: the search begins at the means, and the scales are not learned.
    ``noise`` is the usual noise where that is known, too: few answers change it little.
    ``roughly`` ends early, for comparing forms, and earlier still where a fit is not going to have
    a log marginal likelihood of ``rival``.
    """
    search = _Search(asked, outputs, form, prior, noise)
    if roughly:
        return search.run(start, _ROUGH_ITERATIONS, _ROUGHLY, rival)
    return search.run(start, _ITERATIONS, _SETTLED)


@dataclass(frozen=True)
class _System:
    """The equations at a point, and what they were made of."""

    point: Point
    slope: Floats
    precision: Floats
    """Of every answer, questions × outputs."""
    gradient: Floats
    equations: Equations


class _Search:
    def __init__(
        self,
        asked: Questions,
        outputs: Floats,
        form: Form,
        prior: tuple[Floats, Floats] | None,
        noise: Noise | None = None,
    ) -> None:
        self.asked, self.outputs = asked, outputs
        self.layout = Layout(asked.types, outputs.shape[1], form, asked.together.shape[1])
        self.log_sizes = log_sizes(asked.sizes)
        self.spread = np.maximum(outputs.std(axis=0), 1e-12 * (1 + np.abs(outputs).max(axis=0)))
        self.floor = _ROUNDING * self.spread**2
        self.width, self.widths = 0.7, 0.3 * self.spread
        self.usual = noise
        self.noise = Noise((0.5 * self.spread) ** 2) if noise is None else noise
        self.slope: Floats | None = None
        self.swings = 0
        self.emphasis = emphasis(asked.sizes)
        self.known = prior is not None
        self.priors = self._priors() if prior is None else _Priors(prior[0], prior[1] ** -2.0)

    def _priors(self) -> _Priors:
        """Weak priors on what all units share; those on s and e follow from the data."""
        layout, spread = self.layout, self.spread
        mean, deviation = np.zeros(layout.size), np.ones(layout.size)
        mean[layout.base], deviation[layout.base] = self.outputs.mean(axis=0), 2 * spread
        if layout.mixing is not None:
            mean[layout.mixing], deviation[layout.mixing] = 0.5, 0.3
        if layout.background is not None:
            deviation[layout.background] = 2.0
            own = slice(layout.background + 1, layout.background + 1 + layout.outputs)
            deviation[own] = 2 * spread
        if layout.link is not None:
            low, high = float(self.outputs.min()), float(self.outputs.max())
            half = max((high - low) / 2, float(spread[0]))
            mean[layout.link], deviation[layout.link] = (low + high) / 2, half
            mean[layout.link + 1], deviation[layout.link + 1] = np.log(half) + 0.3, 0.7
        return _Priors(mean, deviation**-2.0)

    def _set_scales(self) -> None:
        if self.known:
            return
        layout = self.layout
        self.priors.precision[layout.importances] = self.width**-2
        self.priors.precision[layout.evidence] = np.repeat(self.widths**-2.0, layout.types)
        self.priors.precision[layout.pairs] = (_PAIR * self.spread[0]) ** -2.0

    # -- the search ----------------------------------------------------------------------------

    def run(
        self, start: Posterior | None, most: int, tolerance: float, rival: float = -np.inf
    ) -> Posterior:
        theta = self.priors.mean.copy()
        if start is not None:
            theta = self._from(start, theta)
        point = Point(self.asked, self.layout, theta)
        damping, done, iteration, reached = 1e-2, False, 0, -np.inf
        still = 0  # steps in a row that gained nothing: scales may go on drifting for long
        # Steps until a fit is near enough to be judged.
        begun = _SHAPED if start is None and self.usual is None else 0
        while iteration < most and not done:
            self._set_scales()
            system = self._system(point)
            before = self._state()
            if iteration == begun and self.layout.link is not None and np.isinf(self.noise.leak):
                self.noise = replace(self.noise, leak=_FIRST_LEAK)
            learns = 0 < iteration <= _SHAPED or iteration % _SELDOM == 1
            if learns and np.isfinite(rival):
                earlier, reached = reached, self._log_evidence(system)
                pace = reached - earlier
                if iteration >= _SHAPED and reached + (most - iteration) * pace < rival:
                    break
            if learns:
                self._learn_scales(system, point, iteration - begun)
            point, damping, gain = self._step(system, point, damping)
            change = float(np.abs(self._state() - before).max())
            iteration += 1
            still = still + 1 if gain < tolerance else 0
            settled = still and change < _SCALES_SETTLED * tolerance / _SETTLED
            done = iteration > begun + 1 and bool((learns and settled) or still > _STILL)
        self._set_scales()
        system = self._system(point)
        samples = _SAMPLES if tolerance <= _SETTLED else _ROUGH_SAMPLES
        _, free = self._spread(system, samples)
        return Posterior(
            self.layout,
            point.theta,
            system.equations,
            samples,
            self.noise,
            self._log_evidence(system),
            (self.outputs - point.predicted) / free,
            iteration,
            done,
            (float(self.width), self.widths.copy()),
        )

    def _system(self, point: Point) -> _System:
        """The equations at a point.

        Noise depends on the slope of the link, and the link on the noise: a mean with the slopes
        before keeps the two from swinging to and fro, for ever in some texts.
        """
        before = point.slope if self.slope is None else self.slope
        self.swings += 1
        self.slope = before + (point.slope - before) / max(2, self.swings - _SWINGS)
        layout, priors = self.layout, self.priors
        precision = self.emphasis / self.noise.variances(self.log_sizes, self.slope)
        jacobian = point.jacobian()
        push = ((self.outputs - point.predicted) * precision).T.ravel()
        gradient = jacobian.T @ push - priors.precision * (point.theta - priors.mean)
        found = equations(
            jacobian,
            precision.T.ravel(),
            np.tile(self.emphasis.ravel(), layout.outputs),
            priors.precision.copy(),
        )
        return _System(point, self.slope, precision, gradient, found)

    def _from(self, start: Posterior, theta: Floats) -> Floats:
        """Parameters of an earlier fit, as far as both forms have them."""
        mine, theirs = self.layout, start.layout
        theta = theta.copy()
        if mine.weighted:
            theta[mine.importances] = theirs.log_weights(start.theta)
        theta[mine.evidence] = start.theta[theirs.evidence]
        theta[mine.base] = start.theta[theirs.base]
        if mine.mixing is not None:
            theta[mine.mixing] = np.clip(theirs.gamma(start.theta), 0.1, 0.9)
        for one, other, count in (
            (mine.background, theirs.background, 1 + mine.outputs),
            (mine.link, theirs.link, 2),
        ):
            if one is not None and other is not None:
                theta[one : one + count] = start.theta[other : other + count]
        self.width, self.widths = start.scales[0], start.scales[1].copy()
        leak = start.noise.leak if mine.link is not None else np.inf
        self.noise = replace(start.noise, leak=leak)
        return theta

    def _state(self) -> Floats:
        """Everything that is learned about scales, as logarithms."""
        logs = np.log([self.width, *self.widths, *self.noise.scale])
        return np.append(logs, self.noise.by_size)

    def _objective(self, point: Point, precision: Floats) -> float:
        missed = precision * (self.outputs - point.predicted) ** 2
        return float(missed.sum()) + self.priors.cost(point.theta)

    def _step(self, system: _System, point: Point, damping: float) -> tuple[Point, float, float]:
        """One accepted step, the next damping, and the share of the objective it gained."""
        before = self._objective(point, system.precision)
        for _ in range(8):
            theta = point.theta + system.equations.step(system.gradient, damping)
            layout = self.layout
            np.clip(theta[layout.importances], -_FURTHEST, _FURTHEST, theta[layout.importances])
            if layout.mixing is not None:
                theta[layout.mixing] = np.clip(theta[layout.mixing], 0.0, 1.0)
            moved = Point(self.asked, layout, theta)
            after = self._objective(moved, system.precision)
            if after <= before:
                damping = damping / 5 if damping >= 5 * _LEAST_DAMPING else 0.0
                return moved, damping, (before - after) / max(before, 1e-300)
            damping = max(damping * 6, _LEAST_DAMPING)
        return point, damping, 0.0

    def _spread(self, system: _System, samples: int) -> tuple[Floats, Floats]:
        """Variances of the parameters, and 1 less every answer's leverage (questions × outputs)."""
        variances, leverages = system.equations.spread(samples)
        shape = (self.layout.outputs, self.asked.count)
        return variances, 1.0 - np.clip(leverages.reshape(shape).T, 0.0, 0.98)

    def _log_evidence(self, system: _System) -> float:
        objective = self._objective(system.point, system.precision)
        precisions = float(np.log(self.priors.precision).sum() + np.log(system.precision).sum())
        constant = system.precision.size * np.log(2 * np.pi)
        return -0.5 * (objective + system.equations.log_determinant - precisions + constant)

    def _learn_scales(self, system: _System, point: Point, shaped: int) -> None:
        """A step of expectation–maximisation; ``shaped`` counts the steps near a solution."""
        own, free = self._spread(system, _FEW_SAMPLES)
        residuals = self.outputs - point.predicted
        if self.usual is not None:
            self.noise = self.usual.moved(residuals, free, self.log_sizes, system.slope)
            return
        before = self.noise
        self.noise = before.updated(
            residuals, free, self.log_sizes, system.slope, self.floor, shaped < _LEAK_STEPS
        )
        if shaped < 0:  # residuals far from a solution say nothing on how noise depends on size
            self.noise = replace(self.noise, by_size=before.by_size)
        if self.known:
            return
        layout, count = self.layout, max(self.layout.types, 1)
        second = (point.theta - self.priors.mean) ** 2 + own
        for output in range(layout.outputs):
            mean = float(second[layout.evidence_of(output)].sum()) / count
            self.widths[output] = np.sqrt(max(mean, 1e-12 * self.spread[output] ** 2))
        if layout.weighted:
            width = np.sqrt(float(second[layout.importances].sum()) / count)
            self.width = float(np.clip(width, _LEAST_WIDTH, _WIDEST))
