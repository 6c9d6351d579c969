"""Games with attention: closed forms against brute force, the axioms, and the authors' samplers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from piste import PisteError
from piste.methods.attention_games import (
    AttentionGame,
    Present,
    brute_force,
    cls_game,
    draw_kernel,
    draw_uniform,
    least_squares,
    mutual_game,
    weighted_sum,
)

SIZES = range(1, 11)
NAMES = ["cls", "mutual", "max_mutual", "mutual present", "max_mutual present"]


def attention(n: int, seed: int = 0, signed: bool = False) -> np.ndarray:
    """Like attention with special tokens left out: rows sum to less than one."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(n + 1), size=n + 1)
    return weights * rng.normal(size=weights.shape) if signed else weights


def game_of(name: str, whole: np.ndarray) -> AttentionGame:
    """The last row and column are those of the classification token."""
    matrix, given, got, own = whole[:-1, :-1], whole[-1, :-1], whole[:-1, -1], whole[-1, -1]
    if name == "cls":
        return cls_game(given)
    present = Present(given, got, float(own)) if name.endswith("present") else None
    return mutual_game(matrix, largest=name.startswith("max"), present=present)


def by_hand(name: str, whole: np.ndarray, coalition: tuple[int, ...]) -> float:
    """The worth of a coalition as the definition has it, without any array."""
    cls = len(whole) - 1

    def pair(i: int, j: int) -> float:
        both = whole[i, j], whole[j, i]
        return max(both) if name.startswith("max") else sum(both)

    def plain(members: tuple[int, ...]) -> float:
        if len(members) == 1:
            return whole[members[0], members[0]]
        return sum(pair(i, j) for i in members for j in members if i < j)

    if name == "cls":
        return sum(whole[cls, i] for i in coalition)
    if name.endswith("present"):
        return plain((*coalition, cls)) - plain((cls,))
    return plain(coalition)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_worth_is_what_the_definition_says(name: str, signed: bool) -> None:
    whole = attention(6, signed=signed)
    everyone = (np.arange(2**6)[:, None] >> np.arange(6)) & 1 == 1
    expected = [by_hand(name, whole, tuple(np.flatnonzero(one))) for one in everyone]
    np.testing.assert_allclose(game_of(name, whole).worth(everyone), expected, atol=1e-14)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_closed_form_is_what_all_coalitions_give(name: str, signed: bool) -> None:
    for n in SIZES:
        game = game_of(name, attention(n, seed=n, signed=signed))
        np.testing.assert_allclose(game.shapley(), brute_force(game.worth, n), atol=1e-12, rtol=0)


def test_the_formula_of_the_table() -> None:
    whole = attention(5)
    matrix, n = whole[:-1, :-1], 5
    for name, both in (("mutual", matrix + matrix.T), ("max_mutual", np.maximum(matrix, matrix.T))):
        for i in range(n):
            others = [j for j in range(n) if j != i]
            expected = both[i, others].sum() / 2 + matrix[i, i] / n
            expected -= sum(matrix[j, j] for j in others) / (n * (n - 1))
            assert game_of(name, whole).shapley()[i] == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_efficiency(name: str, n: int) -> None:
    game = game_of(name, attention(n))
    everything = game.worth(np.ones((1, n), dtype=bool))[0]
    assert game.shapley().sum() == pytest.approx(everything, abs=1e-9)
    assert game.worth(np.zeros((1, n), dtype=bool))[0] == 0


@pytest.mark.parametrize("name", NAMES)
def test_symmetry(name: str) -> None:
    whole = attention(8)
    whole[:, 2], whole[2] = whole[:, 5], whole[5]
    whole[2, 2] = whole[5, 5] = whole[2, 5] = whole[5, 2] = 0.1
    shares = game_of(name, whole).shapley()
    assert shares[2] == pytest.approx(shares[5], abs=1e-15)
    order = np.random.default_rng(0).permutation(8)
    moved = np.append(order, 8)
    again = game_of(name, whole[np.ix_(moved, moved)]).shapley()
    np.testing.assert_allclose(again, shares[order], atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_null_player(name: str) -> None:
    """Who changes no coalition's worth gets nothing, and nobody else's share depends on it."""
    whole = attention(6)
    whole[3], whole[:, 3] = 0.0, 0.0
    game = game_of(name, whole)
    if name in ("mutual", "max_mutual"):  # a second member ends what one was worth alone
        game = AttentionGame(game.each, game.pairs, np.zeros(6))
    if name.endswith("present"):  # even who brings nothing is someone
        game = AttentionGame(game.each, game.pairs, game.alone)
    everyone = (np.arange(2**6)[:, None] >> np.arange(6)) & 1 == 1
    having, lacking = everyone.copy(), everyone.copy()
    having[:, 3], lacking[:, 3] = True, False
    np.testing.assert_allclose(game.worth(having), game.worth(lacking), atol=1e-15)
    shares = game.shapley()
    assert shares[3] == 0
    rest = np.array([0, 1, 2, 4, 5])
    smaller = AttentionGame(game.each[rest], game.pairs[np.ix_(rest, rest)], game.alone[rest])
    np.testing.assert_allclose(shares[rest], smaller.shapley(), atol=1e-15)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("max")])
def test_linearity(name: str) -> None:
    """Of the games whose worth is linear in attention, as those of heads and layers are."""
    one, other = attention(6, 1), attention(6, 2, signed=True)
    mixed = game_of(name, 0.3 * one + 2.0 * other).shapley()
    apart = 0.3 * game_of(name, one).shapley() + 2.0 * game_of(name, other).shapley()
    np.testing.assert_allclose(mixed, apart, atol=1e-15)


def test_linearity_in_the_game() -> None:
    """Shares of a sum of games are sums of shares, whatever the games are made of."""
    one, other = (game_of("max_mutual", attention(7, seed)) for seed in (1, 2))

    def both(masks: Any) -> Any:
        return 0.3 * one.worth(masks) + 2.0 * other.worth(masks)

    expected = 0.3 * one.shapley() + 2.0 * other.shapley()
    np.testing.assert_allclose(brute_force(both, 7), expected, atol=1e-13)


def test_causal_attention_has_one_direction() -> None:
    whole = np.tril(attention(6))
    mutual, largest = (game_of(name, whole) for name in ("mutual", "max_mutual"))
    np.testing.assert_array_equal(mutual.pairs, largest.pairs)
    np.testing.assert_array_equal(mutual.shapley(), largest.shapley())


def test_too_many_players_are_not_enumerated() -> None:
    with pytest.raises(PisteError, match=r"21 players .* closed form"):
        brute_force(lambda masks: masks.sum(axis=1).astype(float), 21)


# -- the authors' samplers -------------------------------------------------------------------------


def test_drawn_coalitions() -> None:
    rng = np.random.default_rng(0)
    uniform = draw_uniform(30, 4000, rng)
    assert uniform.mean() == pytest.approx(0.5, abs=0.01)
    kernel = draw_kernel(30, 500, rng)
    assert not kernel[0].any()
    assert kernel[-1].all()
    sizes = kernel[1:-1].sum(axis=1)
    assert np.isin(sizes, (1, 29)).mean() > 0.9  # the weight of one coalition, not of a size
    proper = draw_kernel(30, 20_000, rng, as_published=False)[1:-1].sum(axis=1)
    counted = np.bincount(proper, minlength=30)[1:30]
    expected = 1 / (np.arange(1, 30) * np.arange(29, 0, -1))
    np.testing.assert_allclose(counted / counted.sum(), expected / expected.sum(), atol=0.01)
    assert draw_kernel(1, 3, rng).tolist() == [[False], [False], [True]]


def test_the_weighted_sum_over_all_coalitions_is_the_shapley_value() -> None:
    """Every coalition comes twice for a player: with the player and without."""
    game = game_of("max_mutual", attention(6))
    everyone = (np.arange(2**6)[:, None] >> np.arange(6)) & 1 == 1
    np.testing.assert_allclose(weighted_sum(game.worth, everyone) / 2, game.shapley(), atol=1e-13)


def test_least_squares_over_all_coalitions_is_the_shapley_value() -> None:
    for name in NAMES:
        game = game_of(name, attention(6))
        everyone = (np.arange(2**6)[:, None] >> np.arange(6)) & 1 == 1
        found = least_squares(game.worth, everyone, weighted=True)
        np.testing.assert_allclose(found, game.shapley(), atol=1e-12)


def test_sampled_values_come_near_and_add_up() -> None:
    game, rng = game_of("mutual", attention(12)), np.random.default_rng(0)
    exact, total = game.shapley(), game.worth(np.ones((1, 12), dtype=bool))[0]
    for drawn, weighted in (
        (draw_uniform(12, 40_000, rng), True),
        (draw_kernel(12, 40_000, rng, as_published=False), False),
    ):
        found = least_squares(game.worth, drawn, weighted)
        assert found.sum() == pytest.approx(total)
        np.testing.assert_allclose(found, exact, atol=0.1 * exact.mean())
    few = least_squares(game.worth, draw_uniform(12, 4, rng), weighted=True)
    assert few.sum() == pytest.approx(total)  # undetermined, but a share-out all the same
    one = cls_game(np.array([0.4]))
    assert least_squares(one.worth, draw_uniform(1, 5, rng), weighted=True).tolist() == [0.4]
    assert weighted_sum(one.worth, np.array([[True]])).tolist() == [0.4]
