"""Attention Shapley values: the closed form against enumeration and against sampled coalitions.

    python -m benchmarks.attention_shapley [--model piste:reviews] [--data imdb.parquet]
        [--split test] [--texts 50] [--game max_mutual] [--gradient relu] [--coalitions 100]

Every text is traced once; then its game is solved in every way. The authors draw 100 coalitions,
uniformly or by KernelSHAP's weights, and sum up what each unit brings to them; least squares is
what KernelSHAP itself makes of drawn coalitions. Correlations and errors are against the closed
form, whose own error stands in the row of all coalitions (texts of at most 15 units). Medians.
Without --data the reviews in benchmarks/reviews.txt are used.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import piste
from piste.classifiers.introspection.tracing import trace
from piste.evaluation import read_data
from piste.methods.attention_games import (
    AttentionGame,
    Coalitions,
    brute_force,
    draw_kernel,
    draw_uniform,
    least_squares,
    weighted_sum,
)
from piste.methods.attention_shapley import AttentionShapley
from piste.target import resolve
from piste.types import Floats

_MOST_ENUMERATED = 15


class Counted:
    """A game that counts how many coalitions it was asked about."""

    def __init__(self, game: AttentionGame) -> None:
        self.game, self.asked = game, 0

    def __call__(self, coalitions: Coalitions) -> Floats:
        self.asked += len(coalitions)
        return self.game.worth(coalitions)


@dataclass(frozen=True)
class Way:
    """One way to Shapley values; those that draw get a generator."""

    name: str
    solve: Callable[[Counted, int, np.random.Generator], Floats]
    most: int | None = None


def ways(count: int) -> list[Way]:
    """What is compared, with ``count`` drawn coalitions."""
    return [
        Way("closed form", lambda game, n, rng: game.game.shapley()),
        Way("all coalitions", lambda game, n, rng: brute_force(game, n), _MOST_ENUMERATED),
        Way("authors, uniform", lambda g, n, rng: weighted_sum(g, draw_uniform(n, count, rng))),
        Way("authors, kernel", lambda g, n, rng: weighted_sum(g, draw_kernel(n, count, rng))),
        Way(
            "least squares, uniform",
            lambda g, n, rng: least_squares(g, draw_uniform(n, count, rng), weighted=True),
        ),
        Way(
            "least squares, kernel",
            lambda g, n, rng: least_squares(g, draw_kernel(n, count, rng, False), weighted=False),
        ),
    ]


def main() -> None:
    """Print the table."""
    options = _options()
    classifier = piste.load(options.model)
    method = AttentionShapley(game=options.game, gradient=options.gradient)
    games = []
    for text in _texts(options):
        subject = classifier.subject(text, long="truncate")
        target = resolve(None, subject.ask([subject.whole])[0], classifier.labels, classifier.kind)
        games.append(method.play(trace(classifier.gradient_access(subject, target))))
    units = np.array([game.players for game in games])
    print(
        f"{options.model}, {len(games)} texts of {units.min()} to {units.max()} units (median "
        f"{np.median(units):g}), {options.game}, gradient {options.gradient}, "
        f"{options.coalitions} coalitions\n"
    )
    print("| | texts | Spearman | Pearson | relative error | worths asked | milliseconds |")
    print("|---|---|---|---|---|---|---|")
    for way in ways(options.coalitions):
        print(_row(way, games))


def _row(way: Way, games: list[AttentionGame]) -> str:
    rows = []
    for number, game in enumerate(games):
        if game.players < 3 or (way.most is not None and game.players > way.most):
            continue
        counted, start = Counted(game), time.perf_counter()
        found = way.solve(counted, game.players, np.random.default_rng(number))
        spent = time.perf_counter() - start
        exact = game.shapley()
        error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
        ranks = spearmanr(found, exact).statistic
        rows.append((ranks, np.corrcoef(found, exact)[0, 1], error, counted.asked, 1e3 * spent))
    if not rows:
        return f"| {way.name} | 0 | | | | | |"
    rank, line, error, asked, spent = np.median(np.array(rows), axis=0)
    return (
        f"| {way.name} | {len(rows)} | {rank:.3f} | {line:.3f} | {error:.2g} | {asked:.0f} | "
        f"{spent:.2g} |"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="piste:reviews")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--split")
    parser.add_argument("--texts", type=int, default=50)
    parser.add_argument("--game", default="max_mutual")
    parser.add_argument("--gradient", default="relu")
    parser.add_argument("--coalitions", type=int, default=100)
    return parser.parse_args()


def _texts(options: argparse.Namespace) -> list[str]:
    if options.data is None:
        lines = (Path(__file__).parent / "reviews.txt").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.strip()][: options.texts]
    return [
        one.text for one in read_data(options.data, split=options.split, examples=options.texts)
    ]


if __name__ == "__main__":
    main()
