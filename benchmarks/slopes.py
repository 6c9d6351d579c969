"""What slopes cost: the same questions answered with and without them, in turns.

    python -m benchmarks.slopes [--model piste:reviews ...] [--data imdb.parquet]

Prints the seconds of both, best of several turns, their ratio, and how far the answers differ.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import piste
from benchmarks.defaults import reviews
from piste.engine import Engine
from piste.slalom import sampling
from piste.target import resolve


def measure(model: str, text: str, questions: int, turns: int) -> str:
    """One row of the table."""
    classifier = piste.load(model)
    subject = classifier.subject(text)
    reason = classifier.why_no_slopes(subject)
    if reason is not None:
        return f"| {model} | {len(subject)} | no slopes: {reason} | | | |"
    rng = np.random.default_rng(0)
    asked = sampling.draw("subsets", len(subject), questions, rng)
    target = resolve(0, np.zeros(len(classifier.labels)), classifier.labels, classifier.kind)
    plain, steep, answers, sloped = [], [], np.empty(0), np.empty(0)
    for _ in range(turns + 1):  # the first one warms up
        engine = Engine(classifier)
        start = time.perf_counter()
        (answers,) = engine.ask([(subject, asked)])
        plain.append(time.perf_counter() - start)
        engine = Engine(classifier)
        start = time.perf_counter()
        sloped, _ = engine.ask_slopes(subject, asked, target)
        steep.append(time.perf_counter() - start)
    without, with_them = min(plain[1:]), min(steep[1:])
    difference = float(np.abs(answers - sloped).max())
    return (
        f"| {model} | {len(subject)} | {without:.2f} | {with_them:.2f} "
        f"| {with_them / without:.2f} | {difference:.1e} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", nargs="+", default=["piste:reviews", "piste:reviews-gpt"])
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--questions", type=int, default=128)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    text = reviews(options.data, 1)[0]
    print("| model | units | answers, s | with slopes, s | ratio | largest difference |")
    print("|---|---|---|---|---|---|")
    for model in options.model:
        print(measure(model, text, options.questions, options.turns), flush=True)


if __name__ == "__main__":
    main()
