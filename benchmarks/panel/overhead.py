"""How much longer an explanation takes than its questions alone.

    python -m benchmarks.panel.overhead --data DATA --weights WEIGHTS --models FOLDER
        [--texts 5] [--group middle] [--only NAME …]

For every text the questions of the default are planned and asked by the engine alone, and then
the explanation is made; both in the same run, in turn. The table has medians over the texts.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import piste
from benchmarks.panel.inputs import GROUPS, inputs
from benchmarks.panel.models import PANEL, Places
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=5)
    parser.add_argument("--group", default="middle", choices=list(GROUPS))
    parser.add_argument("--only", nargs="+")
    options = parser.parse_args()
    places = Places(options.data, options.weights, options.models)
    print("| model | units | questions alone, s | explanation, s | ratio |\n|---|---|---|---|---|")
    for model in PANEL:
        if model.set_aside or (options.only and model.name not in options.only):
            continue
        classifier, rows = model.load(places), []
        for _, given in inputs(model, places, options.group, options.texts):
            subject = classifier.subject(given, long="truncate")
            alone = asked_alone(subject)
            seconds = piste.explain(classifier, given, long="truncate").seconds
            rows.append((len(subject), alone, seconds, seconds / alone))
        if rows:
            units, alone, seconds, ratio = np.median(rows, axis=0)
            cells = f"{units:.0f} | {alone:.2f} | {seconds:.2f} | {ratio:.2f}"
            print(f"| {model.name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
