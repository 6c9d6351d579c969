"""Results of all kinds in one folder, small, with texts that would like to do harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import piste
from piste import corpus
from piste.concepts.report import ConceptReport, ConceptScore
from piste.target import Target
from piste.vocabulary import fit_vocabulary

SCRIPT = "A dull <script>alert('x')</script> film."
QUOTES = 'It\'s "lovely"; DROP TABLE documents; -- 100% fine_'
ROWS = [
    {"text": "A slow start, but a wonderful ending.", "label": "positive", "to<pic>": "a"},
    {"text": SCRIPT, "label": "negative", "to<pic>": "<b>b</b>"},
    {"text": "", "label": "negative", "to<pic>": "c"},
    {"text": QUOTES, "label": "negative", "to<pic>": 'd "e"'},
    {"text": "What a STUPID mess.", "label": "negative", "to<pic>": None},
    {"text": "Superb photography, clever story. " * 12, "label": "positive", "to<pic>": "f"},
    {"text": "I would not watch it again.", "label": "positive", "to<pic>": "g"},
]


def make_run(folder: Path, model: Any) -> Path:
    """A run of several parts, with a row that was refused."""
    source = folder / "rows.jsonl"
    source.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    keep = corpus.Columns(keep=("label", "to<pic>"))
    options: dict[str, Any] = {"samples": 20, "block": 3, "progress": False}
    corpus.run(source, model, folder / "some run", columns=keep, **options)
    return folder / "some run"


def make_vocabulary(path: Path, model: Any) -> Path:
    texts = [str(row["text"]) for row in ROWS if row["text"]] * 2
    fit_vocabulary(model, [model.subject(text) for text in texts]).to_parquet(path)
    return path


def make_concepts(path: Path) -> Path:
    """By hand: what it says is not the point here."""
    numbers = dict.fromkeys(("p", "p_corrected", "p_welch", "p_half"), 0.01)
    score = ConceptScore(
        "pr<ai>se", "positive", 1, "moved", 0.9, 0.8, 1.0, 0.3, 0.5, 0.4, 0.6,
        accuracy=0.9, accuracy_low=0.8, accuracy_high=1.0, random_accuracy=0.5, separable=True,
        **numbers,
    )  # fmt: skip
    ConceptReport(
        (score,), {"pr<ai>se": {1: np.ones(4)}}, 2,
        (Target("class", "log-odds of 'positive'", (1,), ("negative", "positive")),),
        {"pr<ai>se": 9}, None, {"positive": 9}, 90, 1.0,
        {"negatives": str(path.parent / "secret" / "others.txt")},
        {"name": str(path.parent / "secret" / "model")}, {"piste": "0"},
        (f"2 of 9 texts in '{path.parent}/secret/own.txt' were cut",),
    ).to_json(path)  # fmt: skip
    return path


def make_explanation(path: Path, model: Any) -> Path:
    piste.explain(model, SCRIPT, samples=20).to_json(path)
    return path
