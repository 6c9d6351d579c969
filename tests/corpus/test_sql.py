"""Results can be asked in SQL, by ready questions, and read without Piste."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import piste
from piste import PisteError, corpus
from piste.corpus.sql import READY
from tests.cli.commands import run
from tests.corpus.corpora import TEXTS, loud, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in a folder whose name DuckDB could take for a pattern or the end of a string."""
    base = tmp_path_factory.mktemp("it's [odd]*")
    path = write(base / "few.jsonl")
    with path.open("a") as file:
        file.write('{"text": ""}\n' + json.dumps({"text": TEXTS[0]}) + "\n")
    model = piste.load(loud, outputs="logits")
    corpus.run(path, model, base / "out", block=4, samples=40, progress=False)
    return base / "out"


def test_sql_over_all_tables(folder: Path) -> None:
    answer = corpus.query(folder, "SELECT count(*), sum(units) FROM documents")
    units = corpus.query(folder, "SELECT count(*) FROM units").rows[0][0]
    assert answer.rows == [(len(TEXTS) + 1, units)]
    refused = corpus.query(folder, "SELECT source, reason FROM errors").to_dicts()
    assert refused == [{"source": "few.jsonl:8", "reason": "empty"}]


@pytest.mark.parametrize("name", READY)
def test_ready_questions_have_answers(name: str, folder: Path) -> None:
    answer = corpus.query(folder, name)
    assert answer.columns
    assert answer.rows


def test_pandas_reads_the_folder(folder: Path) -> None:
    documents = pd.read_parquet(folder / "documents")
    units = pd.read_parquet(folder / "units")
    assert documents["text"].tolist() == [*TEXTS, TEXTS[0]]
    assert set(units["document"]) == set(documents["document"])


def test_wrong_questions_are_told(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PisteError, match=r"DuckDB can't answer this: .*nothing"):
        corpus.query(folder, "SELECT nothing FROM documents")
    with pytest.raises(PisteError, match="holds no corpus run"):
        corpus.query(tmp_path, "labels")


def test_the_command(folder: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    code, out, _ = run(monkeypatch, capsys, "query", folder, "labels", "--json")
    assert code == 0
    assert json.loads(out)[0]["documents"] == len(TEXTS) + 1
    table = tmp_path / "answer.csv"
    run(monkeypatch, capsys, "query", folder, "SELECT 1 AS one", "--csv", table)
    assert table.read_text() == "one\n1\n"
    assert "doubtful" in run(monkeypatch, capsys, "query", "--list")[1]
    code, _, err = run(monkeypatch, capsys, "query", folder)
    assert code == 2
    assert "What is asked?" in err
