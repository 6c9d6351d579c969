"""Measures SLALOM's defaults and its peers on the panel of real models.

    python -m benchmarks.panel --data DATA --weights WEIGHTS --models FOLDER
        [--texts 20] [--peer-texts 8] [--only NAME …] [--methods NAME …]
        [--groups short middle long]
        [--set-aside] [--tables] [--out docs/results/panel.md]

DATA and WEIGHTS are the folders of data sets and pretrained encoders. Models that are missing in
FOLDER are fine-tuned first. Every result is added to FOLDER/results.jsonl at once, and what is
there is not measured again: a run that was stopped goes on. ``--tables`` only writes what is there.
Figures are medians over the texts; the last column is the mean difference of deletion curves on
the same texts, plus or minus two standard errors.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import piste
from benchmarks.panel.command import chosen, parser, places
from benchmarks.panel.inputs import GROUPS, inputs
from benchmarks.panel.judging import Trial
from benchmarks.panel.models import Model, Places
from benchmarks.panel.results import Results
from piste.classifiers import Classifier
from piste.errors import PisteError

METHODS: dict[str, dict[str, Any]] = {
    "default": {"method": "slalom"},
    "no pairs": {"method": "slalom", "pairs": False},
    "paper": {"method": "slalom", "form": "paper", "samples": 500},
    "lime": {"method": "lime", "samples": 500},
    "partition_shap": {"method": "partition_shap", "samples": 500},
    "attnlrp": {"method": "attnlrp"},
}
COLUMNS = (
    ("r2 value", "R² value"),
    ("r2 all", "R² all sizes"),
    ("r2 log", "R² log sizes"),
    ("r2 few", "R² 2–6 units"),
    ("deletion", "deletion, log-odds"),
    ("deletion p", "deletion, probability"),
    ("largest", "largest value"),
    ("range", "largest answer"),
    ("sure", "values beyond 2 errors"),
    ("cost", "full passes"),
    ("mixing", "mixing"),
    ("behind", "deletion, default less this one"),
)


def measure(
    model: Model, classifier: Classifier, where: Places, group: str, counts: dict[str, int],
    results: Results,
) -> None:  # fmt: skip
    """All methods on the inputs of a group, as far as they are not there yet."""
    for place, (number, given) in enumerate(inputs(model, where, group, max(counts.values()))):
        wanted = [
            name
            for name, count in counts.items()
            if place < count
            and not results.has(model=model.name, group=group, input=number, method=name)
        ]
        if not wanted:
            continue
        trial = Trial.of(classifier.subject(given, long="truncate"))
        for name in wanted:
            row = {"model": model.name, "group": group, "input": number, "method": name}
            try:
                e = piste.explain(classifier, given, long="truncate", **METHODS[name])
            except PisteError as problem:  # a black box has no attention to look at
                results.add(row | {"refused": str(problem)})
                continue
            results.add(row | {"units": len(e.units)} | trial.judge(e))


def tables(results: Results, names: Sequence[str]) -> str:
    """One table per group: medians over the inputs."""
    lines = []
    for group in GROUPS:
        rows = [row for row in results.rows if row["group"] == group and row["model"] in names]
        if not rows:
            continue
        lines.append(f"\n## {group} inputs\n")
        lines.append(
            "| model | method | inputs | units | " + " | ".join(n for _, n in COLUMNS) + " |"
        )
        lines.append("|" + "---|" * (len(COLUMNS) + 4))
        ours = {
            (row["model"], row["input"]): row["deletion"]
            for row in rows
            if row["method"] == "default"
        }
        for row in rows:  # on the same inputs
            own = ours.get((row["model"], row["input"]), np.nan)
            row["behind"] = (
                own - row.get("deletion", np.nan) if row["method"] != "default" else np.nan
            )
        for name in names:
            for method in METHODS:
                some = [
                    row
                    for row in rows
                    if row["model"] == name and row["method"] == method and "refused" not in row
                ]
                if some:
                    lines.append(_line(name, method, some))
    return "\n".join(lines)


def _line(name: str, method: str, rows: list[dict[str, Any]]) -> str:
    cells = [name, method, str(len(rows)), f"{np.median([row['units'] for row in rows]):.0f}"]
    for key, _ in COLUMNS:
        numbers = np.array([row.get(key, np.nan) for row in rows], dtype=np.float64)
        known = numbers[np.isfinite(numbers)]
        said = f"{np.median(known):.2f}" if len(known) else ""
        if key == "behind" and len(known) > 2:
            error = float(known.std(ddof=1)) / np.sqrt(len(known))
            said = f"{known.mean():+.2f} ± {2 * error:.2f}"
        cells.append(said.replace("-", "−"))
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Make what is missing, measure what is missing, write the tables."""
    command = parser(__doc__ or "", 20)
    command.add_argument("--peer-texts", type=int, default=8)
    command.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    command.add_argument("--groups", nargs="+", default=list(GROUPS), choices=list(GROUPS))
    command.add_argument("--set-aside", action="store_true", help="those models, and no others")
    command.add_argument("--tables", action="store_true", help="measure nothing")
    command.add_argument("--out", type=Path)
    options = command.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    results = Results(options.models / "results.jsonl")
    counts = dict.fromkeys(METHODS, options.peer_texts) | {"default": options.texts}
    counts = {name: counts[name] for name in options.methods}
    models = chosen(options, options.set_aside)
    for model in [] if options.tables else models:
        with torch.random.fork_rng(devices=[]):
            classifier = model.load(places(options))
        for group in options.groups:
            begun = time.perf_counter()
            measure(model, classifier, places(options), group, counts, results)
            spent = time.perf_counter() - begun
            logging.info("%s, %s: %.0f s", model.name, group, spent)
    text = tables(results, [model.name for model in models])
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
