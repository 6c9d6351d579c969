"""Shapley values of a saturating SLALOM: the game is h(F(S)), the answer that is expected.

The integrals that make those of F exact (:mod:`piste.slalom.shapley`) need a ratio of sums, which
h(F) is not. Of few players all sets are looked at; of more, orders of joining are drawn, each with
its reverse, and what that leaves open counts as an error. Either way values add up to
h(F(all)) − h(F(∅)) exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from piste.slalom.link import Saturation

Floats = NDArray[np.float64]
Types = NDArray[np.int64]

_FEW = 12
"""Players of whom all 4,096 sets are looked at."""
_PAIRS = 512
_MOST = 1_000_000
"""Players × pairs of orders that are drawn at most, and likewise for errors with directions."""
_PAIRS_OF_ERRORS = 8  # a standard error is good enough to a tenth
_AT_ONCE = 250_000  # numbers per array


@dataclass(frozen=True)
class SaturatedGame:
    """Players with weights w and values v beside a background, and the link after them.

    ``players`` has the type of every unit; all results are per type, for one of its copies.
    """

    weights: Floats
    values: Floats
    background: float
    base: float
    link: Saturation
    players: Types

    def shapley(self) -> tuple[Floats, Floats]:
        """The values of all types, and their errors from drawing orders: 0 if all sets were seen.

        >>> game = SaturatedGame(np.ones(2), np.array([9.0, 0.0]), 0.0, 0.0,
        ...                      Saturation(0.0, 2.0), np.array([0, 1]))
        >>> values, errors = game.shapley()
        >>> values.round(3).tolist(), errors.tolist()
        ([1.978, -0.022], [0.0, 0.0])
        """
        if len(self.players) <= _FEW:
            shares, top, bottom = self._all_sets()
            return self._of_types(shares @ self.link(self._evidence(top, bottom))), self._zeros()
        sums, squares, pairs = self._zeros(), self._zeros(), self._pairs(_PAIRS, 1)
        for orders in self._drawn(pairs):
            top, bottom = self._joining(orders)
            gains = np.diff(self.link(self._evidence(top, bottom)), axis=1)
            found = np.stack([self._of_types(g, o) for g, o in zip(gains, orders, strict=True)])
            both = (found[0::2] + found[1::2]) / 2
            sums += both.sum(axis=0)
            squares += (both**2).sum(axis=0)
        mean = sums / pairs
        return mean, np.sqrt(np.maximum(squares / pairs - mean**2, 0.0) / max(pairs - 1, 1))

    def changes(self, weights: Floats, mass: Floats, background: Floats, base: Floats) -> Floats:
        """Changes of the values (types × directions) as w, w v, w_0 and w_0 v_0 change."""
        if len(self.players) <= _FEW:
            shares, top, bottom = self._all_sets()
            present = shares.present
            moved = self._moved(
                top, bottom, present @ mass[self.players] + base,
                present @ weights[self.players] + background,
            )  # fmt: skip
            return self._of_types(shares @ moved)
        count = weights.shape[1]
        found = np.zeros((len(self.weights), count))
        pairs = self._pairs(_PAIRS_OF_ERRORS, count)
        step = max(_AT_ONCE // len(self.players), 1)
        for orders in self._drawn(pairs):
            for order in orders:
                types = self.players[order]
                top, bottom = (one[0] for one in self._joining(order[None]))
                for start in range(0, count, step):
                    part = slice(start, start + step)
                    moved = self._moved(
                        top, bottom, _running(base[part], mass[types, part]),
                        _running(background[part], weights[types, part]),
                    )  # fmt: skip
                    found[:, part] += self._of_types(np.diff(moved, axis=0), order)
        return found / (2 * pairs)

    def _all_sets(self) -> tuple[_Shares, Floats, Floats]:
        shares = _Shares(len(self.players))
        mass = self.weights * self.values
        top = shares.present @ mass[self.players] + self.background * self.base
        return shares, top, shares.present @ self.weights[self.players] + self.background

    def _joining(self, orders: Types) -> tuple[Floats, Floats]:
        """Sums of w v and of w before anybody joins and after each."""
        types = self.players[orders]
        mass = self.weights * self.values
        top = np.cumsum(mass[types], axis=1) + self.background * self.base
        bottom = np.cumsum(self.weights[types], axis=1) + self.background
        first = np.ones((len(orders), 1))
        return (
            np.hstack([first * self.background * self.base, top]),
            np.hstack([first * self.background, bottom]),
        )

    def _evidence(self, top: Floats, bottom: Floats) -> Floats:
        return np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), self.base)

    def _moved(self, top: Floats, bottom: Floats, d_top: Floats, d_bottom: Floats) -> Floats:
        """How the answers (rows) move along directions (columns)."""
        evidence = self._evidence(top, bottom)
        safe = np.where(bottom > 0, bottom, 1.0)
        steepness = np.where(bottom > 0, self.link.slope(evidence) / safe, 0.0)
        return np.asarray(steepness[:, None] * (d_top - evidence[:, None] * d_bottom))

    def _pairs(self, wanted: int, each: int) -> int:
        return int(np.clip(_MOST // (len(self.players) * each), 2, wanted))

    def _drawn(self, pairs: int) -> Iterator[Types]:
        """Orders and their reverses, one after the other; always the same ones."""
        rng, everyone = np.random.default_rng(0), np.arange(len(self.players))
        rows = max(_AT_ONCE // len(everyone), 1)
        for start in range(0, pairs, rows):
            count = min(rows, pairs - start)
            orders = rng.permuted(np.tile(everyone, (count, 1)), axis=1)
            yield np.stack([orders, orders[:, ::-1]], axis=1).reshape(2 * count, -1)

    def _of_types(self, gains: Floats, order: Types | None = None) -> Floats:
        """The mean over a type's copies, of gains in an order."""
        types = self.players if order is None else self.players[order]
        copies = np.bincount(types, minlength=len(self.weights))
        if gains.ndim == 1:
            return np.bincount(types, gains, len(self.weights)) / copies
        sums = np.zeros((len(self.weights), gains.shape[1]))
        np.add.at(sums, types, gains)
        return sums / copies[:, None]

    def _zeros(self) -> Floats:
        return np.zeros(len(self.weights))


class _Shares:
    """All sets of some players, and what each set's answer counts for each player's value."""

    def __init__(self, players: int) -> None:
        sets = np.arange(2**players)
        self.present = ((sets[:, None] >> np.arange(players)) & 1).astype(np.float64)
        size = self.present.sum(axis=1)
        # |S|! (n − 1 − |S|)! / n! for those without the player, by one less for those with it
        chances = np.array([1.0 / (players * comb(players - 1, k)) for k in range(players)])
        joined = chances[np.maximum(size.astype(int) - 1, 0)]
        missing = chances[np.minimum(size.astype(int), players - 1)]
        self.share = np.where(self.present > 0, joined[:, None], -missing[:, None]).T

    def __matmul__(self, answers: Floats) -> Floats:
        return np.asarray(self.share @ answers)


def _running(first: Floats, steps: Floats) -> Floats:
    """Sums before the first step and after each."""
    return np.vstack([first, np.cumsum(steps, axis=0) + first])
