"""Fidelity against seconds of Piste and its peers on the panel of real models.

    python -m benchmarks.frontier --data DATA --weights WEIGHTS --models FOLDER
        [--texts 4] [--only NAME …] [--families NAME …] [--group middle] [--threads 1]
        [--longest 60] [--tables] [--out docs/results]

DATA, WEIGHTS and FOLDER are those of benchmarks.panel. Everyone explains the same inputs, one
after the other on each, with several budgets, after a run on a few words to warm up; the first
input of every model comes before the second of any. Peers run
twice: by their own library as its users call it, and through Piste where Piste wraps them; both
count. Explanations are judged by the same questions, outside the time that is measured. A budget
that would take more than ``--longest`` seconds, by the one before it, is left out. Groups without
inputs (SST-2 has only short ones) give way to short inputs.

Seconds are of the clock on ``--threads`` threads, or of the processor where the two differ by more
than 20 %, because something else ran. Every result is added to FOLDER/frontier.jsonl at once, and
what is there is not measured again. ``--out`` writes frontier.md and a figure for every model.
"""

from __future__ import annotations

import argparse
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


class Course:
    """One model of the panel, warm, with the inputs that everyone explains."""

    def __init__(self, model: Model, options: argparse.Namespace) -> None:
        where = places(options)
        self.model, self.options, self.group = model, options, options.group
        self.inputs = list(inputs(model, where, self.group, options.texts))
        if not self.inputs:
            self.group = "short"
            self.inputs = list(inputs(model, where, self.group, options.texts))
        with torch.random.fork_rng(devices=[]):
            self.classifier: Any = model.load(where)
        self.everyone = [
            one
            for one in contenders(self.classifier)
            if options.families is None or one.family in options.families
        ]
        self._warm = False

    def measure(self, place: int, results: Results) -> None:
        """All contenders on one input, as far as they are not there yet."""
        if place >= len(self.inputs):
            return
        number, given = self.inputs[place]
        key: Row = {"model": self.model.name, "group": self.group, "input": number}
        left = [one for one in self.everyone if not results.has(**key, method=one.name)]
        if not left:
            return
        if not self._warm:
            warm_up(self.classifier, WARM if isinstance(given, str) else given, left)
            self._warm = True
        subject = self.classifier.subject(given, long="truncate")
        own = Input(self.classifier, given, Trial.of(subject))
        rows = {row["method"]: row for row in results.rows if key.items() <= row.items()}
        for one in left:
            if _expected(one, self.everyone, rows) > self.options.longest:
                continue
            row = key | {"method": one.name, "family": one.family, "way": one.way}
            row |= {"budget": one.budget, "units": len(subject)} | timed(one, own)
            results.add(row)
            rows[one.name] = row
        logger.info("%s, input %s", self.model.name, number)


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
    results = Results(options.models / "frontier.jsonl")
    models = chosen(options)
    with threadpool_limits(options.threads):
        courses = [] if options.tables else [Course(model, options) for model in models]
        for place in range(options.texts):
            for course in courses:
                course.measure(place, results)
    print(write(results.rows, [model.name for model in models], options.out))


if __name__ == "__main__":
    main()
