"""What limits a surrogate that knows which units are there, but not in which order.

    python -m benchmarks.limits [--model piste:reviews ...] [--data imdb.parquet] [--reviews 12]

Removals of every size are asked as they are and with their units in three random orders. The share
of the answers' variance that lies between orders of the same units is out of reach of any function
of the counts, if texts came in any order; real removals keep it, so it is an indication. The other
column is the share of answers that lie within 2 % of the range's ends: on a plateau.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import piste
from benchmarks.defaults import reviews
from piste.slalom import sampling
from piste.target import resolve

ORDERS = 3


def measure(classifier: piste.Classifier, text: str, questions: int) -> tuple[float, float, float]:
    """Shares of the variance by order, and of answers on a plateau; variance of few removals."""
    subject = classifier.subject(text)
    rng = np.random.default_rng(0)
    asked = sampling.draw("subsets", len(subject), questions, rng)
    few = sampling.draw("deletion", len(subject), questions, rng)
    mixed = [rng.permutation(one) for one in asked for _ in range(ORDERS)]
    logits = subject.ask([subject.whole, *asked, *few, *mixed])
    target = resolve(None, logits[0], classifier.labels, classifier.kind)
    numbers = target(logits)
    kept = numbers[1 : 1 + len(asked)]
    orders = numbers[-len(mixed) :].reshape(-1, ORDERS)
    low, high = numbers.min(), numbers.max()
    edge = 0.02 * (high - low)
    return (
        float(orders.var(axis=1, ddof=1).mean() / kept.var(ddof=1)),
        float(np.mean((kept < low + edge) | (kept > high - edge))),
        float(np.mean((numbers[1 + len(asked) : 1 + len(asked) + len(few)] - numbers[0]) ** 2)),
    )


def main() -> None:
    """Print the table, medians over reviews."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", nargs="+", default=["piste:reviews", "piste:reviews-gpt"])
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--reviews", type=int, default=6)
    parser.add_argument("--questions", type=int, default=60)
    options = parser.parse_args()
    print("| model | variance by order | answers on a plateau | squared change, 1–5 removed |")
    print("|---|---|---|---|")
    for model in options.model:
        classifier = piste.load(model)
        rows = [
            measure(classifier, text, options.questions)
            for text in reviews(options.data, options.reviews)
        ]
        order, plateau, few = np.median(rows, axis=0)
        print(f"| {model} | {order:.0%} | {plateau:.0%} | {few:.2g} |", flush=True)


if __name__ == "__main__":
    main()
