"""A guide: numbers that evidence is expected to follow, for fits to few answers."""

from __future__ import annotations

import numpy as np
import pytest

from piste import PisteError
from piste.explanation import r_squared
from piste.slalom import Slalom, fit
from piste.slalom.family import Questions
from piste.slalom.fitting import fit_with_prior
from piste.slalom.learned_prior import Told, learn, told
from piste.slalom.scores import text_scores
from piste.slalom.surrogate import Noise, Saturation

TYPES = 60


def some(count: int, seed: int = 0) -> np.ndarray:
    """Sets of sizes that are even on a log scale."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((count, TYPES))
    for row in counts:
        size = int(np.exp(rng.uniform(np.log(2), np.log(TYPES))))
        row[rng.choice(TYPES, size, replace=False)] = 1
    return counts


def model(mixing: float, seed: int = 1) -> tuple[Slalom, np.ndarray]:
    """A surrogate and what its evidence follows, up to a factor and some noise."""
    rng = np.random.default_rng(seed)
    guide = rng.normal(size=TYPES)
    evidence = 0.3 * guide + 0.05 * rng.normal(size=TYPES)
    weights = 0.2 * rng.normal(size=TYPES)
    return Slalom(evidence, weights - weights.mean(), mixing, 0.1, link=Saturation(0.0, 2.0)), guide


@pytest.mark.parametrize("mixing", [0.0, 0.5])
def test_few_answers_say_more_with_a_guide(mixing: float) -> None:
    real, guide = model(mixing)
    counts, fresh = some(25), some(200, seed=9)
    numbers = real.predict(counts)
    plain, guided = fit(counts, numbers), fit(counts, numbers, guide=7.0 * guide)
    expected = real.predict(fresh)
    assert r_squared(guided.predict(fresh), expected) > 0.9
    assert r_squared(plain.predict(fresh), expected) < 0.7


def test_types_that_were_never_asked_have_what_the_guide_says_of_them() -> None:
    real, guide = model(0.0)
    counts = some(40)
    counts[:, :10] = 0
    found = fit(counts, real.predict(counts), guide=guide)
    np.testing.assert_allclose(found.slalom.evidence[:10], real.evidence[:10], atol=0.2)
    scores, errors = text_scores(found.slalom, np.arange(TYPES), found)
    assert np.isfinite(errors["contribution"]).all()
    missed = np.abs(scores["contribution"] - real.evidence)
    assert (missed < 3 * errors["contribution"]).mean() > 0.9


def test_a_guide_that_says_nothing_changes_little() -> None:
    real, _ = model(0.0)
    counts, fresh = some(200), some(200, seed=9)
    numbers, expected = real.predict(counts), real.predict(fresh)
    for guide in (np.random.default_rng(5).normal(size=TYPES), np.zeros(TYPES)):
        found = fit(counts, numbers, guide=guide)
        assert r_squared(found.predict(fresh), expected) > 0.99


def test_the_factor_of_a_guide_does_not_matter() -> None:
    real, guide = model(0.5)
    counts = some(40)
    one, other = (fit(counts, real.predict(counts), guide=f * guide) for f in (1.0, 100.0))
    np.testing.assert_allclose(one.slalom.evidence, other.slalom.evidence, atol=1e-3)


def test_a_guide_of_another_length_and_several_outputs_are_refused() -> None:
    counts = some(20)
    for guide, outputs in ((np.ones(3), np.ones(20)), (np.ones(TYPES), np.ones((20, 2)))):
        with pytest.raises(PisteError, match="guide: expected a number for each of 60 types"):
            fit(counts, outputs, guide=guide)


def test_texts_with_a_guide_tell_what_words_add_beside_it() -> None:
    real, guide = model(0.0)
    counts = some(300)
    found = fit(counts, real.predict(counts), guide=guide)
    assert found.posterior is not None
    assert found.posterior.layout.guided is not None
    said = told(Questions(counts, guide=guide), real.predict(counts), found.posterior)
    assert isinstance(said, Told)
    assert said.guided
    factor = found.posterior.theta[found.posterior.layout.guided]
    clear = np.isfinite(said.variances[0])
    np.testing.assert_allclose(
        said.estimates[0][clear], (real.evidence - factor * guide)[clear], atol=0.05
    )
    turned = said.turned(-1.0)
    np.testing.assert_allclose(turned.estimates[0], -said.estimates[0])
    place = found.posterior.layout.guided - found.posterior.layout.base.start
    assert turned.shared[place] == said.shared[place]  # the guide is turned, too
    assert turned.shared[0] == -said.shared[0]


def test_a_prior_of_guided_texts_helps_the_next_one() -> None:
    noise, places = Noise(np.array([0.01])), np.arange(TYPES)
    form = fit(some(100), model(0.0)[0].predict(some(100))).form

    def text(seed: int) -> tuple[Told, Slalom, np.ndarray]:
        real, guide = model(0.0, seed)
        counts = some(300, seed)
        found = fit(counts, real.predict(counts), form=form, guide=guide)
        assert found.posterior is not None
        said = told(Questions(counts, guide=guide), real.predict(counts), found.posterior)
        assert said is not None
        return said, real, guide

    alone = np.zeros(TYPES)
    prior = learn(form, [(places, alone, text(seed)[0]) for seed in range(4, 12)], TYPES)
    assert prior.guided
    real, guide = model(0.0, 3)
    counts, fresh = some(8, 3), some(200, 9)
    begun = prior.at(places, alone)
    expected = real.predict(fresh)
    with_it, without = (
        r_squared(
            fit_with_prior(
                counts, real.predict(counts), form, begun, noise, guide=prior.guide(own, TYPES)
            ).predict(fresh),
            expected,
        )
        for own in (guide, None)
    )
    assert with_it > 0.9
    assert without < 0.5
