"""What limits a surrogate that knows which units are there, but not in which order.

    python -m benchmarks.limits [--model piste:reviews ...] [--data imdb.parquet] [--reviews 12]

Removals of every size are asked as they are and with their units in three random orders. The share
of the answers' variance that lies between orders of the same units is out of reach of any function
of the counts, if texts came in any order; real removals keep it, so it is an indication. The other
column is the share of answers that lie within 2 % of the range's ends: on a plateau.

With --more instead: what more questions gain, beside the exact effects of single removals added up
(occlusion). What ten times the questions leave is what the form of the surrogate can't hold.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import piste
from benchmarks.defaults import reviews
from piste.evaluation import Fidelity, judge
from piste.slalom import sampling
from piste.target import resolve

ORDERS = 3
MORE: dict[str, dict[str, Any]] = {
    "default": {},
    "slopes, 500 questions": {"samples": 500},
    "slopes, 1,500 questions": {"samples": 1500},
    "no slopes, 3,000 questions": {"samples": 3000, "slopes": False},
    "occlusion": {"method": "occlusion"},
    "nothing changes": {"method": "zero"},
}


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


def more(model: str, texts: list[str]) -> None:
    """Print the error of few removals and R² with more and more questions."""
    classifier = piste.load(model)
    print(
        f"\n| {model}, {len(texts)} reviews | error, 1–5 removed | R², all sizes |\n|---|---|---|"
    )
    for name, options in MORE.items():
        explained = [piste.explain(classifier, text, long="truncate", **options) for text in texts]
        rows = judge(classifier, explained, [Fidelity(per_size=20, all_sizes=200)], progress=False)
        few, every = (
            np.median([row.figures[figure] for row in rows]) for figure in ("mse_few", "r2_all")
        )
        print(f"| {name} | {few:.4f} | {every:.2f} |".replace("-", "−"), flush=True)


def main() -> None:
    """Print the table, medians over reviews."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", nargs="+", default=["piste:reviews", "piste:reviews-gpt"])
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--reviews", type=int, default=6)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--more", action="store_true", help="what more questions gain")
    options = parser.parse_args()
    if options.more:
        for model in options.model:
            more(model, list(reviews(options.data, options.reviews)))
        return
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
