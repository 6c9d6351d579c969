"""Rows of any number of files, one after the other: memory does not grow with them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from piste.errors import PisteError, need, shorten

_TABLES = (".csv", ".tsv")
_LINES = (".jsonl", ".ndjson")
ENDINGS = (*_TABLES, *_LINES, ".parquet", ".arrow")
_BATCH = 1024
_LONGEST_CELL = 2**31 - 1


@dataclass(frozen=True)
class Row:
    """One row: its cells, or why it could not be read."""

    source: str
    """The file, relative to what was given, and the number of the row in it, from 1 on."""
    cells: Mapping[str, Any]
    problem: str = ""


@dataclass(frozen=True)
class Source:
    """One file of rows."""

    path: Path
    name: str

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """All rows; of formats that keep columns apart, only these are read."""
        ending = self.path.suffix.lower()
        if ending in _TABLES:
            found = _from_table(self.path)
        elif ending in _LINES:
            found = _from_lines(self.path)
        else:
            batches = _parquet_batches if ending == ".parquet" else _arrow_batches
            found = _from_batches(batches(self.path, columns))
        try:
            for number, (cells, problem) in enumerate(found, start=1):
                yield Row(f"{self.name}:{number}", cells, problem)
        except OSError as problem:
            raise PisteError(
                f"{str(self.path)!r} could not be read: {problem.strerror or problem}."
            ) from problem

    def columns(self) -> tuple[str, ...] | None:
        """The names of its columns, None where every row has its own."""
        ending = self.path.suffix.lower()
        if ending in _LINES:
            return None
        if ending in _TABLES:
            with self.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
                return tuple(next(csv.reader(file, delimiter=_delimiter(self.path)), []))
        return tuple(_schema(self.path).names)

    def size(self) -> int:
        """Bytes of the file."""
        return self.path.stat().st_size


def sources(given: str | Path) -> list[Source]:
    """The files that a path stands for: itself, or all in a folder, by name.

    A folder may be one that Hugging Face's ``save_to_disk`` wrote.
    """
    path = Path(given)
    if path.is_file():
        if path.suffix.lower() not in ENDINGS:
            raise PisteError(
                f"{str(given)!r} ends in {path.suffix or 'nothing'!r}: a file that ends in "
                f"{', '.join(ENDINGS)}, or a folder of such files, is wanted."
            )
        return [Source(path, path.name)]
    if not path.is_dir():
        raise PisteError(f"There is no file or folder {str(given)!r}.")
    found = [
        Source(file, file.relative_to(path).as_posix())
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.suffix.lower() in ENDINGS and not _is_hidden(file, path)
    ]
    if not found:
        raise PisteError(
            f"The folder {str(given)!r} has no file that ends in {', '.join(ENDINGS)}."
        )
    return found


def check_columns(files: Sequence[Source], wanted: Sequence[str]) -> None:
    """Refuse a column that a file does not have, before any work."""
    for source in files:
        try:
            there = source.columns()
        except OSError as problem:
            raise PisteError(f"{str(source.path)!r} could not be read: {problem}.") from problem
        for column in wanted:
            if there is not None and column not in there:
                raise PisteError(
                    f"{source.name!r} has no column {column!r}: it has {shorten(list(there), 200)}."
                )


def read_rows(files: Sequence[Source], columns: Sequence[str]) -> Iterator[Row]:
    """The rows of all files, in order."""
    for source in files:
        yield from source.rows(columns)


def count_rows(files: Sequence[Source], columns: Sequence[str]) -> int:
    """How many rows there are, bad ones included."""
    total = 0
    for source in files:
        if source.path.suffix.lower() == ".parquet":
            parquet: Any = need("pyarrow.parquet", "tables", "Reading a Parquet file")
            total += int(parquet.read_metadata(source.path).num_rows)
        else:
            total += sum(1 for _ in source.rows(columns))
    return total


def _is_hidden(file: Path, folder: Path) -> bool:
    """Hidden files, and what Hugging Face's own cache leaves beside the data."""
    parts = file.relative_to(folder).parts
    return any(part.startswith(".") for part in parts) or file.name.startswith("cache-")


def _delimiter(path: Path) -> str:
    return "," if path.suffix.lower() == ".csv" else "\t"


Read = tuple[Mapping[str, Any], str]


def _from_table(path: Path) -> Iterator[Read]:
    # Bytes that are no UTF-8 become signs that only their own row is refused for.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        csv.field_size_limit(_LONGEST_CELL)
        reader = csv.reader(file, delimiter=_delimiter(path))
        head = next(reader, [])
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as problem:
                yield {}, f"not a row of a table: {problem}"
                continue
            if not cells:
                continue
            if len(cells) != len(head):
                yield {}, f"{len(cells)} cells for {len(head)} columns"
                continue
            yield dict(zip(head, cells, strict=True)), ""


def _from_lines(path: Path) -> Iterator[Read]:
    with path.open("rb") as file:
        for number, line in enumerate(file):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line
            if not text.strip():
                continue
            try:
                cells = json.loads(text.decode("utf-8"))
            except UnicodeDecodeError as problem:
                yield {}, f"not UTF-8 (byte {problem.start})"
            except (json.JSONDecodeError, RecursionError) as problem:
                yield {}, f"broken JSON: {getattr(problem, 'msg', 'nested too deeply')}"
            else:
                yield (cells, "") if isinstance(cells, dict) else ({}, "no JSON object")


def _schema(path: Path) -> Any:
    try:
        if path.suffix.lower() == ".parquet":
            return need("pyarrow.parquet", "tables", "Reading a Parquet file").read_schema(path)
        arrow: Any = need("pyarrow", "tables", "Reading an Arrow file")
        return arrow.ipc.open_stream(arrow.memory_map(str(path))).schema
    except (ValueError, TypeError, NotImplementedError) as problem:  # Arrow's are ValueErrors
        raise _broken(path, problem) from problem


def _parquet_batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    parquet: Any = need("pyarrow.parquet", "tables", "Reading a Parquet file")
    try:
        with parquet.ParquetFile(path) as file:
            there = [name for name in columns if name in file.schema_arrow.names]
            yield from file.iter_batches(batch_size=_BATCH, columns=there)
    except (ValueError, TypeError, NotImplementedError) as problem:
        raise _broken(path, problem) from problem


def _arrow_batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    arrow: Any = need("pyarrow", "tables", "Reading an Arrow file")
    try:
        with arrow.memory_map(str(path)) as file:
            for batch in arrow.ipc.open_stream(file):
                yield batch.select([name for name in columns if name in batch.schema.names])
    except (ValueError, TypeError, NotImplementedError) as problem:
        raise _broken(path, problem) from problem


def _from_batches(batches: Iterator[Any]) -> Iterator[Read]:
    for batch in batches:
        try:
            for cells in batch.to_pylist():
                yield cells, ""
        except UnicodeDecodeError:
            yield from map(_cells, (batch.slice(number, 1) for number in range(len(batch))))


def _cells(row: Any) -> Read:
    try:
        return row.to_pylist()[0], ""
    except UnicodeDecodeError as problem:
        return {}, f"not UTF-8 (byte {problem.start})"


def _broken(path: Path, problem: Exception) -> PisteError:
    first = (str(problem) or type(problem).__name__).splitlines()[0]
    return PisteError(f"{str(path)!r} is not a whole file of its kind: {first}")
