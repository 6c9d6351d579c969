"""A long text in levels beside words at once: questions, time, and how well both predict.

    python -m benchmarks.levels FILE.parquet

FILE has a column ``text``; its rows are joined, a paragraph each, until there are enough words.
Both explanations have to predict the same answers: random subsets of the units of the last level,
of all sizes, which neither was fitted to.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import piste
from piste.data.tables import read_rows, table_files
from piste.explanation import r_squared
from piste.slalom import sampling

LEVELS = ["paragraphs", "sentences", "words"]
QUESTIONS = 100


def long_text(path: str, words: int, skipped: int = 0) -> str:
    """Rows of a file as paragraphs, until there are so many words."""
    texts: list[str] = []
    for number, row in enumerate(read_rows(table_files(path), ["text"])):
        if number < skipped:
            continue
        texts.append(" ".join(str(row.cells["text"]).replace("<br />", " ").split()))
        if sum(len(text.split()) for text in texts) >= words:
            break
    return "\n\n".join(texts)


def compared(classifier: Any, text: str, methods: Sequence[str], samples: int | None) -> None:
    """Print a row of the table for every method and way to cut."""
    for method in methods:
        made: dict[str, tuple[piste.Explanation, float]] = {}
        ways: dict[str, Any] = {"levels": LEVELS, "words": "words"}
        for name, units in ways.items():
            begun = time.process_time()
            e = piste.explain(
                classifier, text, units=units, method=method, samples=samples, long="windows"
            )
            made[name] = e, time.process_time() - begun
        mixed = made["levels"][0]
        subject = classifier.subject(text, units=mixed.settings["input"]["units"], long="windows")
        rng = np.random.default_rng(1)
        drawn = sampling.draw("mix", len(subject), QUESTIONS, rng, set(), subject.types)
        answers = mixed.target(subject.ask(drawn))
        for name, (e, seconds) in made.items():
            kept = np.array([_kept(e, mixed, one) for one in drawn])
            fidelity = r_squared(e.surrogate.predict(e.scores, kept), answers)
            print(
                f"| {method} | {name} | {len(e):,} | {e.calls:,} | {e.cost:,.0f} | {seconds:.0f} | "
                f"{e.fidelity.r2:.2f} | {fidelity:.2f} |",
                flush=True,
            )


def _kept(e: piste.Explanation, mixed: piste.Explanation, units: Any) -> Any:
    """How much of every unit of ``e`` is there, if these units of the last level are."""
    there = np.zeros(len(str(e.input)))
    for unit in units:
        there[mixed.units[unit].start : mixed.units[unit].end] += 1
    return np.array([there[unit.start : unit.end].mean() for unit in e.units])


def main() -> None:
    """The table, for the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--model", default="piste:reviews")
    parser.add_argument("--words", type=int, default=5000)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--methods", default="slalom")
    given = parser.parse_args()
    classifier = piste.load(given.model)
    text = long_text(given.file, given.words, given.skip)
    print(f"{len(text.split()):,} words")
    print("| method | units | number | calls | passes | CPU seconds | own R² | R² on the same |")
    print("|---|---|---|---|---|---|---|---|")
    compared(classifier, text, given.methods.split(","), given.samples)


if __name__ == "__main__":
    main()
