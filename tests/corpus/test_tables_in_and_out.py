"""Tables of any kind go in, ids and small columns are kept, and frames come out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import piste
from piste import PisteError, corpus
from tests.cli.commands import run as command
from tests.corpus.corpora import TEXTS, left, loud


class DataSet:
    """What is used of a data set of Hugging Face."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.cells = columns
        self.column_names = list(columns)

    def __len__(self) -> int:
        return len(self.cells["text"])

    def select_columns(self, names: list[str]) -> DataSet:
        return DataSet({name: self.cells[name] for name in names})

    def __getitem__(self, rows: slice) -> dict[str, list[Any]]:
        return {name: cells[rows] for name, cells in self.cells.items()}


class Polars:
    """What is used of a frame of polars."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows, self.columns = rows, list(rows[0])

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, names: list[str]) -> Polars:
        return Polars([{name: row[name] for name in names} for row in self.rows])

    def slice(self, start: int, length: int) -> Polars:
        return Polars(self.rows[start : start + length])

    def to_dicts(self) -> list[dict[str, Any]]:
        return self.rows


ROWS = [
    {"id": f"r{n}", "text": text, "stars": n, "essay": text * 20} for n, text in enumerate(TEXTS)
]
TABLES = {
    "dictionaries": ROWS,
    "pandas": pd.DataFrame(ROWS),
    "polars": Polars(ROWS),
    "arrow": pa.Table.from_pylist(ROWS),
    "datasets": DataSet({name: [row[name] for row in ROWS] for name in ROWS[0]}),
}


def run(table: Any, out: Path, **options: Any) -> corpus.Counts:
    model = piste.load(loud, name="loud", outputs="logits")
    how: dict[str, Any] = {"method": "occlusion", "progress": False, "block": 3}
    return corpus.run(table, model, out, **how | options)


@pytest.mark.parametrize("kind", TABLES)
def test_tables_in_memory_are_read_like_files(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    run(path, tmp_path / "file")
    assert run(TABLES[kind], tmp_path / "memory").documents == len(ROWS)
    file, memory = left(tmp_path / "file"), left(tmp_path / "memory")
    assert memory["units"] == file["units"]
    for row, same in zip(memory["documents"], file["documents"], strict=True):
        assert row | {"source": ""} == same | {"source": ""}
    assert run(TABLES[kind], tmp_path / "memory").documents == len(ROWS), "it goes on"


def test_another_frame_is_another_run(tmp_path: Path) -> None:
    run(pd.DataFrame(ROWS), tmp_path / "run")
    with pytest.raises(PisteError, match="input DataFrame digest"):
        run(pd.DataFrame(ROWS[::-1]), tmp_path / "run")


def test_missing_cells_of_a_frame_are_empty(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": ["A film!", None], "stars": [1, None]})
    counts = run(frame, tmp_path / "run")
    assert (counts.documents, counts.refused) == (1, 1)
    assert left(tmp_path / "run")["documents"][0]["stars"] == "1.0"


def test_ids_and_small_columns_are_kept_unasked(tmp_path: Path) -> None:
    run(ROWS, tmp_path / "run")
    first = left(tmp_path / "run")["documents"][1]
    assert (first["id"], first["stars"]) == ("r1", "1")
    assert "essay" not in first
    run(ROWS, tmp_path / "none", columns=corpus.Columns(keep=()))
    assert "stars" not in left(tmp_path / "none")["documents"][0]
    run(ROWS, tmp_path / "named", columns=corpus.Columns(id="stars", keep=("essay",)))
    first = left(tmp_path / "named")["documents"][1]
    assert (first["id"], first["essay"]) == ("1", ROWS[1]["essay"])


def test_a_run_goes_on_with_the_columns_it_began_with(tmp_path: Path) -> None:
    """Earlier versions kept none unasked."""
    out = tmp_path / "run"
    run(ROWS, out, columns=corpus.Columns(keep=()))
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["settings"]["columns"] |= {"id": None}
    manifest["input"] = [{"file": "list"}]
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert run(ROWS, out).documents == len(ROWS)


def test_the_columns_of_an_earlier_run_are_not_asked_of_another_input(tmp_path: Path) -> None:
    rows = [{"text": "Good.", "topic": "a"}, {"text": "Bad.", "topic": "b"}]
    other = [{"text": "A film.", "year": 1999}]
    how: dict[str, Any] = {"method": "occlusion", "progress": False}
    corpus.run(rows, "piste:reviews", tmp_path / "run", **how)
    with pytest.raises(PisteError, match="holds a run with other settings"):
        corpus.run(other, "piste:reviews", tmp_path / "run", **how)
    corpus.run([{"text": "", "topic": "a"}], "piste:reviews", tmp_path / "empty", **how)
    assert corpus.run(other, "piste:reviews", tmp_path / "empty", **how).documents == 1
    assert corpus.frame(tmp_path / "empty")["year"].tolist() == ["1999"]


def test_results_are_frames(tmp_path: Path) -> None:
    run([*ROWS, {"text": ""}], tmp_path / "run")
    documents, units = corpus.frame(tmp_path / "run"), corpus.frame(tmp_path / "run", "units")
    assert documents["text"].tolist() == TEXTS
    assert len(units) == documents["units"].sum()
    assert corpus.frame(tmp_path / "run", "errors")["reason"].tolist() == ["empty"]
    answer = corpus.query(tmp_path / "run", "SELECT id, stars FROM documents ORDER BY document")
    assert answer.to_frame()["id"].tolist() == [row["id"] for row in ROWS]
    with pytest.raises(PisteError, match="table: expected one of"):
        corpus.frame(tmp_path / "run", "dreams")  # type: ignore[arg-type]


def test_a_run_says_what_it_costs(tmp_path: Path, capsys: Any) -> None:
    run(ROWS, tmp_path / "run", progress=None)
    said = capsys.readouterr().err
    assert said.startswith("7 rows to explain, at most about ")
    assert said.endswith("questions to the model; kept columns: stars.\n")
    run(ROWS, tmp_path / "run", progress=None)
    assert capsys.readouterr().err == "", "nothing is left"


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    labels = ("[/b]", ":smile:", "[red]")
    rows = [{"text": f"{text} [/i] :cat:", "label": labels[n % 3]} for n, text in enumerate(TEXTS)]
    run(rows, tmp_path / "run")
    return tmp_path / "run"


def test_data_is_no_markup(marked: Path, monkeypatch: Any, capsys: Any) -> None:
    code, out, err = command(monkeypatch, capsys, "words", marked, "--by", "label", "--least", 1)
    assert code == 0, err
    shown = " ".join(out.split())
    assert all(label in shown for label in ("= [/b]", "= :smile:", "= [red]"))
    code, out, err = command(monkeypatch, capsys, "query", marked, "SELECT text FROM documents")
    assert code == 0, err
    assert "[/i] :cat:" in out


def test_long_answers_are_cut_and_say_so(marked: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = command(monkeypatch, capsys, "query", marked, "SELECT * FROM units")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "rows more: --csv FILE writes all of them" in " ".join(out.split())
    many = "SELECT range AS number, repeat('word ', 90) AS text FROM range(206)"
    code, out, _ = command(monkeypatch, capsys, "query", marked, many)
    assert code == 0
    assert len(out.splitlines()) < 60
    assert "and 166 rows more" in " ".join(out.split())
