"""SPEX, ProxySPEX, Faith-Banzhaf and k-SII: planted pairs, and predictions by brute force."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import numpy as np
import pytest

import piste
from piste import PisteError
from piste.data.storage import from_json
from piste.methods import make
from piste.methods.interactions import every_subset, signs_of, transform
from piste.surrogates import PolynomialSurrogate, surrogate_from
from tests.methods.test_libraries import a_task

pytest.importorskip("shapiq")
SLOW = pytest.mark.slow  # the decoder of SPEX is compiled, ProxySPEX fits forty models
SEARCHES = [pytest.param("spex", marks=SLOW), pytest.param("proxyspex", marks=SLOW)]
PAIRS = ["faith_banzhaf", "ksii"]


def planted(masks: Any) -> Any:
    """A sum with two pairs: the first and the last unit, the second and the fourth."""
    kept = np.asarray(masks, dtype=float)
    sums = kept @ np.linspace(-1, 1, kept.shape[1])
    return 0.3 + sums + 2 * kept[:, 0] * kept[:, -1] - 1.5 * kept[:, 1] * kept[:, 3]


def text_of(units: int) -> str:
    return " ".join(f"w{k}" for k in range(units))


def reading(units: int, classes: int = 1) -> Any:
    def answer(texts: list[str]) -> Any:
        masks = np.zeros((len(texts), units))
        for row, text in zip(masks, texts, strict=True):
            row[[int(word[1:]) for word in text.split()]] = 1
        numbers = planted(masks)
        return numbers if classes == 1 else np.stack([numbers, masks[:, 2], 0 * numbers], axis=1)

    return answer


@pytest.mark.parametrize("name", [*SEARCHES, *PAIRS])
def test_planted_pairs_are_found(name: str) -> None:
    n, before = 10, np.random.get_state()[1].copy()
    e = piste.explain(reading(n), text_of(n), method=name, samples=400)
    pairs = e.interactions()
    order = sorted(itertools.combinations(range(n), 2), key=lambda pair: -abs(pairs[pair]))
    assert order[:2] == [(0, n - 1), (1, 3)]
    assert pairs[0, n - 1] == pytest.approx(2.0, abs=0.2)
    assert pairs[1, 3] == pytest.approx(-1.5, abs=0.2)
    np.testing.assert_allclose(pairs, pairs.T)
    every = every_subset(n)
    # ProxySPEX keeps the terms with 95 % of the variance, as published: √0.95 = 0.975.
    least = 0.96 if name == "proxyspex" else 0.98
    assert np.corrcoef(e.predict(every), planted(every))[0, 1] > least
    assert e.calls <= 400
    assert np.array_equal(before, np.random.get_state()[1])


def found_by(name: str, game: Any, units: int, budget: int) -> Any:
    """What a method finds by a function of masks, for which nothing can be asked too."""
    scores, surrogate = make(name, {}).explore(game, a_task(units), budget).model("attribution")  # type: ignore[attr-defined]
    return scores, surrogate


@pytest.mark.parametrize("name", ["spex", "proxyspex", *PAIRS])
def test_predictions_are_right_on_all_subsets(name: str) -> None:
    n = 7  # all 128 can be asked, and a polynomial of pairs is exact for all four
    scores, surrogate = found_by(name, planted, n, 200)
    every = every_subset(n).astype(float)
    np.testing.assert_allclose(surrogate.predict(scores, every), planted(every), atol=1e-5)
    truth = np.linspace(-1, 1, n) + np.array([1, -0.75, 0, -0.75, 0, 0, 1])
    np.testing.assert_allclose(scores["attribution"], truth, atol=1e-5)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("budget", [60, 254])
def test_predictions_are_those_of_the_library(name: str, budget: int) -> None:
    from shapiq.approximator import KernelSHAPIQ, RegressionFBII

    def cubic(masks: Any) -> Any:
        kept = np.asarray(masks, dtype=float)
        return planted(masks) + kept[:, 2] * kept[:, 4] * kept[:, 5]

    scores, surrogate = found_by(name, cubic, 8, budget)
    kind = RegressionFBII if name == "faith_banzhaf" else KernelSHAPIQ
    seed = int(a_task(8).rng.integers(2**31))
    theirs = kind(n=8, max_order=2, random_state=seed).approximate(budget + 2, cubic).dict_values
    every = every_subset(8)
    sums = [sum(value for term, value in theirs.items() if all(mask[list(term)])) for mask in every]
    np.testing.assert_allclose(surrogate.predict(scores, every.astype(float)), sums, atol=1e-9)
    for unit in range(8):
        assert scores["first_order"][unit] == pytest.approx(theirs.get((unit,), 0.0))


def test_a_stored_result_predicts_the_same() -> None:
    e = piste.explain(reading(7), text_of(7), method="ksii", samples=100)
    every = every_subset(7)
    np.testing.assert_array_equal(from_json(e.to_json()).predict(every), e.predict(every))
    assert e.score().sum() == pytest.approx(e.predict(range(7)) - e.predict([]))


@pytest.mark.parametrize("name", PAIRS)
def test_all_classes_are_explained_by_the_same_questions(name: str) -> None:
    n, options = 9, {"method": name, "samples": 300}
    e = piste.explain(reading(n, 3), text_of(n), target="all", **options)
    one = piste.explain(reading(n, 3), text_of(n), **options)
    assert e.scores["attribution"].shape == (n, 3)
    assert e.calls == one.calls
    np.testing.assert_allclose(e.scores["attribution"].sum(axis=1), 0.0, atol=1e-6)
    with pytest.raises(PisteError, match="choose a single target"):
        e.interactions()


@pytest.mark.parametrize("name", PAIRS)
def test_too_many_units_for_pairs_are_refused(name: str) -> None:
    with pytest.raises(PisteError, match="expected at most most_units=5 units, got 6"):
        piste.explain(reading(6), text_of(6), method=name, most_units=5)
    few = piste.explain(reading(30), text_of(30), method=name, samples=100)
    assert few.settings["underdetermined"]


@pytest.mark.slow
def test_a_budget_that_is_too_small_for_spex_is_refused() -> None:
    with pytest.raises(PisteError, match=r"spex: expected at least .* questions for 30 units"):
        piste.explain(reading(30), text_of(30), method="spex", samples=100)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spex", "proxyspex"])
def test_a_constant_answer_has_no_interactions(name: str, capfd: Any) -> None:
    handlers = list(logging.getLogger().handlers)
    e = piste.explain(lambda texts: [1.5] * len(texts), text_of(12), method=name, samples=400)
    assert e.predict([]) == pytest.approx(1.5)
    np.testing.assert_allclose(e.score(), 0.0, atol=1e-9)
    assert logging.getLogger().handlers == handlers
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("basis", ["products", "signs"])
def test_a_polynomial_has_the_shapley_values_and_interactions_of_its_predictions(
    basis: Any,
) -> None:
    n, rng = 5, np.random.default_rng(1)
    terms = tuple(t for size in range(5) for t in itertools.combinations(range(n), size))
    found = PolynomialSurrogate(terms, tuple(rng.normal(size=len(terms))), basis)
    numbers = found.predict({}, every_subset(n))
    products = found if basis == "products" else None
    signs = transform(numbers)
    if products is not None:
        direct = signs_of(dict(zip(terms, found.coefficients, strict=True)))  # type: ignore[arg-type]
        assert direct == pytest.approx(signs)
    truth, pairs = np.zeros(n), np.zeros((n, n))
    for order in itertools.permutations(range(n)):
        for place, unit in enumerate(order):
            before = sum(1 << k for k in order[:place])
            truth[unit] += (numbers[before | 1 << unit] - numbers[before]) / 120
    for i, j in itertools.combinations(range(n), 2):
        rest = [k for k in range(n) if k not in (i, j)]
        for order in itertools.permutations(rest):
            for place in range(len(rest) + 1):
                base = sum(1 << k for k in order[:place])
                both, one, other = base | 1 << i | 1 << j, base | 1 << i, base | 1 << j
                change = numbers[both] - numbers[one] - numbers[other] + numbers[base]
                pairs[i, j] += change / (6 * (len(rest) + 1))
    np.testing.assert_allclose(found.values(n), truth)
    np.testing.assert_allclose(found.interactions({"attribution": truth}), pairs + pairs.T)
    assert surrogate_from(found.to_dict()) == found
