"""The solver's ways of doing the same thing: sparse or dense, by factors or by products."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from piste import slalom
from piste.slalom.counts import Counts
from piste.slalom.direct import DirectSolver
from piste.slalom.iterative import IterativeSolver
from piste.slalom.newton import make_problem, solve_newton
from piste.slalom.scores import SCORES, text_scores
from piste.slalom.surrogate import Slalom
from piste.slalom.threads import threads_for


def questions(types: int, count: int, longest: int, seed: int = 0) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, count)
    rows = np.repeat(np.arange(count), lengths)
    columns = rng.integers(0, types, lengths.sum())
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(count, types))


def answers(counts: sparse.csr_array, classes: int = 0, noise: float = 0.05) -> np.ndarray:
    rng = np.random.default_rng(1)
    types = counts.shape[1]
    values = rng.normal(size=(types, classes) if classes else types)
    truth = Slalom(values, rng.normal(size=types), 1.0, np.zeros(classes) if classes else 0.2)
    outputs = truth.predict(counts)
    outputs = outputs + noise * rng.normal(size=outputs.shape)
    return outputs - outputs.mean(axis=1, keepdims=True) if classes else outputs


@pytest.mark.parametrize("longest", [3, 40])
def test_grams_are_those_of_the_dense_matrix(longest: int) -> None:
    counts = questions(60, 200, longest)
    dense, weights = counts.toarray(), np.random.default_rng(0).random((3, 200))
    expected = np.einsum("km,mi,mj->kij", weights, dense, dense)
    for given in (counts, dense, counts.tocsc()):
        np.testing.assert_allclose(Counts(given).grams(weights), expected, atol=1e-12)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize("classes", [0, 3])
def test_sparse_counts_give_the_dense_fit(make, classes: int) -> None:
    counts = questions(40, 300, 5)
    outputs = answers(counts, classes)
    dense = slalom.fit(counts.toarray(), outputs, ridge="auto", background="auto")
    found = slalom.fit(make(counts), outputs, ridge="auto", background="auto")
    np.testing.assert_allclose(found.values, dense.values, atol=1e-8)
    np.testing.assert_allclose(found.importances, dense.importances, atol=1e-8)
    np.testing.assert_allclose(found.errors["value"], dense.errors["value"], rtol=1e-6)
    expected = dense.predict(counts.toarray())
    np.testing.assert_allclose(found.predict(make(counts)), expected, atol=1e-8)


@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize(("types", "count"), [(30, 200), (150, 60)])
def test_products_alone_give_what_factors_give(
    types: int, count: int, background: bool, classes: int
) -> None:
    counts = questions(types, count, 5)
    counts = Counts(counts[:, np.asarray(counts.sum(axis=0)) > 0])
    outputs = answers(questions(types, count, 5), classes)
    columns = outputs if classes else outputs[:, None]
    # Strong enough that there is one minimum: with a weak one equal units may go either way.
    options = {"background": background, "ridge": (0.5, 0.5)}
    with threads_for(0):
        direct = solve_newton(counts, columns, iterative=False, **options)
        products = solve_newton(counts, columns, iterative=True, **options)
    np.testing.assert_allclose(products.importances, direct.importances, atol=1e-4)
    np.testing.assert_allclose(products.linear, direct.linear, atol=1e-4)
    exact, sampled = (
        np.linalg.norm(found.curvature.directions(0, 10**6), axis=1) for found in (direct, products)
    )
    known = exact > 1e-9
    assert np.median(sampled[known] / exact[known]) == pytest.approx(1, abs=0.1)


def test_products_alone_find_the_same_evidence() -> None:
    counts = questions(200, 600, 5)
    outputs = answers(counts)[:, None]
    with threads_for(0):
        direct, products = (
            solve_newton(Counts(counts), outputs, background=True, ridge=None, iterative=iterative)
            for iterative in (False, True)
        )
    np.testing.assert_allclose(products.ridge, direct.ridge, rtol=0.2)
    assert np.corrcoef(products.linear[:, 0], direct.linear[:, 0])[0, 1] > 0.999


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("kind", [DirectSolver, IterativeSolver])
def test_newton_steps_converge_quadratically(kind, background: bool) -> None:
    """Second derivatives are right if the slope falls as the square of what it was."""
    counts = questions(12, 120, 6)
    outputs = answers(counts, noise=0.2)[:, None]
    problem, _ = make_problem(Counts(counts), outputs, background)
    solver, ridge, centre = kind(problem), (0.5, 0.5), outputs.mean(axis=0)
    s, weight, slopes = np.zeros(12), float(background), []
    for number in range(8):
        point = solver.point(s, weight, ridge, centre, None)
        system = solver.system(point, ridge)
        held = background and weight == 0  # at its bound, where only the others have a slope
        slopes.append(np.linalg.norm(system.slope[: 12 if held else None]))
        step = system.newton_step() if number > 3 else system.step(0.1)
        assert step is not None
        s, weight = s + step[:12], max(weight + float(step[12:].sum()), 0.0)
        s, weight = s - s.mean(), weight * np.exp(-s.mean())
    assert slopes[-1] < 1e-5 * slopes[0]


def test_two_centred_classes_are_one_difference() -> None:
    counts = questions(30, 300, 5)
    one = answers(counts)
    one -= one.mean()  # so that the classes' own difference is no part of their spread
    single = slalom.fit(counts, one, ridge="auto", background=True)
    both = slalom.fit(counts, np.column_stack([-one, one]) / 2, ridge="auto", background=True)
    np.testing.assert_allclose(both.values[:, 1] - both.values[:, 0], single.values, atol=1e-6)
    np.testing.assert_allclose(both.importances, single.importances, atol=1e-6)
    np.testing.assert_allclose(both.errors["value"][:, 1], single.errors["value"] / 2, rtol=1e-5)


def test_memory_grows_with_the_units_asked_and_not_with_the_matrix() -> None:
    counts = questions(5000, 20_000, 5)
    outputs = answers(counts)
    tracemalloc.start()
    found = slalom.fit(counts, outputs, ridge=(0.01, 0.01), max_iterations=2)
    found.predict(counts)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.1 * 8 * 5000 * 20_000


def test_many_types_and_few_questions_have_scores_and_errors() -> None:
    counts = questions(1500, 400, 5)
    found = slalom.fit(counts, answers(counts), ridge="auto", background="auto")
    scores, errors = text_scores(found.slalom, np.arange(1500), found)
    for name in SCORES:
        assert np.isfinite(scores[name]).all()
        assert np.isfinite(errors[name][found.active]).all()
        assert np.isinf(errors[name][~found.active]).all()


def test_fits_are_deterministic() -> None:
    counts = questions(700, 300, 5)
    first, again = (
        slalom.fit(counts, answers(counts), ridge="auto", background="auto") for _ in range(2)
    )
    assert np.array_equal(first.values, again.values)
    assert np.array_equal(first.errors["value"], again.errors["value"])


def test_the_limit_on_threads_is_lifted_whoever_ends_last() -> None:
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    from piste.slalom.threads import threads_for

    def allowed() -> list[int]:
        info = threadpool_info()
        return [one["num_threads"] for one in info if one["user_api"] == "blas"]

    before = allowed()

    def limited(_: int) -> list[int]:
        with threads_for(10):
            return allowed()

    with threads_for(10), ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(limited, range(200)))
    assert {number for one in seen for number in one} == {1}, seen[:3]
    assert allowed() == before
