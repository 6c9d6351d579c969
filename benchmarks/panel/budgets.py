"""What fewer questions say.

    python -m benchmarks.panel.budgets --data DATA --weights WEIGHTS --models FOLDER
        [--texts 8] [--group middle] [--only NAME …]

Every text is explained with several numbers of questions, by the default and with units alone at
any number (``sampler="log"``). Figures are medians over the texts of R² over all sizes, log sizes
and single units; seconds are of the processor.
"""

from __future__ import annotations

import time

import numpy as np

import piste
from benchmarks.panel.command import one_group
from benchmarks.panel.judging import Trial

BUDGETS = (30, 60, 120, 250, None)
SAMPLERS = (None, "log")
KINDS = ("r2 all", "r2 log", "r2 one")


def main() -> None:
    """Print one table per model."""
    _, cases = one_group(__doc__ or "", 8)
    for model, classifier, some in cases:
        rows: dict[tuple[int | None, str | None], list[list[float]]] = {}
        piste.explain(classifier, some[0], long="truncate")  # batches are sized, memory is there
        for given in some:
            trial = Trial.of(classifier.subject(given, long="truncate"))
            for budget in BUDGETS:
                for sampler in SAMPLERS:
                    begun = time.process_time()
                    e = piste.explain(
                        classifier, given, long="truncate", samples=budget, sampler=sampler
                    )
                    spent = time.process_time() - begun
                    found = trial.fidelity(lambda masks: np.asarray(e.predict(masks)))  # noqa: B023
                    figures = [found[kind] for kind in KINDS]
                    rows.setdefault((budget, sampler), []).append([spent, *figures])
        print(f"\n## {model.name}\n\n| questions | sampler | seconds | R² all | log | single |")
        print("|---|---|---|---|---|---|")
        for (budget, sampler), found in rows.items():
            cells = " | ".join(f"{number:.2f}" for number in np.median(found, axis=0))
            print(f"| {budget or 'default'} | {sampler or 'default'} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
