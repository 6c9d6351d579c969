"""Results made by others, who may mean harm: a sentence or a harmless view, within bounds."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

import piste
from piste import PisteError
from piste.data import parquet_files
from piste.data.parquet_files import read_parquet
from piste.serve import create_app
from piste.serve.result_sources import open_results
from tests.bad_inputs.files import is_sentence
from tests.serve import results_made as made

SCRIPT = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>"
FORMULA = '=HYPERLINK("http://evil.example","x")'
DEEP = "[" * 5000 + "]" * 5000


def deep(levels: int = 200) -> Any:
    found: Any = []
    for _ in range(levels):
        found = [found]
    return found


ODD: tuple[Any, ...] = (
    None, [], {}, SCRIPT, FORMULA, 1e308, -1, float("nan"), float("inf"), True, 10**400, deep(),
    {SCRIPT: SCRIPT}, [SCRIPT] * 3, "x" * 100_000,
)  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, reviews: Any) -> Path:
    folder = tmp_path_factory.mktemp("secret-place")
    made.make_run(folder, "piste:reviews")
    made.make_vocabulary(folder / "words.parquet", reviews)
    made.make_concepts(folder / "concepts.json")
    made.make_explanation(folder / "one.json", reviews)
    piste.read(folder / "one.json").to_parquet(folder / "one.parquet")
    made.make_comparison(folder / "several.json", reviews)
    made.make_evaluation(folder / "measured", reviews)
    return folder


@pytest.fixture
def run(base: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(base / "some run", tmp_path / "run"))


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where values stand in JSON; of a list, the first two."""
    yield path
    inner = data.items() if isinstance(data, dict) else enumerate(data[:2])
    for key, value in inner if isinstance(data, (dict, list)) else ():
        yield from (
            places(value, (*path, key)) if isinstance(value, (dict, list)) else [(*path, key)]
        )


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    data = copy.copy(data)
    data[path[0]] = changed(data[path[0]], path[1:], value)
    return data


def check_view(file: Path, what: object) -> None:
    """It is shown without markup of its own, or refused in a sentence."""
    told = None
    try:
        [opened] = open_results([file])
        view = opened.answer
    except PisteError as problem:
        told = str(problem)
    if told is not None:
        assert is_sentence(told), what
        return
    for mark in ("<img", "<script", "onerror=alert(1)>"):
        assert mark not in view.html, what
    json.dumps(view.model_dump(), allow_nan=False)
    assert len(view.html) < 3_000_000, what


@pytest.mark.parametrize("name", ["one.json", "several.json", "concepts.json", "run.json", "rows"])
def test_any_value_of_a_result_may_be_odd(base: Path, tmp_path: Path, name: str) -> None:
    """Many places, each once, with the odd values in turn."""
    folder = Path(shutil.copytree(base / "measured", tmp_path / "measured"))
    lines = [""]
    if name == "rows":
        lines = (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()
        file, shown, data = folder / "rows.jsonl", folder, json.loads(lines[0])
    elif name == "run.json":
        file, shown = folder / name, folder
        data = json.loads(file.read_text(encoding="utf-8"))
    else:
        file = shown = tmp_path / name
        data = json.loads((base / name).read_text(encoding="utf-8"))
    step = 9 if shown == folder else 3  # a report takes longer
    for number, place in enumerate(list(places(data))[::step]):
        odd = ODD[number % len(ODD)]
        text = json.dumps(changed(data, place, odd))
        file.write_text("\n".join([text, *lines[1:]]) + "\n", encoding="utf-8")
        check_view(shown, (place, odd))


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        '{"piste": ' + "9" * 6000 + "}",
        '{"piste": 2, "units": ' + DEEP + "}",
        '{"piste": 2, "piste": 1, "method": "a", "method": "<b>"}',
        '{"piste": NaN}',
        '{"piste_comparison": {}, "piste": 1}',
        '{"piste_concepts": 1e999}',
        '{"piste_corpus": 1}',
        '"\\ud800"',
    ],
)
@pytest.mark.parametrize("name", ["a.json", "run/run.json", "run/manifest.json"])
def test_json_of_any_shape_is_refused(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(PisteError) as refused:
        open_results([file if name == "a.json" else file.parent])
    assert is_sentence(str(refused.value))


def test_a_repeated_key_counts_once(base: Path, tmp_path: Path) -> None:
    text = (base / "one.json").read_text(encoding="utf-8")
    (tmp_path / "e.json").write_text(text.rstrip()[:-1] + f', "method": {json.dumps(SCRIPT)}}}')
    check_view(tmp_path / "e.json", "the last one")


Table = Any
TABLES: dict[str, Callable[[Table], Table]] = {
    "no text": lambda t: t.drop_columns(["text"]),
    "no about": lambda t: t.drop_columns(["about"]),
    "no numbers": lambda t: t.drop_columns(["probability", "r2"]),
    "one column": lambda t: t.select(["document"]),
    "no rows": lambda t: t.slice(0, 0),
    "texts are numbers": lambda t: put(t, "text", pa.array(range(len(t)))),
    "numbers are texts": lambda t: put(t, "probability", pa.array(["a"] * len(t))),
    "units are texts": lambda t: put(t, "units", pa.array(["9"] * len(t))),
    "units are huge": lambda t: put(t, "units", pa.array([2**62] * len(t))),
    "units are negative": lambda t: put(t, "units", pa.array([-5] * len(t))),
    "documents are texts": lambda t: put(t, "document", pa.array(["a"] * len(t))),
    "documents are one": lambda t: put(t, "document", pa.array([0] * len(t))),
    "nothing": lambda t: put(t, "predicted", pa.nulls(len(t), pa.string())),
    "no numbers known": lambda t: put(t, "r2", pa.array([float("nan")] * len(t))),
    "lists": lambda t: put(t, "text", pa.array([["a", ["b"]][:1]] * len(t))),
    "nested": lambda t: put(t, "label", pa.array([{"a": [{"b": 1}]}] * len(t))),
    "scripts": lambda t: put(put(t, "predicted", texts(t, SCRIPT)), "id", texts(t, SCRIPT)),
    "formulas": lambda t: put(put(t, "predicted", texts(t, FORMULA)), "text", texts(t, FORMULA)),
    "long labels": lambda t: put(t, "predicted", texts(t, "x" * 200_000)),
    "long ids": lambda t: put(t, "id", texts(t, "x" * 200_000)),
    "about is no JSON": lambda t: put(t, "about", texts(t, "{")),
    "about is deep": lambda t: put(t, "about", texts(t, DEEP)),
    "about is empty": lambda t: put(t, "about", texts(t, "{}")),
    "about has odd labels": lambda t: put(t, "about", texts(t, '{"output": {"labels": 5}}')),
    "about is NaN": lambda t: put(t, "about", texts(t, '{"output": NaN}')),
    "a column like SQL": lambda t: t.append_column('x"; DROP TABLE documents; --', texts(t, "a")),
    "many columns": lambda t: many(t, 400),
    "a name without end": lambda t: t.append_column("x" * 100_000, texts(t, "a")),
    "two of a name": lambda t: t.append_column("text", texts(t, "again")),
}


def texts(table: Table, cell: str) -> Any:
    return pa.array([cell] * len(table), pa.string())


def put(table: Table, name: str, column: Any) -> Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


def many(table: Table, columns: int) -> Table:
    for number in range(columns):
        table = table.append_column(f"column {number}", texts(table, SCRIPT))
    return table


PAGES = ("documents", "documents?search=a&sort=probability", "documents/0", "documents/1", "words")


def look(client: TestClient, folder: Path) -> None:
    """Everything that is shown of a run: an answer without harm, or a sentence without a path."""
    for page in PAGES:
        answer = client.get(f"/api/results/0/{page}")
        assert answer.status_code in (200, 404), (page, answer.text)
        assert str(folder.parent) not in answer.text
        assert len(answer.content) < 1_000_000
        found = answer.json()
        if answer.status_code == 404:
            assert is_sentence(found["problem"])
        elif "html" in found:
            assert "<img" not in found["html"]
            assert "<script" not in found["html"]
    assert client.get("/api/results").status_code == 200


@pytest.mark.parametrize("change", TABLES.values(), ids=TABLES)
def test_tables_of_documents(run: Path, reviews: Any, change: Callable[[Table], Table]) -> None:
    for file in (run / "documents").iterdir():
        pq.write_table(change(pq.read_table(file)), file)
    look(TestClient(create_app([reviews], results=[run]), base_url="http://localhost"), run)


UNITS: dict[str, Callable[[Table], Table]] = {
    "no text": lambda t: t.drop_columns(["text"]),
    "no rows": lambda t: t.slice(0, 0),
    "fewer": lambda t: t.slice(0, 2),
    "scripts": lambda t: put(t, "text", texts(t, SCRIPT)),
    "numbers": lambda t: put(t, "text", pa.array([1.5] * len(t))),
    "nothing": lambda t: put(t, "text", pa.nulls(len(t), pa.string())),
    "outside": lambda t: put(t, "start", pa.array([2**31 - 1] * len(t))),
    "fractions": lambda t: put(t, "end", pa.array([0.5] * len(t))),
    "no scores": lambda t: t.select(["document", "unit", "text", "start", "end", "segment"]),
    "infinite": lambda t: put(t, "shapley", pa.array([float("inf")] * len(t))),
    "unknown": lambda t: put(t, "shapley", pa.array([float("nan")] * len(t))),
    "words": lambda t: put(t, "shapley", texts(t, "a")),
}


@pytest.mark.parametrize("change", UNITS.values(), ids=UNITS)
def test_tables_of_units(run: Path, reviews: Any, change: Callable[[Table], Table]) -> None:
    for file in (run / "units").iterdir():
        pq.write_table(change(pq.read_table(file)), file)
    look(TestClient(create_app([reviews], results=[run]), base_url="http://localhost"), run)


@pytest.mark.parametrize("name", ["words.parquet", "one.parquet"])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_other_tables(base: Path, tmp_path: Path, name: str, column: int) -> None:
    table = pq.read_table(base / name)
    own = table.column_names[column]
    kinds = (
        texts(table, SCRIPT),
        pa.nulls(len(table)),
        pa.array([[{"a": 1}]] * len(table)),
        pa.array([2**62] * len(table)),
        pa.array([float("nan")] * len(table)),
    )
    for number, cells in enumerate(kinds):
        pq.write_table(put(table, own, cells), tmp_path / name)
        check_view(tmp_path / name, (own, number))
    pq.write_table(table.drop_columns([own]), tmp_path / name)
    check_view(tmp_path / name, own)
    metas = (b"{", b"[]", DEEP.encode(), b'{"piste_vocabulary": 2}', b'{"piste_vocabulary": []}')
    for meta in metas:
        pq.write_table(table.replace_schema_metadata({b"piste": meta}), tmp_path / name)
        check_view(tmp_path / name, meta)


def test_a_small_file_may_not_stand_for_a_large_table(
    run: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviews: Any
) -> None:
    """A text that is stored once, and stands in every row."""
    monkeypatch.setattr(parquet_files, "MOST_BYTES", 20_000_000)
    file = run / "documents" / "part-000000.parquet"
    table = pq.read_table(file)
    whole = pa.concat_tables([put(table, "text", texts(table, "x" * 100_000))] * 200)
    pq.write_table(whole, file, use_dictionary=True)
    assert file.stat().st_size < 1_000_000
    with pytest.raises(PisteError, match="bytes of text, at most 20,000,000 are read"):
        read_parquet(file)
    look(TestClient(create_app([reviews], results=[run]), base_url="http://localhost"), run)
    monkeypatch.setattr(parquet_files, "MOST_CELLS", 10)
    with pytest.raises(PisteError, match="cells, at most 10 are read"):
        open_results([base / "words.parquet"])


def test_a_question_takes_no_more_memory_than_it_may(
    run: Path, monkeypatch: pytest.MonkeyPatch, reviews: Any
) -> None:
    monkeypatch.setattr("piste.corpus.sql._eighth_of_memory", lambda: 5_000_000)
    file = run / "documents" / "part-000000.parquet"
    table = pq.read_table(file)
    pq.write_table(put(table, "text", texts(table, "x" * 30_000_000)), file)
    client = TestClient(create_app([reviews], results=[run]), base_url="http://localhost")
    answer = client.get("/api/results/0/documents", params={"search": "y"})
    assert answer.status_code == 404
    assert "can't be read" in answer.json()["problem"]
