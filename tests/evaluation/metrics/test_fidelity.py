"""Fidelity: by hand, exact for additive functions, the same questions for every method."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import mean_squared_error, r2_score

import piste
from piste.evaluation.metrics import Case
from piste.evaluation.metrics.fidelity import Fidelity
from tests.conftest import TEXT
from tests.evaluation.cases import adding, case_of, explained, measure, yes_or_no

NAMES = [figure.name for figure in Fidelity().figures]


def test_by_hand() -> None:
    truth, scores, base = np.array([2.0, 1.0, -1.0]), np.array([1.0, 1.0, 0.0]), 0.5
    clf = yes_or_no(adding(dict(zip("abc", truth, strict=True))))
    found = measure(Fidelity(), case_of(clf, explained(clf, "a b c", scores, base)))
    wrong = truth - scores  # what a removed unit's change is misjudged by
    singles = np.mean(wrong**2)
    pairs = np.mean([(wrong[a] + wrong[b]) ** 2 for a, b in combinations(range(3), 2)])
    assert found.figures["mse_1"] == pytest.approx(singles)
    assert found.figures["mse_2"] == pytest.approx(pairs)
    assert found.figures["mse_few"] == pytest.approx((singles + pairs) / 2)
    assert found.figures["mse_all"] == pytest.approx((singles + pairs) / 2)
    assert math.isnan(found.figures["mse_3"])
    np.testing.assert_allclose(found.curves["mse_by_removed"][:2], [singles, pairs])
    assert np.isnan(found.curves["mse_by_removed"][2:]).all()
    kept = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]] @ np.eye(3)
    numbers, expected = kept @ truth, base + kept @ scores
    assert found.figures["r2_all"] == pytest.approx(r2_score(numbers, expected))
    changes, predicted = numbers - truth.sum(), kept @ scores - scores.sum()
    assert found.figures["r2_few"] == pytest.approx(r2_score(changes, predicted))


def test_the_figures_against_scikit_learn(bert: Any) -> None:
    e = piste.explain(bert, TEXT, samples=60)
    metric, case = Fidelity(), case_of(bert, e)
    assert case.n > 12
    plan = metric.plan(case)
    sizes = np.array([case.n - len(kept) for kept in plan])
    assert sizes[0] == 0
    assert sizes[1:101].tolist() == [k for k in range(1, 11) for _ in range(10)]
    assert sizes[101:].min() == 1
    assert sizes[101:].max() == case.n - 1
    found = metric.measure(case, case.answers(case.subject.ask(plan))).figures
    numbers = e.target(case.subject.ask(plan))
    expected = np.array([e.predict(list(map(int, kept))) for kept in plan])
    changes, predicted = numbers - numbers[0], expected - expected[0]
    for k in range(1, 11):
        where = slice(10 * k - 9, 10 * k + 1)
        assert found[f"mse_{k}"] == pytest.approx(
            mean_squared_error(changes[where], predicted[where])
        )
    assert found["mse_few"] == pytest.approx(mean_squared_error(changes[1:51], predicted[1:51]))
    assert found["mse_all"] == pytest.approx(mean_squared_error(changes[101:], predicted[101:]))
    assert found["r2_few"] == pytest.approx(r2_score(changes[1:51], predicted[1:51]))
    assert found["r2_all"] == pytest.approx(r2_score(numbers[101:], expected[101:]))


@pytest.fixture(scope="module")
def additive(wordpiece: Any) -> Any:
    """A sum over token ids that can read nothing: its Shapley values are its weights."""
    weights = torch.randn(200, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return piste.load(
        lambda ids, mask: (weights[ids] * mask).sum(dim=1), wordpiece, kind="regression"
    )


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("linear", {}),
        ("kernel_shap", {"samples": 2000}),
        pytest.param("permutation_shap", {}, marks=pytest.mark.slow),  # it compiles itself
        ("occlusion", {}),
    ],
)
def test_an_additive_function_is_predicted_exactly(
    additive: Any, method: str, options: dict[str, Any]
) -> None:
    e = piste.explain(additive, TEXT, method=method, **options)
    figures = measure(Fidelity(), case_of(additive, e)).figures
    assert figures["r2_all"] == pytest.approx(1.0, abs=1e-6)
    assert figures["r2_few"] == pytest.approx(1.0, abs=1e-6)
    assert max(figures[f"mse_{k}"] for k in range(1, 11)) < 1e-6


def test_an_exact_slalom_is_predicted_exactly(exact: Any) -> None:
    truth = exact(n=20)
    clf = piste.load(truth)
    slalom, linear = (
        measure(Fidelity(), case_of(clf, piste.explain(clf, truth.text, method=method))).figures
        for method in ("slalom", "linear")
    )
    assert slalom["r2_all"] == pytest.approx(1.0, abs=1e-6)
    assert linear["r2_all"] < 0.99
    assert linear["mse_few"] > slalom["mse_few"]


def test_a_shifted_surrogate_is_seen_in_all_sizes_only() -> None:
    clf = yes_or_no(adding({"a": 1.0, "b": 2.0, "c": 3.0}))
    figures = measure(
        Fidelity(), case_of(clf, explained(clf, "a b c", [1, 2, 3], base=9.0))
    ).figures
    assert figures["mse_few"] == pytest.approx(0, abs=1e-12)
    assert figures["r2_few"] == pytest.approx(1.0)
    assert figures["mse_all"] == pytest.approx(0, abs=1e-12)
    assert figures["r2_all"] < -10


def test_all_methods_are_asked_the_same_and_seeds_differ() -> None:
    words = " ".join(f"w{k}" for k in range(30))
    clf = yes_or_no(adding({"w3": 1.0}))
    cases = [case_of(clf, explained(clf, words, np.eye(30)[k])) for k in range(2)]
    first, second = ([tuple(kept) for kept in Fidelity().plan(case)] for case in cases)
    assert first == second
    assert len(set(first[1:101])) == 100
    other = Case(cases[0].explanation, cases[0].subject, seed=1)
    assert [tuple(kept) for kept in Fidelity().plan(other)] != first


@pytest.mark.parametrize("n", [2, 3, 5, 8, 12])
def test_no_removal_is_drawn_twice_and_something_stays(n: int) -> None:
    clf = yes_or_no(adding({}))
    case = case_of(clf, explained(clf, " ".join(f"w{k}" for k in range(n)), np.zeros(n)))
    few, spread = Fidelity()._draw(case)
    for size, masks in enumerate(few, start=1):
        assert len(masks) == (min(10, math.comb(n, size)) if size < n else 0)
        assert len(np.unique(masks, axis=0)) == len(masks)
        assert (n - masks.sum(axis=1) == size).all()
    assert len(np.unique(spread, axis=0)) == len(spread)
    assert set(n - spread.sum(axis=1)) == set(range(1, n))


def test_one_unit_and_a_constant() -> None:
    clf = yes_or_no(lambda text: 1.0)
    alone = measure(Fidelity(), case_of(clf, explained(clf, "a", [0.0]))).figures
    assert set(alone) == set(NAMES)
    assert all(map(math.isnan, alone.values()))
    predicted = measure(Fidelity(), case_of(clf, explained(clf, "a b c", [0.0] * 3, base=1.0)))
    assert predicted.figures["r2_all"] == 1.0
    missed = measure(Fidelity(), case_of(clf, explained(clf, "a b c", [1.0, 0, 0], base=1.0)))
    assert math.isnan(missed.figures["r2_all"])
    assert missed.figures["mse_1"] == pytest.approx(1 / 3)
