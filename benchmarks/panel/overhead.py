"""How much longer an explanation takes than its questions alone.

    python -m benchmarks.panel.overhead --data DATA --weights WEIGHTS --models FOLDER
        [--texts 5] [--group middle] [--only NAME …]

For every text the questions of the default are planned and asked by the engine alone, and then
the explanation is made; both in the same run, in turn. The table has medians over the texts.
"""

from __future__ import annotations

import time

import numpy as np

import piste
from benchmarks.panel.command import one_group
from piste.engine import Engine
from piste.methods import SlalomMethod, Task
from piste.subject import Subject
from piste.target import resolve


def asked_alone(subject: Subject) -> float:
    """Seconds for the questions of the default, with nothing before or after."""
    classifier = subject.classifier
    whole = Engine(classifier).ask([(subject, [subject.whole])])[0]
    target = resolve(None, whole[0], classifier.labels, classifier.kind)
    task = Task(subject, target, whole[0], np.random.default_rng(0))
    plan = SlalomMethod().plan(task)
    begun = time.perf_counter()
    Engine(classifier).ask([(subject, plan)])
    return time.perf_counter() - begun


def main() -> None:
    """Print one row per model."""
    _, cases = one_group(__doc__ or "", 5)
    print("| model | units | questions alone, s | explanation, s | ratio |\n|---|---|---|---|---|")
    for model, classifier, some in cases:
        rows = []
        for given in some:
            subject = classifier.subject(given, long="truncate")
            alone = asked_alone(subject)
            seconds = piste.explain(classifier, given, long="truncate").seconds
            rows.append((len(subject), alone, seconds, seconds / alone))
        units, alone, seconds, ratio = np.median(rows, axis=0)
        cells = f"{units:.0f} | {alone:.2f} | {seconds:.2f} | {ratio:.2f}"
        print(f"| {model.name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
