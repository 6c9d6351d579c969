"""Games played with attention, and their Shapley values: exactly, by brute force, and by sampling.

Arrays in and out, no model. All games here have one form: a coalition S of players is worth

    v(S) = Σ_{i∈S} each_i + Σ_{i<j∈S} pairs_ij + Σ_{i∈S} alone_i · [|S| = 1] + any · [S ≠ ∅],

and Shapley values are linear in the game, so each part is shared out by itself: what a player
brings to whoever is there stays with it, a pair's worth goes half to each, what only counts alone
is lost again when a second one comes, and what anyone brings is shared by all:

    φ_i = each_i + ½ Σ_{j≠i} pairs_ij + alone_i / n − Σ_{j≠i} alone_j / (n(n − 1)) + any / n.

That is exact at any number of players n, in the time it takes to add up the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import gammaln

from piste.errors import PisteError
from piste.types import Flags, Floats, Ints

Coalitions: TypeAlias = Flags
"""Coalitions × players."""
Worth: TypeAlias = Callable[[Coalitions], Floats]

_MOST_ENUMERATED = 20


@dataclass(frozen=True)
class AttentionGame:
    """A game of the form above; ``pairs`` is symmetric with a zero diagonal.

    >>> game = AttentionGame(np.zeros(2), np.array([[0.0, 3.0], [3.0, 0.0]]), np.array([1.0, 2.0]))
    >>> game.worth(np.array([[False, False], [True, False], [True, True]])).tolist()
    [0.0, 1.0, 3.0]
    >>> game.shapley().tolist()
    [1.0, 2.0]
    """

    each: Floats
    pairs: Floats
    alone: Floats
    any: float = 0.0

    @property
    def players(self) -> int:
        return len(self.each)

    def worth(self, coalitions: Coalitions) -> Floats:
        """What coalitions are worth; nothing is worth nothing."""
        members = np.asarray(coalitions, dtype=np.float64)
        sizes = members.sum(axis=1)
        together = 0.5 * np.einsum("ci,ci->c", members @ self.pairs, members)
        found: Floats = (
            members @ self.each
            + together
            + np.where(sizes == 1, members @ self.alone, 0.0)
            + np.where(sizes > 0, self.any, 0.0)
        )
        return found

    def shapley(self) -> Floats:
        """Every player's fair share, exactly."""
        n = self.players
        found = self.each + 0.5 * self.pairs.sum(axis=1) + (self.alone + self.any) / n
        if n > 1:
            found = found - (self.alone.sum() - self.alone) / (n * (n - 1))
        return found


def cls_game(row: Floats) -> AttentionGame:
    """Σ_{i∈S} A_cls,i: a coalition is worth what the classification token gives its members."""
    n = len(row)
    return AttentionGame(np.asarray(row, dtype=np.float64), np.zeros((n, n)), np.zeros(n))


@dataclass(frozen=True)
class Present:
    """A player that is there from the beginning: what it gives each other one, and gets."""

    given: Floats
    got: Floats
    own: float
    """What it gives itself."""


def mutual_game(
    matrix: Floats, largest: bool = False, present: Present | None = None
) -> AttentionGame:
    """Σ_{i<j∈S} w_ij for two players or more, A_ii for a single one.

    w_ij is A_ij + A_ji, with ``largest`` max(A_ij, A_ji). A player that is always ``present``
    joins every coalition, also the empty one, and what it is worth alone is subtracted:
    v′(S) = v(S ∪ {c}) − v({c}).

    >>> mutual_game(np.array([[0.2, 0.8], [0.6, 0.4]])).shapley().round(6).tolist()
    [0.6, 0.8]
    """
    both = np.maximum if largest else np.add
    pairs = both(matrix, matrix.T).astype(np.float64)
    np.fill_diagonal(pairs, 0.0)
    n = len(matrix)
    if present is None:
        return AttentionGame(np.zeros(n), pairs, np.diagonal(matrix).astype(np.float64))
    return AttentionGame(both(present.given, present.got), pairs, np.zeros(n), -present.own)


def brute_force(worth: Worth, players: int) -> Floats:
    """Shapley values by asking about all 2ⁿ coalitions; for tests, and for whoever doubts.

    >>> brute_force(lambda masks: masks.sum(axis=1) ** 2.0, 3).tolist()
    [3.0, 3.0, 3.0]
    """
    if players > _MOST_ENUMERATED:
        raise PisteError(
            f"{players} players have too many coalitions to ask about all: at most "
            f"{_MOST_ENUMERATED} are taken, use the closed form."
        )
    everyone = (np.arange(2**players)[:, None] >> np.arange(players)) & 1 == 1
    worths = worth(everyone)
    share = np.exp(_log_share(everyone.sum(axis=1), players))
    found = np.empty(players)
    for player in range(players):
        without = np.flatnonzero(~everyone[:, player])
        gained = worths[without + 2**player] - worths[without]
        found[player] = share[without] @ gained
    return found


def draw_uniform(players: int, count: int, rng: np.random.Generator) -> Coalitions:
    """Coalitions of which every player is a member by the toss of a coin."""
    return rng.random((count, players)) < 0.5


def draw_kernel(
    players: int, count: int, rng: np.random.Generator, as_published: bool = True
) -> Coalitions:
    """The empty coalition, that of all, and others with sizes by KernelSHAP's weights.

    A size s has the weight (n − 1) / (C(n, s) s (n − s)) of one coalition of it, ``as_published``,
    so that nearly all have 1 or n − 1 members; KernelSHAP itself weights every coalition so, which
    makes it (n − 1) / (s (n − s)) for a size. Members are drawn without looking.
    """
    found = np.zeros((count, players), dtype=bool)
    found[-1] = True
    if players < 2:
        return found
    sizes = np.arange(1, players)
    chances = (players - 1) / (sizes * (players - sizes))
    if as_published:
        chances = chances * np.exp(-_log_choose(players, sizes))
    drawn = rng.choice(sizes, size=max(count - 2, 0), p=chances / chances.sum())
    for row, size in enumerate(drawn, start=1):
        found[row, rng.permutation(players)[:size]] = True
    return found


def weighted_sum(worth: Worth, coalitions: Coalitions) -> Floats:
    """Σ over the drawn S of (v(S ∪ i) − v(S ∖ i)) / (n C(n − 1, |S ∖ i|)), the authors' estimate.

    It is the sum over all coalitions that defines the Shapley value, cut down to those drawn, and
    not corrected for how they were drawn. It asks 2n questions for every coalition.
    """
    players = coalitions.shape[1]
    found = np.empty(players)
    for player in range(players):
        having, lacking = coalitions.copy(), coalitions.copy()
        having[:, player], lacking[:, player] = True, False
        share = np.exp(_log_share(lacking.sum(axis=1), players))
        found[player] = share @ (worth(having) - worth(lacking))
    return found


def least_squares(worth: Worth, coalitions: Coalitions, weighted: bool) -> Floats:
    """Values whose sums fit the coalitions' worths best, and add up to that of all.

    Coalitions that were not drawn by KernelSHAP's weights are ``weighted`` by them; where they
    don't determine the values, the smallest ones are taken.
    """
    players = coalitions.shape[1]
    total = float(worth(np.ones((1, players), dtype=bool))[0])
    sizes = coalitions.sum(axis=1)
    some = (sizes > 0) & (sizes < players)
    rows, sizes = coalitions[some], sizes[some]
    # Around equal shares, so that what no coalition tells is shared equally.
    rest = worth(rows) - total * sizes / players
    log_weights = (
        -_log_choose(players, sizes) - np.log(sizes * (players - sizes))
        if weighted
        else np.zeros(len(rows))
    )
    root = np.exp(0.5 * (log_weights - log_weights.max(initial=-np.inf)))[:, None]
    centred = rows - rows.mean(axis=1, keepdims=True)  # only differences: their sum is known
    found, *_ = np.linalg.lstsq(root * centred, root[:, 0] * rest, rcond=None)
    return total / players + found - found.mean()


def _log_choose(n: int, k: Ints) -> Floats:
    found: Floats = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return found


def _log_share(size: Ints, players: int) -> Floats:
    """Log of 1 / (n C(n − 1, s)): a coalition's part in the value of one who may join it."""
    size = np.minimum(size, players - 1)  # the one of all can't be joined
    return -np.log(players) - _log_choose(players - 1, size)
