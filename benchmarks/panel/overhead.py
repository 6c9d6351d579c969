"""How much longer an explanation takes than its questions alone, and than bare passes.

    python -m benchmarks.panel.overhead --data DATA --weights WEIGHTS --models FOLDER
        [--texts 5] [--group middle] [--only NAME …]

For every text the questions of the default are planned, given to the model in bare passes, sorted
by length and in batches of the size that turns out to be the fastest, asked by the engine alone,
and then explained; all in the same run, in turn. The table has medians over the texts. ``padding``
is what is added to the tokens in those batches: as much as packing several questions into a row
could save. A second table says where the time of an explanation goes, in ms of the processor.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

import piste
from benchmarks.panel.command import one_group
from benchmarks.parts import NAMES, parts
from piste.engine import Engine
from piste.methods import SlalomMethod, Task
from piste.subject import Sequence1D, Subject
from piste.target import resolve

BATCHES = (8, 16, 32, 64, 128)


def planned(subject: Subject) -> list[Sequence1D]:
    """The questions of the default."""
    classifier = subject.classifier
    whole = Engine(classifier).ask([(subject, [subject.whole])])[0]
    target = resolve(None, whole[0], classifier.labels, classifier.kind)
    task = Task(subject, target, whole[0], np.random.default_rng(0))
    return SlalomMethod().plan(task)


def bare(subject: Subject, plan: list[Sequence1D]) -> tuple[float, float]:
    """Seconds of the model's own passes at the best of several batch sizes, and their padding."""
    rows = {one.key: one.payload[0] for parts in subject.encode_all(plan) for one, _ in parts}
    classifier: Any = subject.classifier
    ordered = sorted((torch.from_numpy(row) for row in rows.values()), key=len)
    found = []
    for size in BATCHES:
        batches = []
        for start in range(0, len(ordered), size):
            ids = pad_sequence(ordered[start : start + size], batch_first=True)
            lengths = torch.tensor([len(row) for row in ordered[start : start + size]])
            batches.append((ids, (torch.arange(ids.shape[1]) < lengths[:, None]).long()))
        with torch.inference_mode():
            begun = time.perf_counter()
            for ids, mask in batches:
                classifier.model(input_ids=ids, attention_mask=mask)
            seconds = time.perf_counter() - begun
        tokens = sum(int(mask.sum()) for _, mask in batches)
        found.append((seconds, sum(ids.numel() for ids, _ in batches) / tokens - 1))
    return min(found)


def asked_alone(subject: Subject, plan: list[Sequence1D]) -> float:
    """Seconds of the engine, with nothing before or after."""
    begun = time.perf_counter()
    Engine(subject.classifier).ask([(subject, plan)])
    return time.perf_counter() - begun


def main() -> None:
    """Print one row per model, and where the time of its explanations goes."""
    _, cases = one_group(__doc__ or "", 5)
    where = []
    print(
        "| model | units | bare passes, s | padding | questions, s | explanation, s | "
        "explanation ÷ questions | explanation ÷ bare |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for model, classifier, some in cases:
        rows = []
        piste.explain(classifier, some[0], long="truncate")  # batches are sized, memory is there
        spent = dict.fromkeys(NAMES, 0.0)
        for given in some:
            subject = classifier.subject(given, long="truncate")
            plan = planned(subject)
            passes, padding = bare(subject, plan)
            alone = asked_alone(subject, plan)
            with parts(classifier) as found:
                seconds = piste.explain(classifier, given, long="truncate").seconds
            for name, own in found.milliseconds({}, len(some)).items():
                spent[name] += own
            times = (passes, padding, alone, seconds, seconds / alone, seconds / passes)
            rows.append((len(subject), *times))
        where.append((model.name, spent))
        units, passes, padding, *rest = np.median(rows, axis=0)
        cells = " | ".join(f"{number:.2f}" for number in rest)
        print(
            f"| {model.name} | {units:.0f} | {passes:.2f} | {padding:.0%} | {cells} |", flush=True
        )
    named = [name for name in NAMES if any(spent[name] for _, spent in where)]
    print(f"\n| model | {' | '.join(named)} |\n|---|{'---|' * len(named)}")
    for model_name, spent in where:
        print(f"| {model_name} | {' | '.join(f'{spent[name]:.0f}' for name in named)} |")


if __name__ == "__main__":
    main()
