"""Every form gives the same rows, and a bad row is one row."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import piste
from piste import PisteError, corpus
from piste.concepts.examples import examples_of
from piste.corpus.documents import (
    MOST_CHARACTERS,
    Columns,
    Document,
    RefusedDocument,
    blocks,
    check,
)
from piste.data.examples import read_data
from piste.data.tables import (
    TableFile,
    TableRow,
    check_columns,
    count_rows,
    read_rows,
    table_files,
)
from tests.corpus.corpora import TEXTS, loud, write

FEW = TableFile(Path("few.csv"), "few.csv")
FORMS = (
    "few.csv",
    "few.tsv",
    "few.jsonl",
    "few.ndjson",
    "few.parquet",
    "few.arrow",
    "few",
)


def read_by_evaluation(path: Path) -> list[str]:
    return [example.text for example in read_data(path, shuffle=False)]


def read_by_concepts(path: Path) -> list[str]:
    return examples_of(path, "texts", lambda: (1, 1))


def read_by_corpus(path: Path) -> list[str]:
    model = piste.load(loud, name="loud", outputs="logits")
    out = path.parent / "out"
    corpus.run(path, model, out, method="occlusion", progress=False, held_out=0)
    return [str(e.input) for e in corpus.explanations(out)]


READERS = (read_by_evaluation, read_by_concepts, read_by_corpus)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", FORMS)
def test_every_reader_reads_every_form(
    name: str, reader: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    assert reader(write(tmp_path / name)) == TEXTS


def test_a_bad_row_is_refused_where_it_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text": "one"}\n\n{broken\n{"text": "two"}\n')
    with pytest.raises(PisteError, match=r"Row 2 of '.*bad\.jsonl' can't be read: broken JSON"):
        read_by_evaluation(path)
    with pytest.raises(PisteError, match="Row 2 of"):
        read_by_concepts(path)
    assert read_by_corpus(path) == ["one", "two"]
    (refused,) = corpus.errors(tmp_path / "out")
    assert refused["source"] == "bad.jsonl:2"


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """Neither with those of a file nor with those of one batch in it."""
    for ending in (".csv", ".jsonl", ".parquet", ".arrow"):
        peaks = []
        for count in (2_000, 6_000):
            path = tmp_path / f"{count}{ending}"
            write(path, [{"text": f"{number} " + "word " * 40} for number in range(count)])
            tracemalloc.start()
            assert len(read_data(path, examples=3)) == 3
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[1] < peaks[0] + 4_000 * 48, "numbers, no texts"


@pytest.mark.parametrize("name", FORMS)
def test_all_forms_give_the_same_rows(name: str, tmp_path: Path) -> None:
    files = table_files(write(tmp_path / name))
    check_columns(files, ["text"])
    rows = list(read_rows(files, ("text", "label")))
    assert [row.cells["text"] for row in rows] == TEXTS
    assert [str(row.cells["label"]) for row in rows] == list("0101010")
    assert not any(row.problem for row in rows)
    assert count_rows(files, ("text",)) == len(TEXTS)
    assert rows[0].source == ("a.parquet:1" if name == "few" else f"{name}:1")


def test_a_data_set_saved_by_hugging_face(tmp_path: Path) -> None:
    """Splits are folders of Arrow streams; the library's own caches beside them are not data."""
    for split in ("test", "train"):
        (tmp_path / "saved" / split).mkdir(parents=True)
        write(tmp_path / "saved" / split / "data-00000-of-00001.arrow")
    write(tmp_path / "saved" / "train" / "cache-0123.arrow")
    (tmp_path / "saved" / "dataset_dict.json").write_text("{}")
    files = table_files(tmp_path / "saved")
    assert [source.name for source in files] == [
        "test/data-00000-of-00001.arrow",
        "train/data-00000-of-00001.arrow",
    ]
    assert count_rows(files, ("text",)) == 2 * len(TEXTS)


def test_bad_lines_of_json_are_single_rows(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"text": "one"}\n{broken\n\n["text"]\n{"text": "\xff"}\n{"text": "two"}\n')
    rows = list(read_rows(table_files(path), ("text",)))
    assert [row.cells.get("text") for row in rows] == ["one", None, None, None, "two"]
    assert [row.problem for row in rows][1:4] == [
        "broken JSON: Expecting property name enclosed in double quotes",
        "no JSON object",
        "not UTF-8 (byte 10)",
    ]


def test_bad_rows_of_a_table_are_single_rows(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(b'text,label\none,1\ntoo,many,cells\n\xe9t\xe9,0\n"two\nlines",1\n')
    rows = list(read_rows(table_files(path), ("text",)))
    checked = [check(number, row, Columns()) for number, row in enumerate(rows)]
    assert [getattr(one, "input", None) for one in checked] == ["one", None, None, "two\nlines"]
    assert [one.reason for one in checked if isinstance(one, RefusedDocument)] == [
        "3 cells for 2 columns (cells that hold the separator or a line break must be in quotes)",
        "not UTF-8 in the column 'text'",
    ]


def test_text_that_is_no_utf8_in_a_parquet_file(tmp_path: Path) -> None:
    raw = pa.array([b"one", b"\xff\xfe", b"two"])
    broken = pa.StringArray.from_buffers(3, raw.buffers()[1], raw.buffers()[2])
    pq.write_table(pa.table({"text": broken}), tmp_path / "bad.parquet")
    rows = list(read_rows(table_files(tmp_path / "bad.parquet"), ("text",)))
    assert [row.cells.get("text") for row in rows] == ["one", None, "two"]
    assert "not UTF-8" in rows[1].problem


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({}, "no 'text'"),
        ({"text": None}, "empty"),
        ({"text": " \n"}, "empty"),
        ({"text": 3.5}, "not text but float: 3.5"),
        ({"text": b"raw"}, "bytes, not text"),
        ({"text": "x" * (MOST_CHARACTERS + 1)}, "too long: 200,001 characters, at most 200,000"),
    ],
)
def test_rows_that_are_no_documents(cells: dict[str, object], reason: str) -> None:
    found = check(3, TableRow(FEW, 4, cells), Columns())
    assert found == RefusedDocument(3, "few.csv:4", reason)


def test_blocks_are_the_same_however_often_they_are_read() -> None:
    rows = [TableRow(FEW, n, {"text": "" if n == 4 else f"t{n}", "id": n}) for n in range(7)]
    columns = Columns(id="id", keep=("id",))
    first = list(blocks(rows, columns, 3))
    assert [len(block) for block in first] == [3, 3, 1]
    assert first[1].refused[0].number == 4
    assert first[2].documents[0] == Document(6, "few.csv:6", "t6", "6", {"id": 6})
    assert list(blocks(rows, columns, 3)) == first


def test_what_can_not_be_read_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(PisteError, match="no file or folder"):
        table_files(tmp_path / "nothing")
    (tmp_path / "some.txt").write_text("text")
    with pytest.raises(PisteError, match=r"ends in '\.txt'"):
        table_files(tmp_path / "some.txt")
    with pytest.raises(PisteError, match="has no table"):
        table_files(tmp_path)
    path = write(tmp_path / "few.csv")
    with pytest.raises(PisteError, match="no column 'body': it has text, label"):
        check_columns(table_files(path), ["body"])
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(PisteError, match="is not a whole Parquet file"):
        check_columns(table_files(tmp_path / "broken.parquet"), ["text"])
