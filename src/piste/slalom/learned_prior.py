"""What the texts of a corpus have in common, as a prior for the fit of the next one.

Parameters of a word (its evidence, and its log-weight where a form has one) differ between words
and, for one word, between texts. In text d,

    e_dw = a + c · alone_w + u_w + v_dw        u_w ∼ N(0, σ²)        v_dw ∼ N(0, τ²)

where alone_w is what the model answers to the word alone, which is asked once for all texts. Each
text tells of e_dw by its longer questions only: what they say of one word is a Gaussian, the
posterior without the prior it began with. From all of these the coefficients, σ and τ follow by
expectation and maximisation, and u_w for every word with what is still open about it. The next
text begins at a + c · alone_w + u_w with the variance τ² + Var u_w. What all words of a text share
(base, mixing, saturation, and β where texts have a guide) begins at the median over texts; with a
guide e_dw is what words add beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from piste.slalom.family import Form, Layout, Point, Questions
from piste.slalom.solver import Posterior
from piste.slalom.surrogate import Noise, log_sizes
from piste.types import Floats, Ints

_ROUNDS = 40
"""Of expectation and maximisation; the scales change by less than a hundredth after half."""
_LEAST_TOLD = 1e-3
"""Of the prior's precision: less than that from the questions is nothing."""
_LEAST_SPREAD = 1e-6
_NORMAL = 1.4826  # standard deviation of a normal distribution, in median absolute deviations
_LARGEST = 2000
"""Parameters of a text up to which it tells something: a matrix of them is inverted."""


@dataclass(frozen=True)
class Told:
    """What the longer questions of one text say of its types, without what was known before.

    ``estimates`` and ``variances`` are kinds × types: evidence, and log-weights if the form has
    them. A variance is infinite where nothing was said. ``shared`` are base, mixing, β and link.
    """

    form: Form
    estimates: Floats
    variances: Floats
    shared: Floats
    noise: Noise
    guided: bool = False
    """Whether the text had a guide: then evidence is what there is beside it."""

    def turned(self, sign: float) -> Told:
        """The same for answers times a sign."""
        signs = orientation(_layout(0, self.form, self.guided), sign)
        estimates = self.estimates.copy()
        estimates[0] *= sign
        return replace(self, estimates=estimates, shared=self.shared * signs)

    def unguided(self, guide: Floats) -> Told:
        """The same for fits without a guide: what it said of the evidence is part of that."""
        layout = _layout(0, self.form, True)
        assert self.guided
        assert layout.guided is not None
        place = layout.guided - layout.base.start
        estimates = self.estimates.copy()
        estimates[0] += self.shared[place] * guide
        shared = np.delete(self.shared, place)
        return replace(self, estimates=estimates, shared=shared, guided=False)


def _layout(types: int, form: Form, guided: bool) -> Layout:
    """Of a text, for its shape only."""
    return Layout(types, 1, form, guide=np.zeros(types) if guided else None)


def orientation(layout: Layout, sign: float) -> Floats:
    """By what all parameters are multiplied where the answers are multiplied by a sign."""
    signs = np.ones(layout.size)
    signs[layout.evidence], signs[layout.base] = sign, sign
    if layout.link is not None:
        signs[layout.link] = sign
    return signs


def told(
    asked: Questions, outputs: Floats, posterior: Posterior, mean: Floats | None = None
) -> Told | None:
    """What questions about more than one unit said in a fit that may have been to others, too.

    ``mean`` are the means of the fit's prior, 0 where none is given. None for a text that is too
    long.
    """
    layout, theta = posterior.layout, posterior.theta
    if layout.size > _LARGEST:
        return None
    point = Point(asked, layout, theta)
    precision = 1.0 / posterior.noise.variances(log_sizes(asked.sizes), point.slope)[:, 0]
    jacobian: Any = point.jacobian()
    if sparse.issparse(jacobian):
        jacobian = jacobian.toarray()
    scaled = jacobian * precision[:, None]
    normal = jacobian.T @ scaled
    normal.flat[:: len(normal) + 1] += posterior.prior
    triangle, failed = lapack.dpotrf(normal, lower=1)
    if failed:
        return None
    covariance = lapack.dpotri(triangle, lower=1)[0]
    begun = theta.copy()  # nothing pulls at what all types share
    own = slice(0, layout.evidence.stop)
    begun[own] = 0.0 if mean is None else mean[own]
    push = scaled.T @ (outputs - point.predicted[:, 0]) + posterior.prior * (begun - theta)
    found = theta + np.asarray(lapack.dpotrs(triangle, push, lower=1)[0])
    variance = np.diag(covariance)
    # A Gaussian divided by the prior.
    left = 1.0 / variance - posterior.prior
    enough = left > _LEAST_TOLD * posterior.prior
    left = np.where(enough, left, 1.0)
    estimate = np.where(enough, (found / variance - posterior.prior * begun) / left, 0.0)
    spread = np.where(enough, 1.0 / left, np.inf)
    kinds = _kinds(layout)
    return Told(
        layout.form,
        np.stack([estimate[kind] for kind in kinds]),
        np.stack([spread[kind] for kind in kinds]),
        theta[layout.base.start :].copy(),
        posterior.noise,
        layout.guide is not None,
    )


def _kinds(layout: Layout) -> list[slice]:
    """Where the parameters of types stand, evidence first."""
    return [layout.evidence, *([layout.importances] if layout.weighted else [])]


@dataclass(frozen=True)
class _Kind:
    """One kind of parameter over all words."""

    start: Floats
    """The coefficients a and c; c is 0 for log-weights."""
    between: float
    """σ², of words."""
    within: float
    """τ², of one word in several texts."""
    precision: Floats
    """Of every word: of its u, by what texts told."""
    pushed: Floats
    """The same times where they put it."""

    def at(self, places: Ints, alone: Floats, without: Any = None) -> tuple[Floats, Floats]:
        """Means and variances in another text; words that are not known have the place −1.

        ``without`` are estimates and variances of a text whose part is taken out.
        """
        base = self.start[0] + self.start[1] * alone
        known = places >= 0
        precision = np.where(known, self.precision[places], 0.0)
        pushed = np.where(known, self.pushed[places], 0.0)
        if without is not None:
            own = np.where(known, 1.0 / (without[1] + self.within), 0.0)
            precision = np.maximum(precision - own, 0.0)
            pushed = pushed - own * (without[0] - base)
        variance = 1.0 / (precision + 1.0 / self.between)
        return base + variance * pushed, variance + self.within


@dataclass(frozen=True)
class LearnedPrior:
    """Where the fit of another text begins: a form and what its parameters usually are."""

    form: Form
    kinds: tuple[_Kind, ...]
    shared: tuple[Floats, Floats]
    """Means and standard deviations of base, mixing, β and link."""
    noise: Noise
    guided: bool = False

    def guide(self, own: Floats | None, types: int) -> Floats | None:
        """The guide of a text's fit: its own, or one that says nothing; None if none has one."""
        if not self.guided:
            return None
        return np.zeros(types) if own is None else own

    def layout(self, types: int) -> Layout:
        """Where the parameters of a text stand."""
        return _layout(types, self.form, self.guided)

    def at(self, places: Ints, alone: Floats, without: Told | None = None) -> tuple[Floats, Floats]:
        """Means and standard deviations of all parameters, as :func:`~piste.slalom.solver.solve`
        takes them.

        ``places`` are those of a text's types among the words, −1 for new ones, ``alone`` the
        answers to them alone. ``without`` is a text that the prior was learned from and that is to
        be fitted as if it had not been.
        """
        layout = self.layout(len(places))
        mean, deviation = np.zeros(layout.size), np.ones(layout.size)
        for number, (kind, where) in enumerate(zip(self.kinds, _kinds(layout), strict=True)):
            own = None
            if without is not None:
                own = without.estimates[number], without.variances[number]
            mean[where], variance = kind.at(places, alone, own)
            deviation[where] = np.sqrt(variance)
        mean[layout.base.start :], deviation[layout.base.start :] = self.shared
        return mean, deviation


def usual_form(forms: Iterable[Form]) -> Form:
    """The most frequent mixing (none, fitted, or all of it), and the most frequent form with it.

    Of two that are as frequent, the one with bounds.

    >>> usual_form([Form(0.0), Form(None, True), Form(None, True), Form(None)]).name
    'mixed, saturation'
    """
    given = list(forms)
    mixings = Counter(form.mixing for form in given)
    mixing = max(mixings, key=lambda one: mixings[one])
    votes = Counter(form for form in given if form.mixing == mixing)
    return max(votes, key=lambda one: (votes[one], one.saturation))


def learn(form: Form, texts: Sequence[tuple[Ints, Floats, Told]], words: int) -> LearnedPrior:
    """The prior from what texts told: of each the places of its types among the words, the
    answers to them alone, and what it told in a form of the same mixing. All have a guide, or none.

    The parameters of words are on one scale with and without saturation, which is straight in
    its middle; what all words share comes from texts that have the form itself.

    >>> rng = np.random.default_rng(0)
    >>> alone, own = rng.normal(size=50), rng.normal(0, 0.3, 50)
    >>> def text() -> tuple[Ints, Floats, Told]:
    ...     at = rng.choice(50, 20, replace=False)
    ...     found = (0.5 * alone + own)[at] + rng.normal(0, 0.1, 20)
    ...     others = np.full((1, 20), 0.01), np.array([0.2]), Noise(np.array([0.01]))
    ...     return at, alone[at], Told(Form(0.0), found[None], *others)
    >>> prior = learn(Form(0.0), [text() for _ in range(40)], 50)
    >>> mean, deviation = prior.at(np.arange(50), alone)
    >>> bool(np.abs(mean[:50] - 0.5 * alone - own).max() < 0.15), round(float(mean[50]), 3)
    (True, 0.2)
    """
    places = np.concatenate([one[0] for one in texts])
    alone = np.concatenate([one[1] for one in texts])
    kinds = []
    for number in range(len(texts[0][2].estimates)):
        estimates = np.concatenate([one[2].estimates[number] for one in texts])
        variances = np.concatenate([one[2].variances[number] for one in texts])
        there = np.isfinite(variances)
        given = (places[there], alone[there], estimates[there], variances[there])
        kinds.append(_kind(*given, words, slope=number == 0))
    same = [one[2] for one in texts if one[2].form == form]
    shared = np.stack([one.shared for one in same])
    middle = np.median(shared, axis=0)
    spread = _NORMAL * np.median(np.abs(shared - middle), axis=0)
    noises = [one.noise for one in same]
    usual = Noise(
        np.median([noise.scale for noise in noises], axis=0),
        float(np.median([noise.by_size for noise in noises])),
        float(np.median([noise.leak for noise in noises])),
    )
    shares = middle, np.maximum(spread, 1e-3)
    return LearnedPrior(form, tuple(kinds), shares, usual, same[0].guided)


def _kind(
    places: Ints, alone: Floats, estimates: Floats, variances: Floats, words: int, *, slope: bool
) -> _Kind:
    """One kind of parameter, by expectation and maximisation."""
    if not len(places):
        nothing: Floats = np.zeros(words)
        return _Kind(np.zeros(2), 1.0, 1.0, nothing, nothing)
    columns = np.stack([np.ones_like(alone), alone if slope else np.zeros_like(alone)], axis=1)
    usual = float(np.median(variances))
    centred = estimates - np.median(estimates)
    size = max(float(np.median(centred**2)), usual, _LEAST_SPREAD)
    between, within = size, 0.5 * size
    start: Floats = np.zeros(2)
    for _ in range(_ROUNDS):
        scaled = columns / (variances + within + between)[:, None]
        solved = np.linalg.lstsq(scaled.T @ columns, scaled.T @ estimates, rcond=None)[0]
        start = solved.astype(np.float64)
        rest, weight = estimates - columns @ start, 1.0 / (variances + within)
        precision = np.bincount(places, weight, words)
        pushed = np.bincount(places, weight * rest, words)
        variance = 1.0 / (precision + 1.0 / between)
        own = variance * pushed
        seen = precision > 0
        share = within / (within + variances)
        left = rest - own[places]
        within = float(
            ((share * left) ** 2 + share**2 * variance[places] + share * variances).mean()
        )
        between = float((own[seen] ** 2 + variance[seen]).mean())
        between, within = max(between, _LEAST_SPREAD), max(within, _LEAST_SPREAD)
    weight = 1.0 / (variances + within)
    rest = estimates - columns @ start
    precision = np.bincount(places, weight, words)
    pushed = np.bincount(places, weight * rest, words)
    kept = (np.asarray(one, dtype=np.float64) for one in (precision, pushed))
    return _Kind(start, between, within, *kept)
