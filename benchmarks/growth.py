"""How the cost of an explanation grows with text, calls, depth and number of documents.

    python -m benchmarks.growth [--data imdb.parquet]

One thing changes per table; everything else stays. Without --data the reviews in
benchmarks/reviews.txt are used, again and again with their words in another order.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import piste
from benchmarks.speed.measuring import clocks
from benchmarks.texts import reviews
from studies.cases import encoder
from studies.timing import peak_memory, recorded

HEAD = (
    "| {} | seconds | ms per call | ms per 100 tokens | forward, % | plan + solve, % "
    "| asked | peak MB |\n|---|---|---|---|---|---|---|---|"
)


def measured(label: Any, classifier: Any, texts: Any, **options: Any) -> None:
    """One line: explain once to warm up, once to count, once to time."""
    piste.explain(classifier, texts if isinstance(texts, str) else texts[0], samples=40)
    with recorded() as asked:
        piste.explain(classifier, texts, **options)
    with clocks() as spent, peak_memory() as peak:
        begun = time.perf_counter()
        piste.explain(classifier, texts, **options)
        seconds = time.perf_counter() - begun
    tokens = sum(question.length for question in asked)
    print(
        f"| {label} | {seconds:.2f} | {1000 * seconds / len(asked):.2f} "
        f"| {1e5 * seconds / tokens:.1f} | {100 * spent['forward'] / seconds:.0f} "
        f"| {100 * (spent['plan'] + spent['solve']) / seconds:.0f} "
        f"| {len(asked):,} | {peak[0]:.0f} |",
        flush=True,
    )


def many_documents(data: Path | None) -> list[str]:
    """Real reviews, or our own with shuffled words."""
    texts = reviews(data, 100)
    rng = np.random.default_rng(0)
    while len(texts) < 100:
        words = texts[int(rng.integers(len(texts)))].split()
        texts.append(" ".join(rng.permutation(words)))
    return texts


def main() -> None:
    """Print four tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=None)
    options = parser.parse_args()
    print("\nText length: BERT, 6 layers, 768 wide, 200 calls\n")
    print(HEAD.format("tokens"))
    for tokens in (50, 100, 200, 400):
        case = encoder(tokens)
        measured(tokens, case.classifier, case.texts[0], samples=200)
    print("\nModel depth: 100 tokens, 200 calls\n")
    print(HEAD.format("layers"))
    for layers in (2, 4, 8, 12):
        case = encoder(100, layers)
        measured(layers, case.classifier, case.texts[0], samples=200)
    texts = many_documents(options.data)
    classifier = piste.load("piste:reviews")
    print("\nCalls: piste:reviews, one review\n")
    print(HEAD.format("calls"))
    for calls in (250, 1000, 4000, 16000):
        measured(f"{calls:,}", classifier, texts[0], samples=calls)
    print("\nDocuments: piste:reviews, 300 calls each\n")
    print(HEAD.format("documents"))
    for count in (1, 10, 100):
        measured(count, classifier, texts[:count], samples=300)
    print("\nDocuments: the same, by the paper's form\n")
    print(HEAD.format("documents"))
    for count in (1, 10, 100):
        measured(count, classifier, texts[:count], samples=300, form="paper")


if __name__ == "__main__":
    main()
