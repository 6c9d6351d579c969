"""Prompts with several fields take the columns of their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import piste
from piste import PisteError, corpus
from tests.classifiers.served.fake_server import serving
from tests.language_models import save_language_model

PROMPT = "context : {context}\nquestion : {question}\nanswer :"
LOADING: dict[str, Any] = {"prompt": PROMPT, "labels": ["yes", "no"], "pinned": ["question"]}
ROWS: list[dict[str, Any]] = [
    {"context": "the tower stands in paris", "question": "is it good ?", "year": 1889},
    {"context": ["the moon", "a man walked on it"], "question": "did it ?", "year": 1969},
    {"context": {"film": "it was slow", "ending": "wonderful"}, "question": "is it ?", "year": 1},
]
HOW: dict[str, Any] = {"samples": 20, "progress": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_language_model(tmp_path_factory.mktemp("model")))


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_run_stores_what_explain_says(folder: str, tmp_path: Path) -> None:
    file = written(tmp_path / "rows.jsonl", ROWS)
    counts = corpus.run(file, folder, tmp_path / "out", loading=LOADING, **HOW)
    assert (counts.documents, counts.refused) == (3, 0)
    classifier = piste.load(folder, **LOADING)
    stored = list(corpus.explanations(tmp_path / "out"))
    for row, e in zip(ROWS, stored, strict=True):
        values = {name: row[name] for name in ("context", "question")}
        alone = piste.explain(classifier, values, samples=20)
        np.testing.assert_allclose(e.score(), alone.score(), atol=1e-5)
        assert e.units == alone.units
        assert e.input == alone.input
        assert e.input.parts == alone.input.parts
    assert {unit.part for unit in stored[2].units} == {"film", "ending"}
    frame = corpus.frame(tmp_path / "out")
    assert frame["year"].tolist() == ["1889", "1969", "1"]
    assert frame["question"].tolist() == [row["question"] for row in ROWS]
    assert frame["text"][0] == stored[0].input
    again = corpus.run(file, folder, tmp_path / "out", loading=LOADING, **HOW)
    assert again.documents == 3


def test_frames_and_classifiers_in_memory(folder: str, tmp_path: Path) -> None:
    frame = pandas.DataFrame(ROWS[:2])
    corpus.run(frame, piste.load(folder, **LOADING), tmp_path / "out", **HOW)
    assert [len(e) for e in corpus.explanations(tmp_path / "out")] == [5, 7]


def test_documents_by_name_in_parquet(folder: str, tmp_path: Path) -> None:
    """Arrow gives every row the names of all, None where a row does not have them."""
    rows = [{"context": {"film": "it was slow"}, "question": "is it ?"}, ROWS[2]]
    pandas.DataFrame(rows).to_parquet(tmp_path / "rows.parquet")
    frame = pandas.read_parquet(tmp_path / "rows.parquet")
    for number, table in enumerate((tmp_path / "rows.parquet", frame)):
        corpus.run(table, folder, tmp_path / f"{number}", loading=LOADING, **HOW)
        parts = [
            {unit.part for unit in e.units} for e in corpus.explanations(tmp_path / f"{number}")
        ]
        assert parts == [{"film"}, {"film", "ending"}]


def test_bad_cells_are_refused_by_the_column(folder: str, tmp_path: Path) -> None:
    question = "is it ?"
    bad = [
        {"context": " ", "question": question},
        {"context": [], "question": question},
        {"context": ["the moon", 3], "question": question},
        {"context": "the moon"},
    ]
    file = written(tmp_path / "rows.jsonl", [*ROWS, *bad])
    corpus.run(file, folder, tmp_path / "out", loading=LOADING, **HOW)
    assert [one["reason"] for one in corpus.errors(tmp_path / "out")] == [
        "context: empty",
        "context: empty",
        "context: not text but int: 3",
        "no 'question'",
    ]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (corpus.Columns(), "no column 'question': it has context, year"),
        (corpus.Columns(text="context"), r"several fields \(context, question\).*got 'context'"),
        (corpus.Columns(pair="question"), "pair column: expected none"),
    ],
)
def test_other_columns_are_refused_before_the_start(
    folder: str, tmp_path: Path, columns: corpus.Columns, words: str
) -> None:
    rows = [{"context": "the moon", "year": 1969}]
    for table in (written(tmp_path / "rows.jsonl", rows), pandas.DataFrame(rows)):
        with pytest.raises(PisteError, match=words):
            corpus.run(
                table, folder, tmp_path / "out", columns=columns, loading=LOADING, samples=20
            )
        with pytest.raises(PisteError, match=words):
            corpus.estimate(table, folder, columns=columns, loading=LOADING, samples=20)
    assert not (tmp_path / "out").exists()


def test_served_models_too(tmp_path: Path) -> None:
    loading = LOADING | {"labels": ["positive", "negative"]}
    with serving() as server:
        corpus.run(ROWS, server.url, tmp_path / "out", loading=loading, **HOW)
        paid = sum(server.paid.values())
        corpus.run(ROWS, server.url, tmp_path / "out", loading=loading, **HOW)
        assert sum(server.paid.values()) <= paid + 1  # one question: does it still hold?
    stored = list(corpus.explanations(tmp_path / "out"))
    assert [len(e) for e in stored] == [5, 7, 4]
    assert stored[0].input.parts[0].name == "context"
