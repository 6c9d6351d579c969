"""Pairs of units: found where they are, not found where there are none, carried exactly."""

from __future__ import annotations

from itertools import product
from math import factorial as f
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import piste
from piste.slalom import fit
from piste.slalom.pairs import find_pairs, neighbours
from piste.types import Flags, Floats

UNITS = 14
NEAR = neighbours(np.ones(UNITS, dtype=bool), np.zeros(UNITS, dtype=np.int64))


def asked(rng: np.random.Generator, count: int = 300) -> Floats:
    """Questions of all sizes."""
    sizes = rng.integers(1, UNITS + 1, count)
    return np.array([rng.permutation(UNITS) < size for size in sizes], dtype=np.float64)


def both(kept: Floats) -> Flags:
    return (kept[:, NEAR] > 0).all(axis=2)


def test_hardly_ever_found_where_there_are_none() -> None:
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        kept = asked(rng)
        answers = kept @ rng.normal(size=UNITS) + rng.normal(0, 0.5, len(kept))
        found += bool(find_pairs(fit(kept, answers), kept, answers, both(kept), NEAR))
    assert found <= 3


@pytest.mark.parametrize("saturating", [False, True])
def test_planted_pairs_are_found_with_their_errors(saturating: bool) -> None:
    inside = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        kept = asked(rng)
        evidence = kept @ rng.normal(0, 0.7, UNITS)
        evidence += 3.0 * kept[:, 3] * kept[:, 4] - 2.5 * kept[:, 7] * kept[:, 10]
        evidence += rng.normal(0, 0.3, len(kept))
        answers = 4 * np.tanh(evidence / 4) if saturating else evidence
        plain = fit(kept, answers)
        pairs = find_pairs(plain, kept, answers, both(kept), NEAR)
        assert {(pair.first, pair.second) for pair in pairs[:2]} == {(3, 4), (7, 10)}
        places = np.array([(pair.first, pair.second) for pair in pairs])
        together = kept[:, places].prod(axis=2)
        carried = fit(kept, answers, together=together)
        truth = [{(3, 4): 3.0, (7, 10): -2.5}.get((i, j), 0.0) for i, j in places.tolist()]
        inside += (np.abs(carried.pairs - truth) < 2.5 * carried.pair_errors).tolist()
        assert carried.loss < 0.6 * plain.loss
    assert np.mean(inside) > 0.85


def negating(texts: list[str]) -> list[float]:
    """Good and bad words, turned by "not" before them, and saturating."""
    weights = {"good": 1.5, "bad": -2.0, "great": 2.0, "boring": -1.5, "not": -0.3}
    found = []
    for text in texts:
        words = text.split()
        total = sum(weights.get(word, 0.02 * len(word)) for word in words)
        total += 3.5 * ("not" in words and "bad" in words)
        found.append(float(3 * np.tanh(total / 3)))
    return found


@pytest.fixture(scope="module")
def explained() -> piste.Explanation:
    loaded = piste.load(negating, outputs="logits")
    return piste.explain(loaded, "the food was not bad and the room was good", samples=400)


def test_an_explanation_carries_the_pair(explained: piste.Explanation) -> None:
    texts = [unit.text for unit in explained.units]
    pair = explained.pairs[0]
    assert (texts[pair.first], texts[pair.second]) == ("not", "bad")
    assert pair.effect == pytest.approx(3.5, abs=0.2)
    assert explained.fidelity.r2 > 0.99
    # Without "not" the answer falls, so it speaks for it.
    assert explained.scores["contribution"][pair.first] > 1
    assert explained.interactions()[pair.first, pair.second] > 1


def test_scores_fit_together(explained: piste.Explanation) -> None:
    e, n = explained, len(explained)
    surrogate: Any = e.surrogate
    whole = float(e.predict(range(n)))
    alone = [e.predict([unit]) for unit in range(n)]
    np.testing.assert_allclose(e.scores["value"], alone, atol=1e-9)
    without = [whole - e.predict(np.delete(np.arange(n), unit)) for unit in range(n)]
    np.testing.assert_allclose(e.scores["removal"], without, atol=1e-9)
    total = e.scores["contribution"].sum() + surrogate.base
    assert whole == pytest.approx(surrogate.link(total) if surrogate.link else total, abs=1e-9)
    kept = np.array(list(product([0, 1], repeat=n)))
    answers = np.asarray(e.predict(kept.astype(bool)))
    np.testing.assert_allclose(e.scores["shapley"], shapley(kept, answers), atol=1e-8)
    for name in ("value", "contribution", "removal", "shapley", "gradient"):
        assert np.isfinite(e.errors[name]).all()


def shapley(kept: Any, answers: Floats) -> Floats:
    """By definition, over all sets."""
    n = kept.shape[1]
    places = {tuple(row): number for number, row in enumerate(kept.tolist())}
    found = np.zeros(n)
    for row in kept.tolist():
        size = sum(row)
        for unit in range(n):
            if not row[unit]:
                more = answers[places[(*row[:unit], 1, *row[unit + 1 :])]]
                share = f(size) * f(n - 1 - size) / f(n)
                found[unit] += share * (more - answers[places[tuple(row)]])
    return found


def test_interactions_are_those_of_the_answers() -> None:
    loaded = piste.load(negating, outputs="logits")
    e = piste.explain(loaded, "the food was not bad", form="additive", samples=60)
    rng, n = np.random.default_rng(0), len(e)
    expected = np.zeros((n, n))
    for _ in range(4000):
        kept = rng.random(n) < rng.random()
        for one in range(n):
            for other in range(one):
                sets = np.repeat(kept[None], 4, axis=0)
                sets[:, [one, other]] = [[1, 1], [1, 0], [0, 1], [0, 0]]
                expected[one, other] += np.dot([1, -1, -1, 1], e.predict(sets)) / 4000
    np.testing.assert_allclose(e.interactions(), expected + expected.T, atol=0.12)


def test_pairs_are_stored(explained: piste.Explanation, tmp_path: Path) -> None:
    explained.to_json(tmp_path / "e.json")
    again = piste.read(tmp_path / "e.json")
    assert again.pairs == explained.pairs
    masks = np.random.default_rng(1).random((20, len(explained))) < 0.5
    np.testing.assert_allclose(again.predict(masks), explained.predict(masks))


def test_images_classes_and_the_paper_have_none() -> None:
    loaded = piste.load(lambda texts: [[0.0, x] for x in negating(texts)])
    text = "the food was not bad and the room was good"
    assert not piste.explain(loaded, text, samples=200, form="paper").pairs
    assert not piste.explain(loaded, text, samples=200, target="all").pairs
