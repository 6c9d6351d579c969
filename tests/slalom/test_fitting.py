"""Fitting: recovery, coverage, Newton against SGD, many classes, hard cases."""

from __future__ import annotations

import time

import numpy as np
import pytest

from piste import PisteError, slalom
from piste.slalom.scores import SCORES, text_scores
from piste.slalom.surrogate import Slalom


def problem(
    types: int = 50,
    questions: int = 300,
    classes: int = 0,
    noise: float = 0.0,
    seed: int = 0,
    weight: float = 0.0,
) -> tuple[Slalom, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    v = rng.normal(size=(types, classes) if classes else types)
    if classes:
        v -= v.mean(axis=1, keepdims=True)
    s = rng.normal(size=types)
    base = np.full(classes, 0.0) if classes else 0.3
    truth = Slalom(v, s - s.mean(), weight, base)
    counts = np.zeros((questions, types))
    for row in counts:
        np.add.at(row, rng.integers(0, types, rng.integers(1, 7)), 1)
    outputs = truth.predict(counts)
    return truth, counts, outputs + noise * rng.normal(size=outputs.shape)


@pytest.mark.parametrize("ridge", [0.0, "auto"])
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("classes", [0, 4])
def test_newton_recovers_an_exact_slalom(classes: int, background: bool, ridge: object) -> None:
    truth, counts, outputs = problem(classes=classes)
    found = slalom.fit(counts, outputs, background=background, ridge=ridge)
    np.testing.assert_allclose(found.values, truth.values, atol=1e-6)
    np.testing.assert_allclose(found.importances, truth.importances, atol=1e-6)
    assert found.slalom.weight == pytest.approx(0, abs=1e-9)
    if classes:
        np.testing.assert_allclose(found.values.sum(axis=1), 0, atol=1e-9)


def test_newton_recovers_a_background() -> None:
    truth, counts, outputs = problem(weight=2.0)
    counts, outputs = np.vstack([counts, np.zeros(50)]), np.append(outputs, 0.3)
    found = slalom.fit(counts, outputs, background=True)
    np.testing.assert_allclose(found.values, truth.values, atol=1e-6)
    assert found.slalom.weight == pytest.approx(2.0, abs=1e-6)
    assert found.slalom.base == pytest.approx(0.3, abs=1e-6)


@pytest.mark.parametrize("ridge", [0.0, "auto"])
def test_true_parameters_lie_in_their_intervals(ridge: object) -> None:
    inside_v, inside_s = [], []
    for seed in range(12):
        truth, counts, outputs = problem(questions=400, noise=0.1, seed=seed)
        found = slalom.fit(counts, outputs, ridge=ridge)
        errors = found.errors
        inside_v.append(np.abs(found.values - truth.values) < 1.96 * errors["value"])
        inside_s.append(np.abs(found.importances - truth.importances) < 1.96 * errors["importance"])
    assert 0.92 <= np.mean(inside_v) <= 0.98
    assert 0.92 <= np.mean(inside_s) <= 0.98


@pytest.mark.parametrize("classes", [0, 3])
def test_errors_of_all_scores_match_their_scatter(classes: int) -> None:
    """Over repeated noise every score must scatter as its standard error says."""
    truth, counts, _ = problem(types=12, questions=200, classes=classes, weight=1.0)
    types = np.array([0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0])
    clean, rng = truth.predict(counts), np.random.default_rng(1)
    runs, errors = [], []
    for _ in range(60):
        noise = 0.005 * rng.normal(size=clean.shape)
        if classes:
            noise -= noise.mean(axis=1, keepdims=True)
        fit = slalom.fit(counts, clean + noise, background=True)
        scores, deviations = text_scores(fit.slalom, types, fit)
        runs.append(scores)
        errors.append(deviations)
    for name in SCORES:
        scatter = np.std([run[name] for run in runs], axis=0)
        stated = np.median([error[name] for error in errors], axis=0)
        assert np.median(stated / scatter) == pytest.approx(1, abs=0.15), name


@pytest.mark.slow
@pytest.mark.parametrize(("types", "questions"), [(100, 400)])
def test_newton_is_better_and_faster_than_sgd(types: int, questions: int) -> None:
    _, counts, outputs = problem(types, questions, noise=0.04)
    start = time.perf_counter()
    newton = slalom.fit(counts, outputs)
    middle = time.perf_counter()
    sgd = slalom.fit(counts, outputs, solver="sgd", epochs=2000)
    end = time.perf_counter()
    assert newton.loss <= 1.01 * sgd.loss
    assert middle - start <= (end - middle) / 10


def test_sgd_is_seeded_and_reports_errors() -> None:
    _, counts, outputs = problem(types=10, noise=0.05)
    first, again = (slalom.fit(counts, outputs, solver="sgd", seed=1) for _ in range(2))
    assert np.array_equal(first.values, again.values)
    assert np.isfinite(first.errors["value"]).all()
    assert first.loss < outputs.var()


def test_few_questions_lean_on_the_prior() -> None:
    truth, counts, outputs = problem(types=100, questions=80, noise=0.2)
    test = problem(types=100, questions=500, seed=9)[1]
    wild = slalom.fit(counts, outputs, ridge=1e-9)
    calm = slalom.fit(counts, outputs, ridge="auto")
    expected = truth.predict(test)
    assert ((calm.predict(test) - expected) ** 2).mean() < (
        (wild.predict(test) - expected) ** 2
    ).mean()


def test_types_never_asked_have_unbounded_errors() -> None:
    _, counts, outputs = problem(types=10)
    counts = np.column_stack([counts, np.zeros(len(counts))])
    found = slalom.fit(counts, outputs)
    assert np.isinf(found.errors["value"][-1])
    assert found.importances[-1] == 0
    assert np.isfinite(found.values).all()


def test_constant_and_tiny_problems() -> None:
    counts = np.eye(3)
    constant = slalom.fit(counts, np.full(3, 2.0), ridge="auto")
    np.testing.assert_allclose(constant.predict(counts), 2.0, atol=1e-6)
    one = slalom.fit([[1.0]], [0.7], background=True, ridge="auto")
    assert one.predict([[1.0]])[0] == pytest.approx(0.7, abs=0.05)


@pytest.mark.parametrize(
    ("counts", "outputs", "options", "words"),
    [
        (np.eye(3), np.ones(2), {}, "shapes"),
        (np.zeros((2, 3)), np.ones(2), {}, "nothing to fit"),
        (np.vstack([np.eye(2), np.zeros(2)]), np.ones(3), {}, "background=True"),
        (np.eye(2), np.array([1.0, np.nan]), {}, "finite"),
        (-np.eye(2), np.ones(2), {}, "≥ 0|nothing"),
        (np.eye(2), np.ones(2), {"solver": "magic"}, "newton or sgd"),
        (np.eye(2), np.ones(2), {"ridge": "strong"}, "auto"),
        (np.eye(2), np.ones(2), {"ridge": -1.0}, "≥ 0"),
    ],
)
def test_bad_input(counts, outputs, options, words) -> None:
    with pytest.raises(PisteError, match=words):
        slalom.fit(counts, outputs, **options)
