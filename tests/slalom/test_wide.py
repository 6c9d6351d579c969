"""The fit for very many types finds what it should, and its gradient is one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from piste.slalom import Slalom
from piste.slalom.link import Saturation
from piste.slalom.wide import Asked, _Objective, _packed, fit_wide, gather


def drawn(truth: Slalom, questions: int, seed: int, slopes: bool) -> tuple[Asked, np.ndarray]:
    """Questions about a known SLALOM, with its own slopes or without."""
    rng = np.random.default_rng(seed)
    types = len(truth.values)
    held = rng.random((questions, types)) < rng.uniform(0.1, 0.9, (questions, 1))
    held[np.arange(questions), rng.integers(0, types, questions)] = True
    question, kind = np.nonzero(held)
    mass = np.exp(truth.importances)
    total = held @ mass + truth.weight
    evidence = truth.evidence(held)
    steep = np.ones(questions)
    if truth.link is not None:
        steep = 1 - np.tanh((evidence - truth.link.middle) / truth.link.reach) ** 2
    own = mass[kind] / total[question] * (truth.values[kind] - evidence[question])
    slope = own * steep[question] if slopes else np.full(len(kind), np.nan)
    return Asked(question, kind, slope, truth.predict(held), types), held


@pytest.fixture
def truth() -> Slalom:
    rng = np.random.default_rng(3)
    link = Saturation(0.2, 2.5)
    return Slalom(rng.normal(size=40) * 2, rng.normal(size=40) * 0.7, 2.0, 0.3, link)


def test_slopes_make_few_questions_enough(truth: Slalom) -> None:
    test, held = drawn(truth, 200, 9, slopes=False)
    errors = {}
    for slopes in (True, False):
        asked, _ = drawn(truth, 25, 1, slopes)
        found = fit_wide(asked, (1e-5, 1e-5), iterations=400)
        errors[slopes] = np.mean((found.predict(held) - test.output) ** 2) / test.output.var()
    assert errors[True] < 0.02
    assert errors[True] < 0.2 * errors[False]


@pytest.mark.parametrize("with_prior", [False, True])
def test_the_gradient_is_the_objectives(truth: Slalom, with_prior: bool) -> None:
    asked, _ = drawn(truth, 8, 2, slopes=True)
    asked.slope[::7] = np.nan
    prior = Slalom(np.ones(40), np.full(40, 0.1), 1.0, 0.0) if with_prior else None
    objective = _Objective(asked, (0.1, 0.02), 1.3, prior)
    place = _packed(truth, 1.3) + 0.1
    numeric = approx_fprime(place, lambda x: objective(x)[0], 1e-6)
    np.testing.assert_allclose(objective(place)[1], numeric, rtol=2e-3, atol=2e-3)


def test_a_prior_is_left_only_for_what_was_asked(truth: Slalom) -> None:
    """Nothing was asked about the last ten types, so they stay as they were."""
    asked, _ = drawn(truth, 30, 4, slopes=True)
    low = asked.type < 30
    asked = Asked(asked.question[low], asked.type[low], asked.slope[low], asked.output, 40)
    prior = Slalom(np.linspace(-1, 1, 40), np.zeros(40), 2.0, 0.3, Saturation(0.0, 3.0))
    found = fit_wide(asked, (0.01, 0.01), prior=prior)
    np.testing.assert_allclose(found.values[30:], prior.values[30:], atol=1e-3)
    assert np.abs(found.values[:30] - prior.values[:30]).max() > 0.3


def test_parts_are_gathered_and_taken_apart(truth: Slalom) -> None:
    first, second = (drawn(truth, 5, seed, slopes=True)[0] for seed in (5, 6))
    both = gather([first, second], 40)
    assert len(both.output) == 10
    again = both.of(np.arange(10) >= 5)
    for name in ("question", "type", "slope", "output"):
        np.testing.assert_array_equal(getattr(again, name), getattr(second, name))


def test_nothing_of_the_random_state_is_used(truth: Slalom) -> None:
    asked, _ = drawn(truth, 10, 7, slopes=True)
    one, two = (fit_wide(asked, (0.01, 0.01)) for _ in range(2))
    np.testing.assert_array_equal(one.values, two.values)
