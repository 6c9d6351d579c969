"""Fidelity against seconds of Piste and its peers on the panel of real models.

    python -m benchmarks.frontier --data DATA --weights WEIGHTS --models FOLDER
        [--texts 4] [--only NAME …] [--families NAME …] [--group middle] [--threads 1]
        [--longest 60] [--tables] [--out docs/results]

DATA, WEIGHTS and FOLDER are those of benchmarks.panel. Everyone explains the same inputs, one
after the other on each, with several budgets, after a run on a few words to warm up. Peers run
twice: by their own library as its users call it, and through Piste where Piste wraps them; both
count. Explanations are judged by the same questions, outside the time that is measured. A budget
that would take more than ``--longest`` seconds, by the one before it, is left out. Groups without
inputs (SST-2 has only short ones) give way to short inputs.

Seconds are of the clock on ``--threads`` threads, or of the processor where the two differ by more
than 20 %, because something else ran. Every result is added to FOLDER/frontier.jsonl at once, and
what is there is not measured again. ``--out`` writes frontier.md and a figure for every model.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from benchmarks.frontier.contenders import Contender, Input, contenders
from benchmarks.frontier.page import write
from benchmarks.panel.command import chosen, parser, places
from benchmarks.panel.inputs import GROUPS, inputs
from benchmarks.panel.judging import Trial
from benchmarks.panel.models import Model
from benchmarks.panel.results import Results
from studies.peers import own_random_numbers

logger = logging.getLogger(__name__)
WARM = "A few words, so that everyone is warm before time is taken."
Row = dict[str, Any]


def timed(contender: Contender, given: Input) -> Row:
    """Seconds, and how faithful what it found is; a failure is a result, not the end of the run."""
    gc.collect()
    begun, processor = time.perf_counter(), time.process_time()
    try:
        with own_random_numbers():
            answer = contender.run(given)
    except Exception as problem:
        return {"refused": f"{type(problem).__name__}: {str(problem)[:200]}"}
    spent = {
        "clock": time.perf_counter() - begun,
        "processor": time.process_time() - processor,
        "calls": answer.calls,
    }
    return spent | given.trial.fidelity(answer.predict) | given.trial.deletion(answer.ranking)


def measure(
    model: Model, classifier: Any, some: Sequence[tuple[int, Any]], options: Any, results: Results,
) -> None:  # fmt: skip
    """All contenders on all inputs, as far as they are not there yet."""
    everyone = [
        one
        for one in contenders(classifier)
        if options.families is None or one.family in options.families
    ]
    warm = False
    for number, given in some:
        key: Row = {"model": model.name, "group": options.group, "input": number}
        left = [one for one in everyone if not results.has(**key, method=one.name)]
        if not left:
            continue
        if not warm:
            warm_up(classifier, WARM if isinstance(given, str) else given, everyone)
            warm = True
        subject = classifier.subject(given, long="truncate")
        own = Input(classifier, given, Trial.of(subject))
        own_rows = {row["method"]: row for row in results.rows if key.items() <= row.items()}
        for one in left:
            if _expected(one, everyone, own_rows) > options.longest:
                continue
            row = key | {"method": one.name, "family": one.family, "way": one.way}
            row |= {"budget": one.budget, "units": len(subject)} | timed(one, own)
            results.add(row)
            own_rows[one.name] = row
        logger.info("%s, input %s", model.name, number)


def warm_up(classifier: Any, given: Any, everyone: Sequence[Contender]) -> None:
    """Everyone once, with its smallest budget: libraries load, Piste calibrates its batches."""
    own = Input(classifier, given, Trial.of(classifier.subject(given, long="truncate")))
    done = set()
    for one in everyone:
        if (one.family, one.way) not in done:
            done.add((one.family, one.way))
            # What fails here fails again where it is recorded.
            with suppress(Exception), own_random_numbers():
                one.run(own)


def _expected(one: Contender, everyone: Sequence[Contender], rows: dict[str, Row]) -> float:
    """Seconds by the largest smaller budget that was measured; 0 if none was."""
    found = 0.0
    for other in everyone:
        row = rows.get(other.name, {})
        same = (other.family, other.way) == (one.family, one.way)
        if same and other.budget and one.budget and other.budget < one.budget and "clock" in row:
            found = row["processor"] * one.budget / other.budget
    return found


def main() -> None:
    """Measure what is missing, write tables and figures."""
    command = parser(__doc__ or "", 4)
    command.add_argument("--families", nargs="+")
    command.add_argument("--group", default="middle", choices=list(GROUPS))
    command.add_argument("--threads", type=int, default=1)
    command.add_argument("--longest", type=float, default=60.0)
    command.add_argument("--tables", action="store_true", help="measure nothing")
    command.add_argument("--out", type=Path)
    options = command.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    logger.setLevel(logging.INFO)
    torch.set_num_threads(options.threads)
    results, group = Results(options.models / "frontier.jsonl"), options.group
    models = chosen(options)
    with threadpool_limits(options.threads):
        for model in [] if options.tables else models:
            options.group = group
            some = list(inputs(model, places(options), group, options.texts))
            if not some:
                options.group = "short"
                some = list(inputs(model, places(options), "short", options.texts))
            with torch.random.fork_rng(devices=[]):
                classifier = model.load(places(options))
            measure(model, classifier, some, options, results)
    print(write(results.rows, [model.name for model in models], options.out))


if __name__ == "__main__":
    main()
