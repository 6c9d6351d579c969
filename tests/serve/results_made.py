"""Results of all kinds in one folder, small, with texts that would like to do harm."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import piste
from piste import corpus
from piste.concepts.report import ConceptReport, ConceptScore
from piste.evaluation import Results, Row, evaluate
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


def make_comparison(path: Path, model: Any) -> Path:
    """With a method that was left out, for a reason that names a place."""
    made = piste.compare(model, SCRIPT, ["slalom", "occlusion"], samples=20)
    reason = f"The table '{path.parent}/secret/others.txt' is not there <b>b</b>."
    classifier = {"name": str(path.parent / "secret" / "model")}
    explanations = {
        name: replace(e, classifier=classifier) for name, e in made.explanations.items()
    }
    replace(made, skipped={"naive": reason}, explanations=explanations).to_json(path)
    return path


def make_evaluation(folder: Path, model: Any) -> Results:
    """A folder as ``piste evaluate`` writes it, told where everything lies."""
    secret = folder.parent / "secret"
    about = {
        "command": f"piste evaluate --data 'my secret/x <b>b</b>.csv' --folder {folder}",
        "data_file": "my secret place/x.csv",
        "data": str(secret / "x.csv"),
    }
    texts = [SCRIPT, "A slow start, but a wonderful ending."]
    options: dict[str, Any] = {"folder": folder, "about": about, "progress": False}
    found = evaluate(model, texts, methods=["occlusion", "random"], metrics=["deletion"], **options)
    rows = folder / "rows.jsonl"
    noted = [
        {**json.loads(line), "note": f"read from '{secret}/x.csv': <script>"}
        for line in rows.read_text(encoding="utf-8").splitlines()
    ]
    rows.write_text("".join(json.dumps(row) + "\n" for row in noted), encoding="utf-8")
    return replace(found, rows=tuple(map(Row.from_dict, noted)))


def make_explanation(path: Path, model: Any) -> Path:
    piste.explain(model, SCRIPT, samples=20).to_json(path)
    return path
