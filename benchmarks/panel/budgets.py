"""What fewer questions say.

    python -m benchmarks.panel.budgets --data DATA --weights WEIGHTS --models FOLDER
        [--texts 8] [--group middle] [--only NAME …]

Every text is explained with several numbers of questions, with and without a guide (a gradient that
evidence is expected to follow). Figures are medians over the texts: R² over all sizes, log sizes
and single units, the deletion curve of the probability, the share of units whose answer alone lies
within two standard errors of their value, and the R² that the explanation says of itself. Seconds
are of the processor.
"""

from __future__ import annotations

import time

import numpy as np

import piste
from benchmarks.panel.command import one_group
from benchmarks.panel.judging import Trial
from piste.subject import Sequence1D

BUDGETS = (6, 15, 30, 60, 120)
KINDS = ("r2 all", "r2 log", "r2 one")


def single(trial: Trial) -> list[Sequence1D]:
    """Every unit alone."""
    return [[unit] for unit in range(len(trial.subject))]


def main() -> None:
    """Print one table per model."""
    _, cases = one_group(__doc__ or "", 8)
    for model, classifier, some in cases:
        rows: dict[tuple[int, bool], list[list[float]]] = {}
        piste.explain(classifier, some[0], long="truncate")  # batches are sized, memory is there
        for given in some:
            trial = Trial.of(classifier.subject(given, long="truncate"))
            alone = trial.target(trial.engine.ask([(trial.subject, single(trial))])[0])
            for budget in BUDGETS:
                for guide in (False, True):
                    begun = time.process_time()
                    e = piste.explain(
                        classifier, given, long="truncate", samples=budget, guide=guide
                    )
                    spent = time.process_time() - begun
                    found = trial.fidelity(lambda masks: np.asarray(e.predict(masks)))  # noqa: B023
                    missed = np.abs(alone - e.scores["value"])
                    covered = float((missed < 2 * e.errors["value"]).mean())
                    fall = trial.deletion(e.score())["deletion p"]
                    figures = [*(found[kind] for kind in KINDS), fall, covered, e.fidelity.r2]
                    rows.setdefault((budget, guide), []).append([spent, *figures])
        print(f"\n## {model.name}\n")
        print(
            "| questions | guide | seconds | R² all | log | single | deletion | covered | own R² |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        for (budget, guide), every in rows.items():
            cells = " | ".join(f"{number:.2f}" for number in np.median(every, axis=0))
            print(f"| {budget} | {'yes' if guide else 'no'} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
