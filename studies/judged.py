"""Explanations of real classifiers, judged: what the studies on reviews share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import piste
from piste import zoo
from piste.classifiers import Classifier
from piste.evaluation import Example, Interval, evaluate, interval
from piste.show.figures.canvas import panels
from studies.base import Table, Work, graded, shown
from studies.cases import AS_PUBLISHED as _AS_PUBLISHED
from studies.finetuning import Training, accuracy, fine_tune
from studies.reviews import LABELS, balanced

Found = Mapping[str, Any]
"""Of every row: the figures of every method, a list over its texts each, and what else is known."""

AS_PUBLISHED = f"slalom[{','.join(f'{k}={v}' for k, v in _AS_PUBLISHED.items())}]"
"""SLALOM as published, as the name of a method."""
COLUMNS: Mapping[str, str] = {
    "values": "slalom:value",
    "contributions": "slalom",
    "values, paper": f"{AS_PUBLISHED}:value",
    "importances, paper": f"{AS_PUBLISHED}:importance",
    "lin., paper": AS_PUBLISHED,
    "LIME": "lime",
    "SHAP": "kernel_shap",
    "IG": "integrated_gradients",
    "Grad": "gradient",
}
"""Methods by column: the first two are Piste's default, *paper* is SLALOM as published.

Importances of the default are left out: they are all 0 where it finds that words add up.
"""
_TEXTS = 6000
_TRAINING = Training(tokens=160, rate=3e-4, size=16)
_BUNDLED = {"encoder": "piste:reviews", "decoder": "piste:reviews-gpt"}


def readers(work: Work, data: str) -> dict[str, Callable[[], Classifier]]:
    """Classifiers of the reviews in a data file: the bundled ones, and those in ``--weights``.

    The bundled ones know IMDB; for anything else all are fine-tuned first. A quick run takes the
    bundled ones as they are.
    """
    bundled: dict[str, Callable[[], Classifier]] = {
        name: partial(piste.load, source) for name, source in _BUNDLED.items()
    }
    if work.quick:
        return bundled
    path = work.need(f"{data}.parquet", "data")
    starts = {folder.name: folder for folder in _pretrained(work.weights)}
    if data != "imdb":
        starts = {name: zoo.folder(source) for name, source in _BUNDLED.items()} | starts
    made = {name: partial(_fine_tuned, work, path, name, start) for name, start in starts.items()}
    return bundled | made


def _pretrained(weights: Path | None) -> list[Path]:
    """Folders with a model of texts."""
    if weights is None:
        return []
    return sorted(config.parent for config in weights.glob("*/config.json") if _reads_texts(config))


def _reads_texts(config: Path) -> bool:
    tokenizer = ("tokenizer.json", "vocab.txt", "tokenizer.model")
    return any((config.parent / name).is_file() for name in tokenizer)


def _fine_tuned(work: Work, path: Path, name: str, start: Path) -> Classifier:
    training = replace(_TRAINING, seed=work.seed)
    own = work.models / f"{path.stem}-{name}-{_TEXTS}-{training.name}"
    examples = balanced(path, "train", _TEXTS, work.seed)
    return fine_tune(start, examples, LABELS, own, **vars(training))


def tested(work: Work, classifier: Classifier, path: Path) -> float:
    """Accuracy on 2,000 texts of the test split."""
    return accuracy(classifier, balanced(path, "test", 2000, work.seed))


def judge(
    work: Work,
    key: str,
    classifier: Classifier,
    examples: Sequence[Example],
    columns: Sequence[str],
    metrics: str,
    samples: int | None,
    labelled: Sequence[Example] | None = None,
) -> dict[str, Any]:
    """The figures of every column's method, by text; a run that was stopped goes on within it."""
    results = evaluate(
        classifier,
        examples,
        methods=[COLUMNS[column] for column in columns],
        metrics=metrics.split(","),
        examples=None,
        samples=samples,
        seed=work.seed,
        folder=work.folder / "runs" / re.sub(r"\W+", "-", f"{key} {work.seed}"),
        progress=False,
        labelled=labelled,
    )
    found: dict[str, Any] = {}
    for column in columns:
        method = COLUMNS[column]
        found[column] = {}
        for figure in results.figures:
            values = results.values(method, figure)
            found[column][figure] = [values.get(example) for example in results.examples]
    problems = results.problems()
    return found | ({"problems": json.loads(json.dumps(problems))} if problems else {})


def average(row: Mapping[str, Any], column: str, figure: str) -> Interval:
    """Mean and interval over texts."""
    return interval(_numbers(row[column][figure]))


def lead(
    found: Found, column: str, other: str, figure: str, rows: Sequence[str] | None = None
) -> Interval:
    """By how much a column is above another, on the same texts of all rows."""
    gaps = [
        _numbers(found[row][column][figure]) - _numbers(found[row][other][figure])
        for row in (found if rows is None else rows)
    ]
    return interval(np.concatenate(gaps))


def verdict(leads: Sequence[Interval]) -> str:
    """Whether something is ahead of everything else: clearly, on average, or not."""
    return graded(all(one.low > 0 for one in leads), any(one.centre > 0 for one in leads))


def table(
    title: str,
    found: Found,
    figure: str,
    columns: Sequence[str],
    paper: Mapping[str, Sequence[str]],
    digits: int = 2,
) -> Table:
    """Ours by row, and the paper's rows below; theirs have a cell for every column."""
    rows = [
        (row, *(shown(average(one, column, figure), digits) for column in columns))
        for row, one in found.items()
    ]
    rows += [(f"*paper: {row}*", *cells) for row, cells in paper.items()]
    return Table(title, ("", *columns), rows)


def draw(found: Found, figure: str, columns: Sequence[str], name: str) -> Figure:
    """One panel per row, a bar with its interval per column."""
    rows = list(found)
    across = min(len(rows), 3)
    down = -(-len(rows) // across)
    drawn, axes = panels((3.7 * across, 0.6 + 0.34 * len(columns) * down), down, across)
    places = np.arange(len(columns))[::-1]
    for number, own in enumerate(own for line in axes for own in line):
        if number >= len(rows):
            own.set_visible(False)
            continue
        averages = [average(found[rows[number]], column, figure) for column in columns]
        centres = np.array([one.centre for one in averages])
        bounds = np.array([[one.low, one.high] for one in averages]).T
        own.errorbar(centres, places, xerr=np.abs(bounds - centres), fmt="o", capsize=2)
        first = number % across == 0
        own.set_yticks(places, columns if first else [""] * len(columns), fontsize=8)
        own.set_title(rows[number], loc="left", fontsize=9)
        own.set_xlabel(name, fontsize=8)
    return drawn


def _numbers(values: Sequence[float | None]) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=float)
