"""Levenberg–Marquardt on all parameters of a saturating SLALOM at once, answers and slopes.

The objective is Σ (y − F)² + ω Σ (g − G)² + λ_s Σ s² + λ_v Σ (v − v̄)², with weak priors on what
is left. All strengths come from the data: λ_s and λ_v by MacKay's fixed point of the marginal
likelihood, and ω from the residuals: half the way, on a logarithmic scale, between 1 (answers and
slopes are in the same unit) and σ_y² over the squared slope errors of a question. Not all the way:
where a model is no SLALOM, the slopes of a question err together, and the less is left of the
answers' errors, the less slopes would count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from piste.slalom.equations import Equations, Floats, Normal, State
from piste.slalom.evidence import DOUBT, DOUBT_S
from piste.slalom.link import Saturation
from piste.slalom.problem import Strengths

_SETTLED_GAIN, _SETTLED_STRENGTHS = 1e-3, 0.05
_LONGEST_STEP = 3.0
# Of a background, where a type has 1 on average. At 0 it would speak by its mass alone, and nothing
# could be said of an empty text.
_LEAST_WEIGHT = 0.1
# In units of the longest question's weight: the heavier the background, the nearer to a sum, with
# values that grow without bound while answers hardly change. A mean must be left to have values.
_MOST_WEIGHT = 2.0
_MOST_TRIES = 12
_REACH = 0.6
"""Where the search for the saturation begins: its reach in units of the answers' range."""
_DOUBT_REACH = 0.5
"""Standard deviation of the prior on the logarithm of the reach."""


@dataclass(frozen=True)
class JointResult:
    """What the solver found."""

    importances: Floats
    values: Floats
    weight: float
    mass: float
    link: Saturation | None
    curvature: JointCurvature
    ridge: Strengths
    noise: float
    """Variance of the answers around what is expected, less what the fit has used up."""
    slope_weight: float
    """ω; 0 without slopes."""
    iterations: int
    converged: bool


@dataclass(frozen=True)
class JointCurvature:
    """The covariance of the parameters, from the normal equations at the solution."""

    covariance: Floats
    types: int
    background: bool

    def directions(self, class_: int, most: int) -> Floats:
        """A factor of the covariance of (s, w, v, u); without a background of (s, v)."""
        types, own = self.types, int(self.background)
        s, v = np.arange(types + own), np.arange(types, 2 * types)
        rows = np.concatenate([s, v, np.full(own, 2 * types + 1)])
        rows[types : types + own] = 2 * types
        factor = _root(self.covariance)
        if factor.shape[1] > most:
            draws = np.random.default_rng(0).standard_normal((factor.shape[1], most))
            factor = factor @ (draws / np.sqrt(most))
        return factor[rows]

    def background_error(self) -> float:
        """Standard error of the background's weight."""
        return float(np.sqrt(self.covariance[2 * self.types, 2 * self.types]))


def solve_joint(
    equations: Equations,
    *,
    background: bool,
    saturating: bool,
    ridge: Strengths | None,
    max_iterations: int = 100,
    start: JointResult | None = None,
) -> JointResult:
    """Fit; ``ridge=None`` finds both strengths from the data.

    ``start`` is an earlier result for the same types to begin at.
    """
    search = _Search(equations, background, saturating, ridge)
    if start is not None and len(start.values) == equations.types:
        search.begin_at(start)
    return search.run(max_iterations)


class _Search:
    """The way down, with what it believes of noise and priors."""

    def __init__(
        self, equations: Equations, background: bool, saturating: bool, ridge: Strengths | None
    ) -> None:
        self.equations, self.saturating = equations, saturating
        self.types = types = equations.types
        outputs = equations.outputs
        low, high = float(outputs.min()), float(outputs.max())
        self.range = max(high - low, 1e-9)
        self.variance = max(float(outputs.var()), 1e-18)
        self.fixed = np.zeros(equations.parameters, dtype=bool)
        self.fixed[2 * types : 2 * types + 2] = not background
        self.fixed[-2:] = not saturating
        self.background = background
        self.longest = equations.counts[np.argmax(equations.counts.sum(axis=1))]
        theta = np.zeros(equations.parameters)
        theta[types : 2 * types] = outputs.mean()
        if background:
            theta[2 * types] = 1.0
            theta[2 * types + 1] = outputs[np.argmin(equations.counts.sum(axis=1))]
        self.centre = np.zeros(equations.parameters)
        self.centre[-2:] = (high + low) / 2, np.log(_REACH * self.range)
        theta[-2:] = self.centre[-2:]
        self.chosen = ridge
        self.noise = self.answer_noise = 0.1 * self.variance
        self.ridge = ridge or (self.noise, self.noise / self.variance)
        self.omega = 1.0 if equations.slopes is not None else 0.0
        self.damping = 1e-2
        self.state = State(equations, theta, saturating)

    def begin_at(self, start: JointResult) -> None:
        """Take parameters and strengths from an earlier result, as far as it has them."""
        theta = self.state.theta.copy()
        theta[: self.types], theta[self.types : 2 * self.types] = start.importances, start.values
        if self.background and start.weight > 0:
            theta[2 * self.types : 2 * self.types + 2] = start.weight, start.mass
        if self.saturating and start.link is not None:
            theta[-2:] = start.link.middle, np.log(start.link.reach)
        self.ridge = self.chosen or start.ridge
        self.noise = self.answer_noise = max(start.noise, 1e-16 * self.variance)
        self.omega = start.slope_weight or self.omega
        self.state = State(self.equations, theta, self.saturating)

    def run(self, most: int) -> JointResult:
        iteration, settled, converged = 0, 0, False
        while iteration < most and not converged:
            iteration += 1
            answers, slopes = self.state.normal()
            matrix, vector = self._joined(answers, slopes)
            moved = self._step(matrix, vector)
            known = self._update(matrix, answers[0])
            calm = moved < _SETTLED_GAIN and known < _SETTLED_STRENGTHS
            settled = settled + 1 if calm else 0
            converged = settled >= 2
            if moved == 0.0 and not converged:
                self.damping = 1e-2  # the strengths moved on, so another way may be open
        return self._result(iteration, converged)

    def _joined(self, answers: Normal, slopes: Normal | None) -> Normal:
        if slopes is None:
            return answers
        return answers[0] + self.omega * slopes[0], answers[1] + self.omega * slopes[1]

    # -- a step --------------------------------------------------------------------------------

    def _prior(self) -> Floats:
        """The diagonal of the prior's precision, in units of the squared error."""
        types = self.types
        diagonal = np.empty(self.equations.parameters)
        diagonal[:types], diagonal[types : 2 * types] = self.ridge
        diagonal[2 * types : 2 * types + 2] = 0.0
        diagonal[-2] = self.noise / self.range**2
        diagonal[-1] = self.noise / _DOUBT_REACH**2
        self.centre[types : 2 * types] = self.state.v.mean()
        return diagonal

    def _objective(self, state: State, prior: Floats) -> float:
        answers, slopes = state.squares
        return answers + self.omega * slopes + float(prior @ (state.theta - self.centre) ** 2)

    def _step(self, matrix: Floats, vector: Floats) -> float:
        """Go down as far as it goes; by what share of the objective."""
        prior = self._prior()
        now = self._objective(self.state, prior)
        theta = self.state.theta
        downhill = vector - prior * (theta - self.centre)
        whole = self._held(matrix + np.diag(prior))
        downhill[self.fixed] = 0.0
        scale = np.maximum(np.diag(whole), 1e-12)
        for _ in range(_MOST_TRIES):
            step = _solve(whole + np.diag(self.damping * scale), downhill)
            if step is not None:
                ahead = theta + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
                self._bound(ahead)
                with np.errstate(all="ignore"):
                    state = State(self.equations, ahead, self.saturating)
                    then = self._objective(state, prior)
                if np.isfinite(then) and then < now:
                    self.state = state
                    self.damping = max(self.damping / 5, 1e-9)
                    return (now - then) / max(now, 1e-300)
            self.damping *= 5
        return 0.0

    def _bound(self, theta: Floats) -> None:
        """Keep the background's weight within its bounds."""
        if not self.background:
            return
        most = _MOST_WEIGHT * float(self.longest @ np.exp(theta[: self.types]))
        weight = max(min(theta[2 * self.types], most), _LEAST_WEIGHT)
        theta[2 * self.types] = weight

    def _held(self, matrix: Floats) -> Floats:
        """Parameters that are not fitted take no part."""
        matrix = matrix.copy()
        matrix[self.fixed], matrix[:, self.fixed] = 0.0, 0.0
        matrix[self.fixed, self.fixed] = 1.0
        return matrix

    # -- what the data say of noise and priors -------------------------------------------------

    def _update(self, matrix: Floats, of_answers: Floats) -> float:
        """Noise, strengths and ω for the present state; the largest change of a logarithm."""
        types, state = self.types, self.state
        answers, slopes = state.squares
        inverse = _inverse(self._held(matrix + np.diag(self._prior())))
        spent = np.diag(inverse)
        unsure_s, unsure_v = spent[:types].sum(), spent[types : 2 * types].sum()
        known_s = float(np.clip(types - self.ridge[0] * unsure_s, 1e-3, types))
        known_v = float(np.clip(types - self.ridge[1] * unsure_v, 1e-3, types))
        before = (*self.ridge, self.omega)
        used = float((inverse * of_answers).sum())  # of the answers' freedom, by the parameters
        questions = len(state.residual)
        least = 1e-16 * self.variance
        self.answer_noise = max(answers / max(questions - used, 0.1 * questions), least)
        self.noise = self.answer_noise
        if self.equations.known is not None:
            asked = float(self.equations.known.any(axis=1).sum())
            by_question = max(slopes / asked, least)
            self.omega = float(np.sqrt(np.clip(self.answer_noise / by_question, 1e-4, 1e4)))
            free = questions + float(self.equations.known.sum()) - known_s - known_v
            self.noise = max((answers + self.omega * slopes) / max(free, 1.0), least)
        if self.chosen is None:
            spread_s = (float(state.s @ state.s) + DOUBT_S) / (known_s + DOUBT_S)
            spread = float(((state.v - state.v.mean()) ** 2).sum())
            spread_v = (spread + DOUBT * self.variance) / (known_v + DOUBT)
            self.ridge = self.noise / spread_s, self.noise / spread_v
        after = (*self.ridge, self.omega)
        return max(
            abs(float(np.log(max(new, 1e-300) / max(old, 1e-300))))
            for new, old in zip(after, before, strict=True)
        )

    def _result(self, iterations: int, converged: bool) -> JointResult:
        matrix, _ = self._joined(*self.state.normal())
        inverse = _inverse(self._held(matrix + np.diag(self._prior())))
        inverse[self.fixed], inverse[:, self.fixed] = 0.0, 0.0
        types, state = self.types, self.state
        shift = float(state.s.mean())  # Σ s = 0, and the background along with it
        return JointResult(
            importances=state.s - shift,
            values=state.v,
            weight=float(state.weight * np.exp(-shift)),
            mass=float(state.mass * np.exp(-shift)),
            link=self._link(),
            # By the answers' own errors: the slopes' are not independent of each other.
            curvature=JointCurvature(self.answer_noise * inverse, types, self.background),
            ridge=self.ridge,
            noise=self.answer_noise,
            slope_weight=self.omega,
            iterations=iterations,
            converged=converged,
        )

    def _link(self) -> Saturation | None:
        if not self.saturating:
            return None
        return Saturation(float(self.state.middle), float(np.exp(self.state.log_reach)))


def _solve(matrix: Floats, right: Floats) -> Floats | None:
    factor, info = lapack.dpotrf(matrix, lower=1)
    if info != 0:
        return None
    found, info = lapack.dpotrs(factor, right, lower=1)
    return found if info == 0 and np.isfinite(found).all() else None


def _inverse(matrix: Floats) -> Floats:
    """Of a symmetric matrix that may be singular to rounding."""
    size = float(np.diag(matrix).max())
    for jitter in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        factor, info = lapack.dpotrf(matrix + jitter * size * np.eye(len(matrix)), lower=1)
        if info == 0:
            inverse, info = lapack.dpotri(factor, lower=1)
            lower = np.tril(inverse)
            return lower + np.tril(lower, -1).T
    return np.asarray(np.linalg.pinv(matrix, hermitian=True), dtype=np.float64)


def _root(covariance: Floats) -> Floats:
    """L with L Lᵀ = covariance, which may be singular where parameters are fixed."""
    sizes, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(sizes, 0.0))
