"""Shapley values and interactions against brute force and axioms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from piste import PisteError, slalom

GAMES = [
    (0.3, (0.0, 0.0)),
    (1.0, (0.0, 0.0)),
    (1.0, (0.5, -0.7)),
    (3.0, (1e-4, 2.0)),
    (6.0, (2, 1)),
]


def brute_force_of(answers: Callable[[np.ndarray], np.ndarray], n: int):
    """Shapley values and interactions from their definitions, over all 2^n coalitions."""
    masks = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(float)
    worth = answers(masks)
    size, number, f = masks.sum(axis=1).astype(int), np.arange(2**n), math.factorial
    phi, pairs = np.zeros(n), np.zeros((n, n))
    for i in range(n):
        rest = number[(number >> i) & 1 == 0]
        weight = np.array([f(k) * f(n - k - 1) / f(n) for k in range(n)])[size[rest]]
        phi[i] = weight @ (worth[rest | 1 << i] - worth[rest])
        for j in range(i):
            both = rest[(rest >> j) & 1 == 0]
            weight = np.array([f(k) * f(n - k - 2) / f(n - 1) for k in range(n - 1)])[size[both]]
            gain = worth[both | 1 << i | 1 << j] - worth[both | 1 << i] - worth[both | 1 << j]
            pairs[i, j] = pairs[j, i] = weight @ (gain + worth[both])
    return phi, pairs


def brute_force(v: np.ndarray, s: np.ndarray, background: tuple[float, float], empty: float):
    w, (w0, v0) = np.exp(s), background

    def worth(masks: np.ndarray) -> np.ndarray:
        total = masks @ w + w0
        mean = (masks @ (w * v) + w0 * v0) / np.where(total > 0, total, 1)
        return np.where(total > 0, mean, empty)

    return brute_force_of(worth, len(v))


@pytest.mark.parametrize(("scale", "background"), GAMES)
def test_against_brute_force(scale: float, background: tuple[float, float]) -> None:
    rng = np.random.default_rng(1)
    v, s = 3 * rng.normal(size=12), scale * rng.normal(size=12)
    phi, pairs = brute_force(v, s, background, empty=0.4)
    options = {"background": background, "empty": 0.4}
    np.testing.assert_allclose(slalom.shapley(v, s, **options), phi, atol=1e-9)
    np.testing.assert_allclose(slalom.interactions(v, s, **options), pairs, atol=1e-9)


@pytest.mark.parametrize("background", [(0.0, 0.0), (3.0, -0.7)])
def test_efficiency_at_500_players(background: tuple[float, float]) -> None:
    rng = np.random.default_rng(2)
    v, s = 3 * rng.normal(size=500), 2 * rng.normal(size=500)
    phi = slalom.shapley(v, s, background=background)
    w = np.exp(s)
    whole = (w @ v + background[0] * background[1]) / (w.sum() + background[0])
    assert phi.sum() == pytest.approx(whole - background[1] * (background[0] > 0), abs=1e-8)


def test_symmetry_null_player_and_copies() -> None:
    v, s = np.array([1.0, 2.0, 1.0, -1.0]), np.array([0.5, -30.0, 0.5, 0.0])
    phi = slalom.shapley(v, s, background=(1.0, 0.0))
    assert phi[0] == pytest.approx(phi[2], abs=1e-12)
    assert abs(phi[1]) < 1e-10
    copies = slalom.shapley([1.0, -1.0], [0.5, 0.0], counts=[2, 1], background=(1.0, 0.0))
    alone = slalom.shapley([1.0, 1.0, -1.0], [0.5, 0.5, 0.0], background=(1.0, 0.0))
    np.testing.assert_allclose(copies, alone[[0, 2]], atol=1e-12)


def test_bad_input() -> None:
    with pytest.raises(PisteError, match="one length"):
        slalom.shapley([1.0, 2.0], [0.0])
    with pytest.raises(PisteError, match="finite"):
        slalom.shapley([np.nan], [0.0])
    with pytest.raises(PisteError, match="copies"):
        slalom.shapley([1.0], [0.0], counts=[0])


@pytest.mark.parametrize("weight", [1e-10, 1e-7])
def test_a_tiny_background_still_counts(weight: float) -> None:
    v, s = np.array([1.0, 2.0, 3.0, -1.0]), np.array([0.0, 3.0, -3.0, 1.0])
    phi, _ = brute_force(v, s, (weight, 5.0), empty=0.0)
    np.testing.assert_allclose(slalom.shapley(v, s, background=(weight, 5.0)), phi, atol=1e-8)
