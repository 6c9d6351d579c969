"""One solver for the whole family: damped Gauss–Newton with priors and noise from the data.

The posterior of the parameters θ = (s, e, b, γ, background, β, link) is maximised by
Levenberg–Marquardt with the exact Jacobian; after every step the scales of the priors
s ∼ N(0, σ_s²), e ∼ N(0, σ_e²) and the noise are set to what makes the answers most likely
(expectation–maximisation of the marginal likelihood).

With J the derivatives of the answers, W their precisions and P those of the priors, a step needs
H⁻¹ = (Jᵀ W J + P)⁻¹: by a Cholesky factor of H; where there are fewer questions than parameters, by
one of C = I + S P⁻¹ Sᵀ with S = √W J, for

    H⁻¹ = P⁻¹ − P⁻¹ Sᵀ C⁻¹ S P⁻¹      S H⁻¹ Sᵀ = I − C⁻¹      |H| = |P| |C|

and for more parameters than a table can hold by :mod:`piste.slalom.large`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.linalg import blas, lapack

from piste.slalom.family import Form, Layout, Point, Questions, is_large
from piste.slalom.large import ByProducts
from piste.slalom.surrogate import Noise, emphasis, log_sizes
from piste.types import Floats

USUAL_MIXING, MIXING_SPREAD = 0.5, 0.3
"""Mean and standard deviation of the prior on γ."""
_ITERATIONS = 30
_SETTLED = 1e-3  # of the objective in a step
_ROUGH_ITERATIONS, _ROUGHLY = 8, 4e-3
_SCALES_SETTLED = 0.04  # of the logarithm of a prior's scale, or of β
_STILL, _DRIFT = 2, 0.3  # steps that gain nothing while scales only drift: they may go on for long
_ROUNDING = 1e-10  # of the answers' variance: noise below is rounding
_SHAPED, _FIRST_LEAK = 4, 0.16  # the step from which on noise may depend on the slope of the link
_LEAK_STEPS = 8  # near a solution in which ρ is chosen; later it stays
_SWINGS, _SHARE = 6, 4  # a new slope of the link counts half, from the ninth step on a quarter
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


class Equations(Protocol):
    """H = Jᵀ W J + P at a point, and what follows from H⁻¹."""

    prior: Floats

    def step(self, gradient: Floats, damping: float) -> Floats:
        """(H + damping · diag H)⁻¹ gradient."""

    def spread(self, samples: int) -> tuple[Floats, Floats]:
        """Diagonals of H⁻¹ and of √W J H⁻¹ Jᵀ √W: variances of parameters, and leverages.

        ``samples`` are drawn where they can't be had exactly.
        """

    def factor(self, samples: int) -> Floats:
        """L with L Lᵀ the covariance H⁻¹ (Jᵀ W V W J + P) H⁻¹, or samples of it.

        Under the true variances V a score Jᵀ W r varies by Jᵀ W V W J, and W V is the emphasis.
        """

    def unexplained(self, changes: Floats) -> Floats:
        """(W − W J H⁻¹ Jᵀ W) changes: what the parameters cannot make up for, every column."""

    @property
    def log_determinant(self) -> float:
        """Of H; NaN where it can't be had."""


@dataclass(frozen=True)
class Posterior:
    """Where the solver ended: parameters θ, their covariance, and the noise."""

    layout: Layout
    theta: Floats
    factor: Floats
    """L with L Lᵀ the covariance of θ, or samples of it for a large problem; empty after a rough
    fit."""
    prior: Floats
    """Precisions of the priors on all parameters."""
    noise: Noise
    log_evidence: float
    """Logarithm of the marginal likelihood (Laplace); NaN for large problems."""
    left_out: Floats
    """Leave-one-out residuals, questions × outputs, from the fit's own leverages."""
    iterations: int
    converged: bool
    scales: tuple[float, Floats]
    """Standard deviations of the priors on importances and on evidence (one per output)."""


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
) -> Posterior:
    """Fit a form to outputs (questions × outputs).

    ``start`` is an earlier fit of the same types to begin at. ``prior`` are means and standard
    deviations of all parameters (in the order of :class:`~piste.slalom.family.Layout`), where
    something is known before: the search begins at the means, and the scales are not learned.
    ``noise`` is the usual noise where that is known, too: few answers change it little.
    ``roughly`` ends early, for comparing forms, and leaves the covariance out.
    """
    search = _Search(asked, outputs, form, prior, noise)
    if roughly:
        more = 2 if is_large(asked.types, outputs.shape[1]) else 1
        return search.run(start, more * _ROUGH_ITERATIONS, _ROUGHLY)
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
        self.layout = asked.layout(outputs.shape[1], form)
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
            mean[layout.mixing], deviation[layout.mixing] = USUAL_MIXING, MIXING_SPREAD
        if layout.background is not None:
            deviation[layout.background] = 2.0
            own = slice(layout.background + 1, layout.background + 1 + layout.outputs)
            deviation[own] = 2 * spread
        if layout.guided is not None and layout.guide is not None:
            size = float(np.sqrt((layout.guide**2).mean()))
            deviation[layout.guided] = spread[0] / (size or 1.0)
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

    def run(self, start: Posterior | None, most: int, tolerance: float) -> Posterior:
        theta = self.priors.mean.copy()
        if start is not None:
            theta = self._from(start, theta)
        point = Point(self.asked, self.layout, theta)
        damping, done, iteration = 1e-2, False, 0
        still = 0  # steps in a row that gained less than the tolerance
        # Steps until a fit is near enough to be judged.
        begun = _SHAPED if start is None and self.usual is None else 0
        moved = np.inf  # the largest change of a scale when they were last learned
        while iteration < most and not done:
            self._set_scales()
            system = self._system(point)
            before = self._state()
            if iteration == begun and self.layout.link is not None and np.isinf(self.noise.leak):
                self.noise = replace(self.noise, leak=_FIRST_LEAK)
            learns = 0 < iteration <= _SHAPED or iteration % _SELDOM == 1
            if learns:
                self._learn_scales(system, point, iteration - begun)
            point, damping, gain = self._step(system, point, damping)
            change = float(np.abs(self._state() - before).max())
            iteration += 1
            still = still + 1 if gain < tolerance else 0
            moved = change if learns else moved
            settled = gain < tolerance and change < _SCALES_SETTLED * tolerance / _SETTLED
            done = learns and iteration > begun + 1 and settled
            if still >= _STILL and iteration > begun + 1 and moved < _DRIFT:
                break
        self._set_scales()
        system = self._system(point)
        rough = tolerance > _SETTLED
        _, free = self._spread(system, _ROUGH_SAMPLES if rough else _SAMPLES)
        nothing = np.zeros((self.layout.size, 0))
        return Posterior(
            self.layout,
            point.theta,
            nothing if rough else system.equations.factor(_SAMPLES),
            system.equations.prior,
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
        self.slope = before + (point.slope - before) / min(max(2, self.swings - _SWINGS), _SHARE)
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
            (mine.guided, theirs.guided, 1),
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
        layout, there = self.layout, self.asked.there
        count = max(int(there.sum()), 1)
        second = (point.theta - self.priors.mean) ** 2 + own
        for output in range(layout.outputs):
            mean = float(second[layout.evidence_of(output)][there].sum()) / count
            self.widths[output] = np.sqrt(max(mean, 1e-12 * self.spread[output] ** 2))
        if layout.weighted:
            width = np.sqrt(float(second[layout.importances][there].sum()) / count)
            self.width = float(np.clip(width, _LEAST_WIDTH, _WIDEST))


# -- the linear algebra of a step --------------------------------------------------------------


def equations(jacobian: Any, precision: Floats, emphasis: Floats, prior: Floats) -> Equations:
    """The quickest way for a Jacobian (questions × parameters), which is sparse if it is large.

    ``emphasis`` is how much more an answer counts than by its variance.

    >>> rng = np.random.default_rng(0)
    >>> ones, wide = np.ones(4), rng.normal(size=(4, 6))
    >>> few = equations(wide, ones, ones, np.ones(6))
    >>> inverse = np.linalg.inv(wide.T @ wide + np.eye(6))
    >>> type(few).__name__, bool(np.allclose(few.spread(0)[0], np.diag(inverse)))
    ('_ByQuestions', True)
    """
    if not isinstance(jacobian, np.ndarray):
        return ByProducts(jacobian, precision, emphasis, prior)
    kind = _ByQuestions if len(jacobian) < len(prior) else _ByParameters
    return kind(jacobian, precision, emphasis, prior)


class _ByParameters:
    """By a Cholesky factor of H."""

    def __init__(
        self, jacobian: Floats, precision: Floats, emphasis: Floats, prior: Floats
    ) -> None:
        self.jacobian, self.precision = jacobian, precision
        self.emphasis, self.prior = emphasis, prior

    @cached_property
    def scaled(self) -> Floats:
        """S = √W J."""
        return np.asarray(self.jacobian * np.sqrt(self.precision)[:, None])

    @cached_property
    def _normal(self) -> Floats:
        return np.asarray(self.scaled.T @ self.scaled)

    @cached_property
    def _triangle(self) -> Floats:
        return _cholesky(self._normal, self.prior)

    def step(self, gradient: Floats, damping: float) -> Floats:
        triangle = self._triangle
        if damping:
            damped = damping * (np.diag(self._normal) + self.prior)
            triangle = _cholesky(self._normal, self.prior + damped)
        return np.asarray(lapack.dpotrs(triangle, gradient, lower=1)[0])

    def spread(self, samples: int) -> tuple[Floats, Floats]:
        root = lapack.dtrtri(self._triangle, lower=1)[0]
        moved = blas.dtrmm(1.0, root, self.scaled.T, lower=1)
        return np.einsum("ij,ij->j", root, root), np.einsum("ij,ij->j", moved, moved)

    def factor(self, samples: int) -> Floats:
        told = self.scaled * np.sqrt(self.emphasis)[:, None]
        root = _cholesky(told.T @ told, self.prior)
        return np.asarray(lapack.dpotrs(self._triangle, root, lower=1)[0])

    def unexplained(self, changes: Floats) -> Floats:
        root = np.sqrt(self.precision)[:, None]
        scaled = root * changes
        absorbed = lapack.dpotrs(self._triangle, self.scaled.T @ scaled, lower=1)[0]
        return np.asarray(root * (scaled - self.scaled @ absorbed))

    @property
    def log_determinant(self) -> float:
        return 2.0 * float(np.log(np.diag(self._triangle)).sum())


class _ByQuestions(_ByParameters):
    """The same numbers by a factor of C, which is smaller where there are few questions."""

    @cached_property
    def _whitened(self) -> Floats:
        """S P^{−½}."""
        return np.asarray(self.scaled / np.sqrt(self.prior))

    @cached_property
    def _small(self) -> Floats:
        """The Cholesky factor of C."""
        return _cholesky(self._whitened @ self._whitened.T, 1.0)

    def step(self, gradient: Floats, damping: float) -> Floats:
        prior, whitened, small = self.prior, self._whitened, None if damping else self._small
        if small is None:
            own = np.einsum("ij,ij->j", self.scaled, self.scaled) + prior
            prior = prior + damping * own
            whitened = self.scaled / np.sqrt(prior)
            small = _cholesky(whitened @ whitened.T, 1.0)
        root = np.sqrt(prior)
        right = gradient / root
        absorbed = lapack.dpotrs(small, whitened @ right, lower=1)[0]
        return np.asarray((right - whitened.T @ absorbed) / root)

    def spread(self, samples: int) -> tuple[Floats, Floats]:
        root = lapack.dtrtri(self._small, lower=1)[0]
        moved = root @ self._whitened
        left = 1.0 - np.einsum("ij,ij->j", moved, moved)
        return np.maximum(left, 1e-12) / self.prior, 1.0 - np.einsum("ij,ij->j", root, root)

    def unexplained(self, changes: Floats) -> Floats:
        root = np.sqrt(self.precision)[:, None]
        return np.asarray(root * lapack.dpotrs(self._small, root * changes, lower=1)[0])

    @property
    def log_determinant(self) -> float:
        small = 2.0 * float(np.log(np.diag(self._small)).sum())
        return small + float(np.log(self.prior).sum())


def _cholesky(matrix: Floats, diagonal: Floats | float) -> Floats:
    """The lower factor of a symmetric matrix with something added to its diagonal."""
    copy = matrix.T.copy(order="F")
    copy[np.diag_indices(len(copy))] += diagonal
    return np.asarray(lapack.dpotrf(copy, lower=1, overwrite_a=1)[0])
