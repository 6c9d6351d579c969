"""Shapley values of saturating surrogates against their definition, and errors against steps."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from piste.slalom import saturated
from piste.slalom.link import Saturation
from piste.slalom.saturated import SaturatedGame
from piste.slalom.scores import _Changes, _Game, text_scores
from piste.slalom.shapley import shapley
from piste.slalom.surrogate import Slalom

LINK = Saturation(0.5, 1.5)


def game(players: int, types: int, background: float = 0.4, link: Saturation = LINK):
    rng = np.random.default_rng(players)
    kinds = np.concatenate([np.arange(types), rng.integers(0, types, players - types)])
    weights, values = rng.uniform(0.1, 2, types), rng.normal(0, 4, types)
    return SaturatedGame(weights, values, background, -3.0, link, kinds)


def answer(one: SaturatedGame, units: list[int]) -> float:
    types = one.players[units]
    slalom = Slalom(one.values, np.log(one.weights), one.background, one.base, one.link)
    return float(slalom.predict(np.bincount(types, minlength=len(one.weights)))[0])


@pytest.mark.parametrize("background", [0.0, 0.4])
@pytest.mark.parametrize(("players", "types"), [(1, 1), (4, 4), (6, 3)])
def test_of_few_it_is_the_definition(players, types, background):
    one = game(players, types, background)
    brute = np.zeros(players)
    orders = list(permutations(range(players)))
    for order in orders:
        for place, unit in enumerate(order):
            joined, before = list(order[: place + 1]), list(order[:place])
            brute[unit] += (answer(one, joined) - answer(one, before)) / len(orders)
    found, errors = one.shapley()
    np.testing.assert_allclose(found[one.players], brute, atol=1e-10)
    assert (errors == 0).all()


def test_of_more_it_is_near_and_says_how_near(monkeypatch):
    one = game(12, 8)
    exact, _ = one.shapley()
    monkeypatch.setattr(saturated, "_FEW", 0)
    found, errors = one.shapley()
    assert (errors > 0).all()
    assert (np.abs(found - exact) < 4 * errors).all()
    assert errors.max() < 0.05
    counts = np.bincount(one.players)
    whole, nothing = answer(one, list(range(12))), answer(one, [])
    assert counts @ found == pytest.approx(whole - nothing, abs=1e-10)
    assert np.array_equal(found, one.shapley()[0]), "the same orders are drawn every time"


def test_without_a_bend_it_is_the_exact_one():
    one = game(30, 20, link=Saturation(0.0, 1e6))
    found, errors = one.shapley()
    counts = np.bincount(one.players).astype(float)
    exact = shapley(
        one.values, np.log(one.weights), background=(one.background, one.base), counts=counts
    )
    assert (np.abs(found - exact) < 4 * errors + 1e-9).all()


@pytest.mark.parametrize("few", [12, 0])
@pytest.mark.parametrize("background", [0.0, 0.4])
def test_errors_follow_small_steps(monkeypatch, few, background):
    """Along random directions, every score changes as the errors suppose."""
    monkeypatch.setattr(saturated, "_FEW", few)
    monkeypatch.setattr(saturated, "_PAIRS", saturated._PAIRS_OF_ERRORS)  # the same orders
    monkeypatch.setattr(saturated, "_AT_ONCE", 20)  # in more than one piece
    one, rng, step = game(7, 5, background), np.random.default_rng(3), 1e-5
    s, v = np.log(one.weights), one.values
    base, mass = one.base, background * one.base
    ds, dv = rng.normal(size=(2, 5, 3))
    d_weight, d_mass = rng.normal(size=(2, 3)) * (background > 0)

    def at(column: int, size: float) -> dict[str, np.ndarray]:
        weight = background + size * d_weight[column]
        moved = (mass + size * d_mass[column]) / weight if weight else base
        slalom = Slalom(v + size * dv[:, column], s + size * ds[:, column], weight, moved, LINK)
        return _Game(slalom, one.players, 0).scores()

    now = _Game(Slalom(v, s, background, base, LINK), one.players, 0)
    for column in range(3):
        pick = slice(column, column + 1)
        changes = _Changes(ds[:, pick], dv[:, pick], d_weight[pick], d_mass[pick])
        up, down = at(column, step), at(column, -step)
        for name, error in now.errors(changes).items():
            expected = np.abs(up[name] - down[name]) / (2 * step)
            np.testing.assert_allclose(error, expected, rtol=1e-4, atol=1e-6, err_msg=name)


def test_what_is_said_of_the_answer_stays_within_it():
    """Evidence far outside, as short and confident texts have it, does not leak into scores."""
    types = np.array([0, 1, 2])
    slalom = Slalom(np.array([6.0, 4.0, 0.4]), np.zeros(3), 0.01, -93.0, Saturation(2.0, 2.2))
    scores, _ = text_scores(slalom, types)
    whole, nothing = slalom.predict([[1, 1, 1], [0, 0, 0]])
    assert scores["shapley"].sum() == pytest.approx(whole - nothing, abs=1e-10)
    for unit in types:
        without = slalom.predict((types != unit)[None])[0]
        assert scores["removal"][unit] == pytest.approx(whole - without, abs=1e-10)
