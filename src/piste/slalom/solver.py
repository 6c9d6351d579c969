"""One solver for the whole family: damped Gauss–Newton with priors and noise from the data.

The posterior of the parameters θ = (s, e, b, γ, background, link) is maximised by
Levenberg–Marquardt with the exact Jacobian; after every step the scales of the priors
s ∼ N(0, σ_s²), e ∼ N(0, σ_e²) and the noise are set to what makes the answers most likely
(MacKay's updates of the marginal likelihood). Up to some hundred parameters linear algebra is by
Cholesky factors; beyond, by conjugate gradients, and the covariance by samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import blas, lapack
from scipy.sparse.linalg import LinearOperator, cg

from piste.slalom.family import MOST_DENSE, Form, Layout, Point, Questions
from piste.slalom.surrogate import Noise, emphasis, log_sizes
from piste.types import Floats

_ITERATIONS = 60
_SETTLED = 1e-4  # of the objective in a step
_ROUGH_ITERATIONS, _ROUGHLY = 8, 4e-4
_SCALES_SETTLED = 0.02  # of the logarithm of a prior's scale, or of β
_ROUNDING = 1e-10  # of the answers' variance: noise below is rounding
_SHAPED, _FIRST_LEAK = 4, 0.16  # the step from which on noise may depend on the slope of the link
_LEAK_STEPS = 8  # near a solution in which ρ is chosen; later it stays
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
_CLOSE, _PRODUCTS = 1e-3, 80
"""Of conjugate gradients: the residual that is small enough, and the most steps."""
_CLOSE_SAMPLE = 1e-2
"""The same for a sample, which is random itself."""
_AT_ONCE = 16
"""Samples that are solved for side by side."""
_SELDOM = 2
"""Scales are learned at the first steps and every second one after."""


@dataclass(frozen=True)
class Posterior:
    """Where the solver ended: parameters θ, a factor L of their covariance L Lᵀ, and the noise."""

    layout: Layout
    theta: Floats
    factor: Floats
    noise: Noise
    log_evidence: float
    """Logarithm of the marginal likelihood (Laplace); NaN for large problems."""
    left_out: Floats
    """Leave-one-out residuals, questions × outputs, from the fit's own leverages."""
    iterations: int
    converged: bool
    scales: tuple[float, Floats]
    """Standard deviations of the priors on importances and on evidence (one per output)."""
    prior: Floats
    """Precisions of the priors on all parameters."""


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
    ``roughly`` ends early, for comparing forms.
    """
    search = _Search(asked, outputs, form, prior, noise)
    if roughly:
        return search.run(start, _ROUGH_ITERATIONS, _ROUGHLY)
    return search.run(start, _ITERATIONS, _SETTLED)


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

    def run(self, start: Posterior | None, most: int, tolerance: float) -> Posterior:
        theta = self.priors.mean.copy()
        if start is not None:
            theta = self._from(start, theta)
        point = Point(self.asked, self.layout, theta)
        damping, done, iteration = 1e-2, False, 0
        # Steps until a fit is near enough to be judged.
        begun = _SHAPED if start is None and self.usual is None else 0
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
            settled = gain < tolerance and change < _SCALES_SETTLED * tolerance / _SETTLED
            done = learns and iteration > begun + 1 and settled
        self._set_scales()
        system = self._system(point)
        samples = _SAMPLES if tolerance <= _SETTLED else _ROUGH_SAMPLES
        free = self._free(system, system.inverse_root(samples))
        return Posterior(
            self.layout,
            point.theta,
            system.factor(samples),
            self.noise,
            system.log_evidence(),
            (self.outputs - point.predicted) / free,
            iteration,
            done,
            (float(self.width), self.widths.copy()),
            self.priors.precision.copy(),
        )

    def _system(self, point: Point) -> _System:
        """The equations at a point.

        Noise depends on the slope of the link, and the link on the noise: a mean with the slopes
        before keeps the two from swinging to and fro.
        """
        before = point.slope if self.slope is None else self.slope
        self.slope = (before + point.slope) / 2
        return _System(self, point, self.slope)

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
            theta = point.theta + system.step(damping)
            layout = self.layout
            np.clip(theta[layout.importances], -_FURTHEST, _FURTHEST, theta[layout.importances])
            if layout.mixing is not None:
                theta[layout.mixing] = np.clip(theta[layout.mixing], 0.0, 1.0)
            moved = Point(self.asked, layout, theta)
            after = self._objective(moved, system.precision)
            if after <= before:
                return moved, max(damping / 5, 1e-9), (before - after) / max(before, 1e-300)
            damping = max(damping * 6, 1e-4)
        return point, damping, 0.0

    def _free(self, system: _System, root: Floats) -> Floats:
        """1 less what each answer determines of its own prediction, questions × outputs."""
        shape = (self.layout.outputs, self.asked.count)
        return 1.0 - np.clip(system.leverages(root).reshape(shape).T, 0.0, 0.98)

    def _learn_scales(self, system: _System, point: Point, shaped: int) -> None:
        """A step of expectation–maximisation; ``shaped`` counts the steps near a solution."""
        factor = system.inverse_root(_FEW_SAMPLES)
        free = self._free(system, factor)
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
        own = np.einsum("ij,ij->i", factor, factor)
        second = (point.theta - self.priors.mean) ** 2 + own
        for output in range(layout.outputs):
            mean = float(second[layout.evidence_of(output)].sum()) / count
            self.widths[output] = np.sqrt(max(mean, 1e-12 * self.spread[output] ** 2))
        if layout.weighted:
            width = np.sqrt(float(second[layout.importances].sum()) / count)
            self.width = float(np.clip(width, _LEAST_WIDTH, _WIDEST))


class _System:
    """The normal equations H = Jᵀ V⁻¹ J + P at a point."""

    def __init__(self, search: _Search, point: Point, slope: Floats) -> None:
        self.search, self.point, self.slope = search, point, slope
        self.jacobian = point.jacobian()
        self.dense = search.layout.size <= MOST_DENSE
        variances = search.noise.variances(search.log_sizes, slope)
        self.precision = search.emphasis / variances
        self.flat = self.precision.T.ravel()
        # Under the true variances a score Jᵀ W r varies by Jᵀ W V W J, and W V is the emphasis.
        self.emphasis = np.tile(search.emphasis.ravel(), search.layout.outputs)
        priors = search.priors
        self.prior = priors.precision
        residual = (search.outputs - point.predicted) * self.precision
        self.gradient = self.jacobian.T @ residual.T.ravel()
        self.gradient -= self.prior * (point.theta - priors.mean)
        if self.dense:
            self.scaled = self.jacobian * np.sqrt(self.flat)[:, None]
            self.normal = self.scaled.T @ self.scaled
            self.diagonal = np.diag(self.normal) + self.prior
        else:
            self.diagonal = (self.jacobian.power(2).T @ self.flat) + self.prior

    def step(self, damping: float) -> Floats:
        if self.dense:
            matrix = _with_diagonal(self.normal, self.prior + damping * self.diagonal)
            triangle = lapack.dpotrf(matrix, lower=1, overwrite_a=1)[0]
            return np.asarray(lapack.dpotrs(triangle, self.gradient, lower=1)[0])
        return self._by_products(self.gradient, damping)

    def _by_products(self, right: Floats, damping: float = 0.0) -> Floats:
        """H⁻¹ right by conjugate gradients."""

        def times(vector: Floats) -> Floats:
            moved = self.flat * (self.jacobian @ vector)
            return self.jacobian.T @ moved + (self.prior + damping * self.diagonal) * vector

        size = (len(right), len(right))
        own = self.diagonal * (1.0 + damping)
        found, _ = cg(
            LinearOperator(size, matvec=times, dtype=np.float64),
            right,
            rtol=_CLOSE,
            maxiter=_PRODUCTS,
            M=LinearOperator(size, matvec=lambda vector: vector / own, dtype=np.float64),
        )
        return np.asarray(found)

    @cached_property
    def _triangle(self) -> Floats:
        matrix = _with_diagonal(self.normal, self.prior)
        return np.asarray(lapack.dpotrf(matrix, lower=1, overwrite_a=1)[0])

    def inverse_root(self, samples: int) -> Floats:
        """R with R Rᵀ = H⁻¹; samples of it for a large problem."""
        if self.dense:
            return np.asarray(lapack.dtrtri(self._triangle, lower=1)[0].T)
        return self._sampled(np.ones_like(self.emphasis), samples)

    def leverages(self, root: Floats) -> Floats:
        """Diagonal of √W J H⁻¹ Jᵀ √W from the root of H⁻¹, which is triangular if it is dense."""
        if self.dense:
            moved = blas.dtrmm(1.0, root.T, self.scaled.T, lower=1)
            return np.einsum("ij,ij->j", moved, moved)
        moved = np.sqrt(self.flat)[:, None] * (self.jacobian @ root)
        return np.einsum("ij,ij->i", moved, moved)

    def factor(self, samples: int) -> Floats:
        """L with L Lᵀ the covariance H⁻¹ (Jᵀ W V W J + P) H⁻¹; samples for a large problem."""
        if not self.dense:
            return self._sampled(self.emphasis, samples)
        told = self.scaled * np.sqrt(self.emphasis)[:, None]
        scatter = _with_diagonal(told.T @ told, self.prior)
        root = lapack.dpotrf(scatter, lower=1, overwrite_a=1)[0]
        return np.asarray(lapack.dpotrs(self._triangle, root, lower=1)[0])

    def _sampled(self, emphasis: Floats, samples: int) -> Floats:
        """H⁻¹ (Jᵀ √W ε + √P ε') for random ε, all samples at once: one pass over J serves many."""
        rng, columns = np.random.default_rng(0), []
        spread, pull = np.sqrt(self.flat * emphasis)[:, None], np.sqrt(self.prior)[:, None]
        for start in range(0, samples, _AT_ONCE):
            count = min(_AT_ONCE, samples - start)
            right = self.jacobian.T @ (spread * rng.standard_normal((len(spread), count)))
            right += pull * rng.standard_normal((len(pull), count))
            columns.append(self._by_blocks(right))
        return np.concatenate(columns, axis=1) / np.sqrt(samples)

    def _by_blocks(self, right: Floats) -> Floats:
        """H⁻¹ of every column by conjugate gradients, side by side."""
        found, residual = np.zeros_like(right), right.copy()
        flat, prior, own = self.flat[:, None], self.prior[:, None], self.diagonal[:, None]
        turned = self.jacobian.T.tocsr()
        direction = residual / own
        size = (residual * direction).sum(axis=0)
        goal = _CLOSE_SAMPLE**2 * (right**2).sum(axis=0)
        for _ in range(_PRODUCTS):
            image = turned @ (flat * (self.jacobian @ direction)) + prior * direction
            step = size / np.maximum((direction * image).sum(axis=0), 1e-300)
            found += step * direction
            residual -= step * image
            if ((residual**2).sum(axis=0) <= goal).all():
                break
            scaled = residual / own
            before, size = size, (residual * scaled).sum(axis=0)
            direction = scaled + size / np.maximum(before, 1e-300) * direction
        return found

    def log_evidence(self) -> float:
        if not self.dense:
            return float("nan")
        search = self.search
        objective = search._objective(self.point, self.precision)
        determinant = 2.0 * float(np.log(np.diag(self._triangle)).sum())
        scales = float(np.log(self.prior).sum() + np.log(self.flat).sum())
        constant = len(self.flat) * np.log(2 * np.pi)
        return -0.5 * (objective + determinant - scales + constant)


def _with_diagonal(matrix: Floats, more: Floats) -> Floats:
    """A copy with something added to the diagonal."""
    copy = matrix.copy()
    copy.flat[:: len(copy) + 1] += more
    return copy
