"""How long the solver takes and how much memory, over sizes and kinds of questions.

    python -m benchmarks.solver [--repeat 3] [--most 500]

Seconds are CPU seconds of one thread, the best of several runs; memory is the peak of a run of its
own. Dense questions are subsets of all sizes, short ones have 1 to 5 units and come sparse. The
truth is a SLALOM with a background, plus noise of a tenth of its spread.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from piste.slalom import Fit, Slalom, fit
from piste.slalom.scores import text_scores

Floats = NDArray[np.float64]

CASES = [
    (110, 450, "dense"),
    (110, 1000, "dense"),
    (150, 1000, "dense"),
    (200, 1000, "short"),
    (500, 10_000, "short"),
    (500, 10_000, "dense"),
    (3000, 200, "short"),
    (3000, 2000, "short"),
    (10_000, 2000, "short"),
    (5000, 20_000, "short"),
]


def problem(types: int, questions: int, kind: str) -> tuple[Any, Floats]:
    """Counts and outputs of one case."""
    rng = np.random.default_rng(0)
    counts: Any
    if kind == "dense":
        sizes = rng.integers(1, types + 1, (questions, 1))
        counts = (rng.random((questions, types)).argsort(axis=1) < sizes).astype(np.float64)
    else:
        lengths = rng.integers(1, 6, questions)
        rows = np.repeat(np.arange(questions), lengths)
        columns = rng.integers(0, types, len(rows))
        counts = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(questions, types))
    truth = Slalom(rng.normal(size=types), rng.normal(size=types), 2.0, 0.3)
    outputs = truth.predict(counts)
    return counts, outputs + 0.1 * outputs.std() * rng.normal(size=questions)


def seconds(run: Callable[[], object], repeat: int) -> float:
    """CPU seconds of the best run."""
    best = np.inf
    for _ in range(repeat):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def measure(types: int, questions: int, kind: str, repeat: int) -> str:
    """One row of the table."""
    counts, outputs = problem(types, questions, kind)
    text = np.arange(types)

    def fitted() -> Fit:
        return fit(counts, outputs, ridge="auto", background="auto")

    found = fitted()
    fit_time = seconds(fitted, repeat)
    score_time = seconds(lambda: text_scores(found.slalom, text, found), repeat)
    tracemalloc.start()
    text_scores(found.slalom, text, fitted())
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return (
        f"| {types:,} | {questions:,} | {kind} | {fit_time:.3f} | {score_time:.3f} "
        f"| {peak:,.0f} | {found.iterations} | {found.loss:.3g} |"
    )


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--most", type=int, default=10_000, help="leave out cases of more types")
    options = parser.parse_args()
    print("| types | questions | kind | s fit | s scores | peak MB | iterations | fit MSE |")
    print("|---|---|---|---|---|---|---|---|")
    with threadpool_limits(1):
        for types, questions, kind in CASES:
            if types <= options.most:
                print(measure(types, questions, kind, options.repeat), flush=True)


if __name__ == "__main__":
    main()
