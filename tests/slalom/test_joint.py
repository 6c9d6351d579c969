"""Answers and slopes together, with saturation."""

from __future__ import annotations

import numpy as np
import pytest

from piste.errors import PisteError
from piste.slalom import Slalom, fit
from piste.slalom.equations import Equations, State
from piste.slalom.link import Saturation


def subsets(questions: int, types: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    counts = (rng.random((questions, types)) < rng.uniform(0.1, 0.9, (questions, 1))).astype(float)
    counts[0] = 1
    return counts[counts.sum(axis=1) > 0]


def truth(types: int = 40, link: Saturation | None = None, seed: int = 1) -> Slalom:
    rng = np.random.default_rng(seed)
    s = rng.normal(size=types)
    return Slalom(2 * rng.normal(size=types), s - s.mean(), 1.5, 0.3, link)


def slopes_of(slalom: Slalom, counts: np.ndarray) -> np.ndarray:
    """By central differences of soft removal, not by the formula the fit uses."""
    step, columns = 1e-5, []
    for k in range(counts.shape[1]):
        up, down = counts.copy(), counts.copy()
        up[:, k] *= np.exp(step)
        down[:, k] *= np.exp(-step)
        columns.append((slalom.predict(up) - slalom.predict(down)) / (2 * step))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("saturating", [False, True])
def test_the_normal_equations_are_those_of_the_jacobian(saturating: bool) -> None:
    rng = np.random.default_rng(0)
    types, questions = 6, 25
    counts = rng.integers(0, 3, (questions, types)).astype(float)
    counts[counts.sum(axis=1) == 0, 0] = 1
    known = (counts > 0).astype(float)
    known[3], known[5, 2] = 0, 0
    equations = Equations(counts, rng.normal(size=questions), rng.normal(size=counts.shape), known)
    theta = 0.5 * rng.normal(size=equations.parameters)
    theta[-4] = 0.7

    def residuals(at: np.ndarray) -> np.ndarray:
        state = State(equations, at, saturating)
        assert state.misses is not None
        return np.concatenate([state.residual, state.misses.ravel()])

    steps = 1e-6 * np.eye(len(theta))
    jacobian = np.array([(residuals(theta + e) - residuals(theta - e)) / 2e-6 for e in steps]).T
    answers, slopes = State(equations, theta, saturating).normal()
    assert slopes is not None
    np.testing.assert_allclose(answers[0] + slopes[0], jacobian.T @ jacobian, atol=1e-7)
    np.testing.assert_allclose(answers[1] + slopes[1], -jacobian.T @ residuals(theta), atol=1e-7)


def test_a_few_questions_with_slopes_tell_everything() -> None:
    true, counts = truth(), subsets(8, 40)
    found = fit(
        counts, true.predict(counts), slopes=slopes_of(true, counts),
        background=True, ridge="auto", link="auto",
    )  # fmt: skip
    assert found.slalom.link is None
    np.testing.assert_allclose(found.values, true.values, atol=1e-5)
    np.testing.assert_allclose(found.importances, true.importances, atol=1e-5)
    assert found.slalom.weight == pytest.approx(1.5, abs=1e-4)


def test_slopes_that_are_not_known_take_no_part() -> None:
    true, counts = truth(), subsets(30, 40)
    slopes = slopes_of(true, counts)
    rng = np.random.default_rng(0)
    slopes[rng.random(slopes.shape) < 0.3] = np.nan
    found = fit(counts, true.predict(counts), slopes=slopes, background=True, ridge="auto")
    np.testing.assert_allclose(found.values, true.values, atol=1e-4)


@pytest.mark.parametrize("with_slopes", [True, False])
def test_saturation_is_found(with_slopes: bool) -> None:
    true = truth(20, Saturation(0.5, 1.0))
    counts = subsets(60 if with_slopes else 600, 20)
    more = {"slopes": slopes_of(true, counts)} if with_slopes else {}
    found = fit(counts, true.predict(counts), background=True, ridge="auto", link="auto", **more)
    assert found.slalom.link is not None
    assert found.slalom.link.middle == pytest.approx(0.5, abs=0.05)
    assert found.slalom.link.reach == pytest.approx(1.0, abs=0.05)
    fresh = subsets(200, 20, seed=5)
    errors = found.predict(fresh) - true.predict(fresh)
    assert np.sqrt(np.mean(errors**2)) < 0.02
    straight = fit(counts, true.predict(counts), background=True, ridge="auto", link=False, **more)
    worse = straight.predict(fresh) - true.predict(fresh)
    assert np.mean(worse**2) > 5 * np.mean(errors**2)


def test_no_saturation_is_invented() -> None:
    true, counts = truth(15), subsets(400, 15)
    answers = true.predict(counts)
    exact = fit(counts, answers, background=True, ridge="auto", link="auto")
    assert exact.slalom.link is None
    np.testing.assert_allclose(exact.values, true.values, atol=1e-6)
    noisy = answers + 0.05 * np.random.default_rng(0).normal(size=len(answers))
    assert fit(counts, noisy, background=True, ridge="auto", link="auto").slalom.link is None


def test_errors_cover_what_was_missed() -> None:
    inside = []
    for seed in range(5):
        true, counts = truth(20, seed=seed), subsets(60, 20, seed)
        rng = np.random.default_rng(seed)
        slopes = slopes_of(true, counts)
        found = fit(
            counts, true.predict(counts) + 0.1 * rng.normal(size=len(counts)),
            slopes=slopes + 0.1 * rng.normal(size=slopes.shape) * (counts > 0),
            background=True, ridge="auto",
        )  # fmt: skip
        missed = np.abs(found.values - true.values)
        inside.append(missed < 1.96 * found.errors["value"])
    assert 0.88 <= np.mean(inside) <= 1.0


def test_an_earlier_fit_is_a_start() -> None:
    true, counts = truth(20, Saturation(0.5, 1.0)), subsets(80, 20)
    slopes, answers = slopes_of(true, counts), true.predict(counts)
    how = {"background": True, "ridge": "auto", "link": True}
    early = fit(counts[:40], answers[:40], slopes=slopes[:40], **how)
    fresh = fit(counts, answers, slopes=slopes, **how)
    later = fit(counts, answers, slopes=slopes, start=early, **how)
    np.testing.assert_allclose(later.predict(counts), fresh.predict(counts), atol=0.02)


def test_what_does_not_go_together_is_refused() -> None:
    counts = subsets(40, 5)
    with pytest.raises(PisteError, match="one output per question"):
        fit(counts, np.zeros((len(counts), 2)), link=True, background=True)
    with pytest.raises(PisteError, match="questions × types"):
        fit(counts, np.zeros(len(counts)), slopes=np.zeros((3, 3)), background=True)


def test_values_of_a_sum_stay_within_reach() -> None:
    """Only v·e^s of an additive model is known; the rest must not run away."""
    counts = subsets(60, 30)
    shares = np.random.default_rng(2).normal(size=30)
    slopes = np.where(counts > 0, shares, np.nan)
    found = fit(counts, counts @ shares, slopes=slopes, ridge="auto")
    weights = np.exp(found.importances)
    assert found.slalom.weight <= 1.001 * weights.sum()
    assert np.std(found.values) < 5 * np.ptp(counts @ shares)
    product = weights * found.values
    assert np.corrcoef(product, shares)[0, 1] > 0.9
