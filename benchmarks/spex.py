"""SPEX's protocol: R² on uniform masks at 1,000 questions, by the length of the text.

    python -m benchmarks.spex --data imdb.parquet --models piste:reviews FOLDER …
        --folder RESULTS [--texts 5] [--methods NAME …] [--tables] [--out docs/results/spex.md]

Data is a Parquet file with the columns text and split; a model is anything that piste.load takes.
A test question keeps each word with probability 1/2. Every method has the same number of
questions, its held-out ones included, and is judged by the same test questions, which no method
is fitted to. Every result is added to RESULTS/spex.jsonl at once, and what is there is not measured
again: a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas

import piste
from piste.engine import Engine
from piste.errors import PisteError
from piste.explanation import r_squared
from piste.target import resolve
from piste.types import Flags, Floats

GROUPS = {"32–61": (32, 61), "65–127": (65, 127), "129–253": (129, 253), "259–431": (259, 431)}
"""Numbers of words, by white space, as in the paper."""
METHODS = ("slalom", "lime", "contextcite", "faith_banzhaf", "proxyspex", "spex")
PUBLISHED = {
    "LIME, a DistilBERT, as published": (0.66, 0.61, 0.56, 0.46),
    "SPEX, a DistilBERT, as published": (0.64, 0.42, 0.27, 0.16),
}
"""From Kang et al., 2025."""
QUESTIONS, TESTS = 1000, 500


class Referee:
    """Test questions of one text, asked once and used for every method."""

    def __init__(self, classifier: piste.Classifier, text: str) -> None:
        subject = classifier.subject(text, long="truncate")
        engine, rng = Engine(classifier), np.random.default_rng(20_250)
        masks: Flags = rng.random((TESTS, len(subject))) < 0.5
        self.masks = masks[masks.any(axis=1)]
        whole = engine.ask([(subject, [subject.whole])])[0]
        target = resolve(None, whole[0], classifier.labels, classifier.kind)
        questions = [np.nonzero(row)[0] for row in self.masks]
        self.answers: Floats = target(engine.ask([(subject, questions)])[0])

    def r2(self, e: piste.Explanation) -> float:
        """R² of what an explanation predicts."""
        return r_squared(np.asarray(e.predict(self.masks)), self.answers)


def texts_of(data: Path, group: str, count: int) -> list[tuple[int, str]]:
    """Texts of a group with their row numbers, drawn once and for all."""
    table: Any = pandas.read_parquet(data)
    table = table[table["split"] == "test"]
    words = table["text"].str.split().str.len()
    low, high = GROUPS[group]
    drawn = table[(words >= low) & (words <= high)].sample(count, random_state=0)
    return [(int(str(number)), str(text)) for number, text in drawn["text"].items()]


def measure(options: argparse.Namespace, file: Path) -> None:
    """What is not measured yet, one text of every group after the other."""
    known = {tuple(row[key] for key in ("model", "group", "input", "method")) for row in rows(file)}
    texts = {group: texts_of(options.data, group, options.texts) for group in GROUPS}
    classifiers = {Path(name).name: piste.load(name) for name in options.models}
    referees: dict[tuple[str, int], Referee] = {}
    for place in range(options.texts):
        for method in options.methods:
            for model, classifier in classifiers.items():
                for group in GROUPS:
                    number, text = texts[group][place]
                    if (model, group, number, method) in known:
                        continue
                    row: dict[str, Any] = {
                        "model": model, "group": group, "input": number, "method": method,
                    }  # fmt: skip
                    try:
                        e = piste.explain(
                            classifier, text, method=method, samples=QUESTIONS, long="truncate"
                        )
                        if (model, number) not in referees:
                            referees[model, number] = Referee(classifier, text)
                        row["r2"] = referees[model, number].r2(e)
                        row["spread"] = float(referees[model, number].answers.std())
                        row |= {"units": len(e), "calls": e.calls, "seconds": e.seconds}
                    except PisteError as problem:
                        row["refused"] = str(problem)
                    with file.open("a", encoding="utf-8") as out:
                        out.write(json.dumps(row) + "\n")
                    logging.info("%s", row)


def rows(file: Path) -> list[dict[str, Any]]:
    """What was measured so far."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [json.loads(line) for line in lines]


def page(found: Sequence[dict[str, Any]], command: str) -> str:
    """The page with one table per model: median R², and how many texts and questions."""
    lines = [
        "# SPEX's protocol",
        "",
        f"Median R² on {TESTS} masks that keep each word with probability 1/2, at "
        f"{QUESTIONS:,} questions, by the number of words. In brackets the number of texts, and "
        "the mean number of questions asked. Texts are of IMDB's test split. The published rows "
        "are figures of Kang et al. (2025) for another model and are here for reference only.",
        "",
        f"    {command}",
    ]
    for model in dict.fromkeys(row["model"] for row in found):
        lines += ["", f"## {model}", "", "| method | " + " | ".join(GROUPS) + " |"]
        lines += ["|---|" + "---|" * len(GROUPS)]
        own = [row for row in found if row["model"] == model]
        for method in sorted({row["method"] for row in own}, key=_place):
            some = [row for row in own if row["method"] == method]
            lines.append(f"| `{method}` | " + " | ".join(_cell(some, one) for one in GROUPS) + " |")
            texts = {row["input"] for row in some if "r2" in row}
            same = [row for row in own if row["method"] == "slalom" and row["input"] in texts]
            if len(same) < sum(row["method"] == "slalom" for row in own):
                cells = " | ".join(_cell(same, one) for one in GROUPS)
                lines.append(f"| `slalom` on those texts | {cells} |")
        spreads = " | ".join(_spread(own, one) for one in GROUPS)
        lines.append(f"| standard deviation of the answers | {spreads} |")
        for name, figures in PUBLISHED.items():
            lines.append(f"| {name} | " + " | ".join(f"{one:.2f}" for one in figures) + " |")
    lines += [
        "",
        "Where the answers hardly differ (the last group of a model that is sure of long texts, "
        "see their median standard deviation), R² divides by almost nothing and says little.",
        "All test questions keep about half of the words: ContextCite and SPEX ask only such ones, "
        "SLALOM mostly smaller ones.",
        "",
        "`slalom` is Piste's default. `spex` is refitted as in the paper, which shapiq 1.4 leaves "
        "out. `faith_banzhaf` has more coefficients than questions from 42 units on, so it is not "
        "determined there, and it refuses more than 100 units.",
    ]
    return "\n".join(lines) + "\n"


def _place(method: str) -> int:
    return METHODS.index(method) if method in METHODS else len(METHODS)


def _spread(found: Sequence[dict[str, Any]], group: str) -> str:
    by_text = {
        row["input"]: row["spread"] for row in found if row["group"] == group and "spread" in row
    }
    return f"{np.median(list(by_text.values())):.2f}" if by_text else "not measured"


def _cell(found: Sequence[dict[str, Any]], group: str) -> str:
    own = [row for row in found if row["group"] == group]
    measured = [row for row in own if "r2" in row]
    if not measured:
        return "refused" if own else "not measured"
    middle = np.median([row["r2"] for row in measured])
    calls = np.mean([row["calls"] for row in measured])
    return f"{middle:.2f} ({len(measured)}; {calls:.0f})".replace("-", "−")


def main() -> None:
    """Measure what is missing and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--tables", action="store_true", help="measure nothing")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / "spex.jsonl"
    if not options.tables:
        measure(options, file)
    models = " ".join(name if ":" in name else Path(name).name for name in options.models)
    command = (
        f"python -m benchmarks.spex --data {options.data.name} --models {models} "
        f"--folder spex --texts {options.texts}"
    )
    text = page(rows(file), command)
    print(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
