"""Rows of a table in a file: CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from piste.errors import PisteError, need

ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
_LONGEST_CELL = 2**31 - 1


@dataclass(frozen=True)
class Table:
    """The names of all columns, and the rows: cells by column, None where there is none."""

    file: str
    columns: tuple[str, ...]
    rows: list[dict[str, Any]]

    def need(self, column: str, meaning: str) -> str:
        """The column's name, refused if there is none such."""
        if column not in self.columns:
            raise PisteError(
                f"{self.file!r} has no column {column!r} for the {meaning}: it has "
                f"{', '.join(self.columns)}."
            )
        return column


def read_table(path: str | Path, wanted: tuple[str, ...]) -> Table:
    """All rows of a file. Of a Parquet file only the ``wanted`` columns are read, if there."""
    file = Path(path)
    ending = file.suffix.lower()
    if not file.is_file():
        raise PisteError(f"There is no file {str(path)!r}.")
    if ending not in ENDINGS:
        raise PisteError(
            f"{str(path)!r} ends in {ending or 'nothing'!r}: a file that ends in "
            f"{', '.join(ENDINGS)} is wanted."
        )
    if file.stat().st_size == 0:
        raise PisteError(f"{str(path)!r} is empty: a table with at least one text is wanted.")
    try:
        if ending == ".parquet":
            table = _from_parquet(file, wanted)
        elif ending in (".csv", ".tsv"):
            table = _from_csv(file, "," if ending == ".csv" else "\t")
        else:
            table = _from_lines(file)
    except OSError as problem:
        raise PisteError(f"{str(path)!r} could not be read: {problem.strerror}.") from problem
    if not table.rows:
        raise PisteError(f"{str(path)!r} has no rows: a table with at least one text is wanted.")
    return table


def _decoded(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise PisteError(
            f"{str(file)!r} is not UTF-8 text (byte {problem.start}): convert it first, for "
            "example with `iconv -f latin1 -t utf-8`."
        ) from problem


def _from_csv(file: Path, delimiter: str) -> Table:
    content = io.StringIO(_decoded(file), newline="")
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        reader = csv.reader(content, delimiter=delimiter)
        head = next(reader, [])
        rows = [_named(head, cells, file, reader.line_num) for cells in reader if cells]
    except csv.Error as problem:
        raise PisteError(f"{str(file)!r} is not a CSV table: {problem}.") from problem
    finally:
        csv.field_size_limit(before)
    return Table(str(file), tuple(head), rows)


def _named(head: list[str], cells: list[str], file: Path, line: int) -> dict[str, Any]:
    if len(cells) != len(head):
        raise PisteError(
            f"Line {line} of {str(file)!r} has {len(cells)} cells, but there are {len(head)} "
            "columns: put texts that hold the separator or line breaks into quotes."
        )
    return dict(zip(head, (cell or None for cell in cells), strict=True))


def _from_lines(file: Path) -> Table:
    rows: list[dict[str, Any]] = []
    for number, row in _objects(file):
        if not isinstance(row, dict):
            raise PisteError(
                f"Line {number} of {str(file)!r} is no JSON object: one object "
                '{"text": …} on each line is wanted.'
            )
        rows.append(row)
    columns = dict.fromkeys(name for row in rows for name in row)
    return Table(str(file), tuple(columns), rows)


def _objects(file: Path) -> Iterator[tuple[int, Any]]:
    # Not splitlines: a text may hold other signs that it takes for the end of a line.
    for number, line in enumerate(_decoded(file).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except json.JSONDecodeError as problem:
            raise PisteError(
                f"Line {number} of {str(file)!r} is broken JSON ({problem.msg} at sign "
                f"{problem.colno}): one object on each line is wanted."
            ) from problem


def _from_parquet(file: Path, wanted: tuple[str, ...]) -> Table:
    parquet: Any = need("pyarrow.parquet", "tables", "Reading a Parquet file")
    try:
        columns = tuple(parquet.read_schema(file).names)
        there = [column for column in dict.fromkeys(wanted) if column in columns]
        rows = parquet.read_table(file, columns=there).to_pylist()
    except (
        ValueError,
        TypeError,
        NotImplementedError,
    ) as problem:  # Arrow's errors are ValueErrors
        first = (str(problem) or type(problem).__name__).splitlines()[0]
        raise PisteError(f"{str(file)!r} is not a whole Parquet file: {first}") from problem
    return Table(str(file), columns, rows)
