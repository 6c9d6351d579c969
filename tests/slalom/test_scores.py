"""Scores of a text: what they add up to, and their errors against draws from the posterior."""

from __future__ import annotations

import numpy as np
import pytest

from piste.slalom import Background, Slalom, fit
from piste.slalom.scores import interactions, shapley, text_scores
from piste.slalom.surrogate import Parameters, Saturation
from tests.slalom.test_fitting import questions, truth
from tests.slalom.test_shapley import brute_force_of

TYPES = np.array([0, 1, 2, 1, 3, 4])
SURROGATES = {
    "paper": Slalom(np.array([1.0, -2.0, 0.5, 0.1, 3.0]), np.array([0.4, 0, -0.6, 0.3, -0.1])),
    "additive": Slalom(np.array([1.0, -2.0, 0.5, 0.1, 3.0]), np.zeros(5), 0.0, 0.2),
    "mixed": Slalom(
        np.array([1.0, -2.0, 0.5, 0.1, 3.0]),
        np.array([0.4, 0, -0.6, 0.3, -0.1]),
        0.4,
        0.2,
        link=Saturation(0.1, 1.5),
    ),
    "background": Slalom(
        np.array([1.0, -2.0, 0.5, 0.1, 3.0]),
        np.array([0.4, 0, -0.6, 0.3, -0.1]),
        1.0,
        0.2,
        Background(0.3, -0.5),
    ),
}


def rows(types: np.ndarray, gone: int | None = None) -> np.ndarray:
    left = types if gone is None else np.delete(types, gone)
    return np.bincount(left, minlength=5)[None, :].astype(float)


@pytest.mark.parametrize("name", SURROGATES)
def test_scores_mean_what_they_say(name: str) -> None:
    slalom = SURROGATES[name]
    scores, _ = text_scores(slalom, TYPES)
    whole = float(slalom.predict(rows(TYPES))[0])
    np.testing.assert_allclose(scores["value"], slalom.values[TYPES], atol=1e-12)
    gone = [whole - float(slalom.predict(rows(TYPES, k))[0]) for k in range(len(TYPES))]
    np.testing.assert_allclose(scores["removal"], gone, atol=1e-12)
    evidence = float(slalom.total_evidence(rows(TYPES))[0]) - slalom.base
    if slalom.background is None:
        assert scores["contribution"].sum() == pytest.approx(evidence)
    empty = float(slalom.predict(np.zeros((1, 5)))[0])
    assert scores["shapley"].sum() == pytest.approx(whole - empty, abs=1e-8)
    step = 1e-6
    for unit in range(len(TYPES)):
        ends = []
        for side in (1, -1):
            counts = np.bincount(TYPES, minlength=5)[None, :].astype(float)
            counts[0, TYPES[unit]] += side * step
            ends.append(float(slalom.predict(counts)[0]))
        assert scores["gradient"][unit] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("players", [5, 14])
def test_shapley_values_and_interactions_against_brute_force(name: str, players: int) -> None:
    slalom = SURROGATES[name]
    types = np.arange(players) % 5
    phi, pairs = brute_force_of(lambda masks: slalom.predict(masks @ np.eye(5)[types]), players)
    values, errors = shapley(Parameters.of(slalom), types)
    assert (np.abs(values[types] - phi) <= 4 * errors[types] + 1e-8).all()
    assert np.abs(values[types] - phi).max() < 0.02 * np.abs(phi).max() + 1e-8
    found = interactions(Parameters.of(slalom), types)
    assert np.abs(found - pairs).max() < 0.15 * np.abs(pairs).max() + 1e-8
    np.testing.assert_allclose(found, found.T, atol=1e-12)


@pytest.mark.parametrize("kind", ["softmax", "mixed"])
def test_errors_are_those_of_draws_from_the_posterior(kind: str) -> None:
    counts = questions(15, 200)
    outputs = truth(kind, 15).predict(counts) + 0.05 * np.random.default_rng(1).normal(size=200)
    found = fit(counts, outputs)
    types = np.arange(15)
    _, errors = text_scores(found.slalom, types, found)
    posterior, rng = found.posterior, np.random.default_rng(2)
    assert posterior is not None
    draws: dict[str, list[np.ndarray]] = {}
    for _ in range(300):
        moved = posterior.factor @ rng.standard_normal(posterior.factor.shape[1])
        theta = posterior.theta + 0.2 * moved  # a fifth, where everything is nearly linear
        for name, own in text_scores(posterior.layout.slalom(theta, True), types)[0].items():
            draws.setdefault(name, []).append(own)
    for name in ("value", "importance", "contribution", "removal", "gradient", "shapley"):
        spread = np.std(draws[name], axis=0) / 0.2
        assert np.median(errors[name] / spread) == pytest.approx(1.0, abs=0.2)


def test_linear_is_the_papers_score_and_only_there_on_request() -> None:
    scores, _ = text_scores(SURROGATES["paper"], TYPES, linear=True)
    np.testing.assert_allclose(
        scores["linear"], scores["value"] * np.exp(scores["importance"]), atol=1e-12
    )
    assert "linear" not in text_scores(SURROGATES["paper"], TYPES)[0]
