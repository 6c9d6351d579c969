"""Vectors point where they should, and are judged by examples they never saw."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from piste.concepts.vectors import RIDGE, Draw, Draws, Rows, fit


def rows(examples: int, tokens: int, shift: float, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(examples * tokens, 12))
    vectors[:, 3] += shift
    return Rows(vectors.astype(np.float32), np.repeat(np.arange(examples), tokens))


def everything(one: Rows, other: Rows, seed: int = 0) -> Draw:
    sets = np.arange(one.examples), np.arange(other.examples)
    return Draw.of(*sets, np.random.default_rng(seed))


def test_the_direction_is_unit_and_right() -> None:
    one, other = rows(40, 5, 2.0, 0), rows(40, 5, 0.0, 1)
    vector = fit(one, other, everything(one, other))
    assert np.linalg.norm(vector.direction) == pytest.approx(1)
    assert vector.direction[3] > 0.9
    assert vector.accuracy > 0.9
    back = fit(other, one, everything(other, one))
    assert back.direction[3] < -0.9


def test_it_is_the_logistic_regression_it_says() -> None:
    one, other = rows(30, 1, 1.0, 0), rows(30, 1, 0.0, 1)
    draw = everything(one, other)
    own = np.concatenate([one.vectors[draw.fitted[0]], other.vectors[draw.fitted[1]]])
    spread = own.std(axis=0)
    model = LogisticRegression(C=1 / (RIDGE * len(own)), max_iter=5000, tol=1e-9)
    model.fit((own - own.mean(axis=0)) / spread, np.repeat([1, 0], 20))
    expected = model.coef_[0] / spread
    expected /= np.linalg.norm(expected)
    assert fit(one, other, draw).direction @ expected > 0.995


def test_no_example_is_on_both_sides() -> None:
    """All tokens of an example are alike, and examples random: only a leak could tell them."""
    rng = np.random.default_rng(0)
    accuracies = []
    for seed in range(20):
        parts = []
        for _ in range(2):
            own = rng.normal(size=(20, 64)).astype(np.float32)
            parts.append(Rows(np.repeat(own, 10, axis=0), np.repeat(np.arange(20), 10)))
        draw = everything(*parts, seed=seed)
        for fitted, held_out in zip(draw.fitted, draw.held_out, strict=True):
            assert not set(fitted) & set(held_out)
        accuracies.append(fit(*parts, draw).accuracy)
    assert 0.35 < np.mean(accuracies) < 0.65


def test_every_example_counts_the_same() -> None:
    """One example of a thousand tokens must not outvote the others."""
    rng = np.random.default_rng(0)
    short = rng.normal(size=(30, 4)).astype(np.float32)
    short[:, 0] += 3
    long = rng.normal(size=(1000, 4)).astype(np.float32)
    long[:, 0] -= 3
    one = Rows(np.concatenate([short, long]), np.concatenate([np.arange(30), np.full(1000, 30)]))
    other = rows(31, 3, 0.0, 1)
    other = Rows(other.vectors[:, :4], other.owners)
    assert fit(one, other, everything(one, other)).direction[0] > 0.8


def test_features_that_never_change_are_no_obstacle() -> None:
    one, other = rows(20, 2, 3.0, 0), rows(20, 2, 0.0, 1)
    for part in (one, other):
        part.vectors[:, 7] = 5.0
    vector = fit(one, other, everything(one, other))
    assert vector.direction[7] == 0
    same = Rows(np.ones((20, 3), dtype=np.float32), np.arange(20))
    nothing = fit(same, same, everything(same, same))
    assert np.all(nothing.direction == 0)
    assert nothing.accuracy == 0.5


def test_draws_are_balanced_and_apart() -> None:
    draws = Draws({"a": 12, "b": 30}, None, repeats=4, seed=0)
    for name, own in (("a", range(12)), ("b", range(12, 42))):
        for draw in draws.of_concept(name):
            ones = np.concatenate([draw.fitted[0], draw.held_out[0]])
            others = np.concatenate([draw.fitted[1], draw.held_out[1]])
            assert len(ones) == len(others) == 12
            assert set(ones) <= set(own)
            assert not set(others) & set(own)
    sets = draws.of_random_sets()
    assert len(sets) == draws.sets
    for several in sets:
        chosen = {tuple(sorted(np.concatenate([d.fitted[0], d.held_out[0]]))) for d in several}
        assert len(chosen) == 1  # the set stays, only its opposite changes
        for draw in several:
            ones = np.concatenate([draw.fitted[0], draw.held_out[0]])
            others = np.concatenate([draw.fitted[1], draw.held_out[1]])
            assert not set(ones) & set(others)
            for part in (
                *draw.fitted,
                *draw.held_out,
            ):  # as much of the one concept as of the other
                assert (part < 12).sum() == (part >= 12).sum()
    given = Draws({"a": 12}, 25, repeats=2, seed=0)
    assert {int(n) for draw in given.of_concept("a") for n in draw.fitted[1]} <= set(range(12, 37))
