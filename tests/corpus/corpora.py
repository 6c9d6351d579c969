"""Small corpora in every form, and what a run left."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TEXTS = [
    "A slow start, but a wonderful ending.",
    "What a dull and stupid film.",
    "The music is lovely, and so is she!",
    "Nothing works here, not even the jokes.",
    "Superb photography, clever story.",
    "I would not watch it again.",
    "It is fine.",
]


def table() -> list[dict[str, Any]]:
    return [{"text": text, "label": number % 2} for number, text in enumerate(TEXTS)]


def write(path: Path, rows: list[dict[str, Any]] | None = None) -> Path:
    """The rows in the form that the ending says; without one a folder of two files."""
    rows = rows or table()
    if path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="," if path.suffix == ".csv" else "\t")
            writer.writerows([rows[0], *(row.values() for row in rows)])
    elif path.suffix in (".jsonl", ".ndjson"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".arrow":
        arrow = pa.Table.from_pylist(rows)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, arrow.schema) as writer:
            writer.write_table(arrow)
    else:
        path.mkdir()
        half = pa.Table.from_pylist(rows[:4])
        pq.write_table(half, path / "a.parquet")
        lines = "".join(json.dumps(row) + "\n" for row in rows[4:])
        (path / "b.jsonl").write_text(lines, encoding="utf-8")
    return path


def left(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows of a run's tables, and its errors."""
    found = {
        kind: [
            row
            for file in sorted((folder / kind).glob("part-*.parquet"))
            for row in pq.read_table(file).to_pylist()
        ]
        for kind in ("documents", "units")
    }
    lines = [
        json.loads(line)
        for file in sorted((folder / "errors").glob("*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return found | {"errors": lines}


def loud(texts: list[str]) -> list[float]:
    """A classifier that is quick and has a rule."""
    return [text.count("!") + 0.1 * text.count("o") - 0.2 * text.count("not") for text in texts]
