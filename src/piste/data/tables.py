"""Rows of tables in files, one after the other: memory does not grow with their number."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from piste.errors import PisteError, need

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_LINES = (".jsonl", ".ndjson")
ENDINGS = (*_SEPARATORS, *_LINES, ".parquet", ".arrow")
_BATCH = 1024
_LONGEST_CELL = 10_000_000
"""Characters of a cell, or bytes of a line of JSON: more is no cell but a quote that never ends."""
_BATCH_BYTES = 64_000_000

_TOO_LONG = (
    f"a cell of more than {_LONGEST_CELL:,} characters, perhaps behind a quotation mark "
    "that is never closed"
)

Read = tuple[Mapping[str, Any], str]
"""The cells of a row, or the reason why it can't be read."""


@dataclass(frozen=True)
class TableFile:
    """One file of rows."""

    path: Path
    name: str
    """Its path within the folder that was given."""

    @property
    def ending(self) -> str:
        return self.path.suffix.lower()

    def rows(self, columns: Sequence[str]) -> Iterator[TableRow]:
        """All rows, bad ones too; of Parquet and Arrow files only these columns are read."""
        columns = tuple(dict.fromkeys(columns))
        if self.ending in _SEPARATORS:
            found = _from_csv(self.path, columns)
        elif self.ending in _LINES:
            found = _from_lines(self.path)
        else:
            batches = _parquet_batches if self.ending == ".parquet" else _arrow_batches
            found = _from_batches(batches(self.path, columns))
        try:
            for number, (cells, problem) in enumerate(found, start=1):
                yield TableRow(self, number, cells, problem)
        except OSError as problem:
            raise _unreadable(self.path, problem) from problem

    def columns(self) -> tuple[str, ...] | None:
        """The names of its columns, None where every row has its own."""
        try:
            if self.ending in _LINES:
                return None
            if self.ending in _SEPARATORS:
                return tuple(next(_csv_rows(self.path), ([], ""))[0])
            return tuple(_schema(self.path).names)
        except OSError as problem:
            raise _unreadable(self.path, problem) from problem

    def count(self, columns: Sequence[str]) -> int:
        """How many rows there are, bad ones included."""
        if self.ending == ".parquet":
            return int(_parquet().read_metadata(self.path).num_rows)
        return sum(1 for _ in self.rows(columns))

    def describe(self, columns: Sequence[str]) -> dict[str, Any]:
        """Name, size and digest, to recognise the table in a later run that uses these columns."""
        digest = hashlib.sha256()
        try:
            with self.path.open("rb") as file:
                while some := file.read(2**20):
                    digest.update(some)
                size = file.tell()
        except OSError as problem:
            raise _unreadable(self.path, problem) from problem
        return {"file": self.name, "bytes": size, "digest": digest.hexdigest()[:16]}


@dataclass(frozen=True)
class TableRow:
    """One row: its cells by column, or why it could not be read."""

    file: TableFile
    number: int
    """Counted from 1 in its file, bad rows too, empty lines not."""
    cells: Mapping[str, Any]
    problem: str = ""

    @property
    def source(self) -> str:
        """File and number as results keep them."""
        return f"{self.file.name}:{self.number}"

    @property
    def place(self) -> str:
        """The beginning of a sentence about this row."""
        return f"Row {self.number} of {str(self.file.path)!r}"


def is_table(path: str | Path) -> bool:
    """Whether a path may stand for a table: a folder, or a file with one of the endings."""
    return Path(path).is_dir() or Path(path).suffix.lower() in ENDINGS


def table_files(given: str | Path) -> list[TableFile]:
    """The files that a path stands for: itself, or all in a folder, by name.

    A folder may be one that Hugging Face's ``save_to_disk`` wrote.
    """
    path = Path(given)
    if path.is_file():
        if path.suffix.lower() not in ENDINGS:
            raise PisteError(
                f"{str(given)!r} ends in {path.suffix or 'nothing'!r}: expected one of "
                f"{', '.join(ENDINGS)}, or a folder of such files."
            )
        return [TableFile(path, path.name)]
    if not path.is_dir():
        raise PisteError(f"There is no file or folder {str(given)!r}.")
    found = [
        TableFile(file, file.relative_to(path).as_posix())
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.suffix.lower() in ENDINGS and not _is_hidden(file, path)
    ]
    if not found:
        raise PisteError(
            f"The folder {str(given)!r} has no table: expected files that end in one of "
            f"{', '.join(ENDINGS)}."
        )
    return found


def check_columns(files: Sequence[TableFile], wanted: Iterable[str]) -> None:
    """Refuse a column that a file does not have, before any work.

    Of JSON lines every row has its own columns, which whoever reads the rows has to check.
    """
    for file in files:
        there = file.columns()
        if there == ():
            raise PisteError(f"{str(file.path)!r} is empty: a table with columns is expected.")
        if there is not None:
            need_columns(str(file.path), there, wanted)


def need_columns(name: str, there: Iterable[str], wanted: Iterable[str]) -> None:
    """Refuse columns that are not there, in a sentence that says which are."""
    names = tuple(there)
    for column in wanted:
        if column not in names:
            listed = ", ".join(names)
            listed = listed if len(listed) <= 200 else listed[:199] + "…"
            raise PisteError(f"{name!r} has no column {column!r}: it has {listed or 'none'}.")


def read_rows(
    files: Sequence[TableFile],
    columns: Sequence[str],
    bad_rows: Literal["keep", "refuse"] = "keep",
) -> Iterator[TableRow]:
    """The rows of all files, in order.

    Rows that can't be read come with the problem, or end the reading with an error.
    """
    for file in files:
        for row in file.rows(columns):
            if row.problem and bad_rows == "refuse":
                advice = ": convert the file, for example with `iconv -f latin1 -t utf-8`"
                advice = advice if row.problem.startswith("not UTF-8") else ""
                raise PisteError(f"{row.place} can't be read: {row.problem}{advice}.")
            yield row


def count_rows(files: Sequence[TableFile], columns: Sequence[str]) -> int:
    """How many rows there are in all files, bad ones included."""
    return sum(file.count(columns) for file in files)


def _is_hidden(file: Path, folder: Path) -> bool:
    """Hidden files, and what Hugging Face's own cache leaves beside the data."""
    parts = file.relative_to(folder).parts
    return any(part.startswith(".") for part in parts) or file.name.startswith("cache-")


def _from_csv(path: Path, columns: Sequence[str]) -> Iterator[Read]:
    rows = _csv_rows(path)
    head, _ = next(rows, ([], ""))
    for cells, problem in rows:
        if problem:
            yield {}, problem
        elif len(cells) != len(head):
            quotes = "cells that hold the separator or a line break must be in quotes"
            yield {}, f"{len(cells)} cells for {len(head)} columns ({quotes})"
        else:
            named = dict(zip(head, cells, strict=True))
            bad = [name for name in columns if not _is_utf8(named.get(name, ""))]
            yield ({}, f"not UTF-8 in the column {bad[0]!r}") if bad else (named, "")


def _csv_rows(path: Path) -> Iterator[tuple[list[str], str]]:
    """The cells of rows that are not empty, the head first, or why there are none."""
    # Bytes that are no UTF-8 become signs that only their own row is refused for.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(file, delimiter=_SEPARATORS[path.suffix.lower()])
        while True:
            before = csv.field_size_limit(_LONGEST_CELL)  # the module's: lifted for one row
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as problem:
                too_long = "field larger" in str(problem)
                yield [], _TOO_LONG if too_long else f"not a row of a table: {problem}"
                continue
            finally:
                csv.field_size_limit(before)
            if cells:
                yield cells, ""


def _is_utf8(cell: str) -> bool:
    return cell.isascii() or not any("\udc80" <= sign <= "\udcff" for sign in cell)


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """The lines; None for one that is too long, of which only a piece at a time is read."""
    while line := file.readline(_LONGEST_CELL):
        if len(line) < _LONGEST_CELL or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(_LONGEST_CELL)
        yield None


def _from_lines(path: Path) -> Iterator[Read]:
    with path.open("rb") as file:
        for number, line in enumerate(_lines(file)):
            if line is None:
                yield {}, _TOO_LONG
                continue
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


def _parquet() -> Any:
    return need("pyarrow.parquet", "tables", "Reading a Parquet file")


def _arrow() -> Any:
    return need("pyarrow", "tables", "Reading an Arrow file")


def _schema(path: Path) -> Any:
    is_parquet = path.suffix.lower() == ".parquet"
    arrow = _parquet() if is_parquet else _arrow()
    try:
        if is_parquet:
            return arrow.read_schema(path)
        with arrow.memory_map(str(path)) as file:
            return arrow.ipc.open_stream(file).schema
    except (ValueError, TypeError, NotImplementedError) as problem:  # Arrow's are ValueErrors
        raise _broken(path, problem) from problem


def _parquet_batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    parquet = _parquet()
    try:
        with parquet.ParquetFile(path) as file:
            there = [name for name in columns if name in file.schema_arrow.names]
            yield from file.iter_batches(batch_size=_batch(file.metadata), columns=there)
    except (ValueError, TypeError, NotImplementedError) as problem:
        raise _broken(path, problem) from problem


def _batch(metadata: Any) -> int:
    """Rows that are read at a time: fewer where they are large."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    largest = max((one.total_byte_size / max(one.num_rows, 1) for one in groups), default=0)
    return int(min(max(_BATCH_BYTES // max(largest, 1), 1), _BATCH))


def _arrow_batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    arrow = _arrow()
    try:
        with arrow.memory_map(str(path)) as file:
            for batch in arrow.ipc.open_stream(file):
                own = batch.select([name for name in columns if name in batch.schema.names])
                yield from (own.slice(n, _BATCH) for n in range(0, batch.num_rows, _BATCH))
    except (ValueError, TypeError, NotImplementedError) as problem:
        raise _broken(path, problem) from problem


def _from_batches(batches: Iterator[Any]) -> Iterator[Read]:
    for batch in batches:
        try:
            rows = batch.to_pylist()
        except UnicodeDecodeError:
            yield from map(_cells, (batch.slice(number, 1) for number in range(len(batch))))
        else:
            yield from ((cells, "") for cells in rows)


def _cells(row: Any) -> Read:
    try:
        return row.to_pylist()[0], ""
    except UnicodeDecodeError as problem:
        return {}, f"not UTF-8 (byte {problem.start})"


def _broken(path: Path, problem: Exception) -> PisteError:
    kind = "Parquet" if path.suffix.lower() == ".parquet" else "Arrow"
    first = (str(problem) or type(problem).__name__).splitlines()[0]
    return PisteError(f"{str(path)!r} is not a whole {kind} file: {first.rstrip('.')}.")


def _unreadable(path: Path, problem: OSError) -> PisteError:
    return PisteError(f"{str(path)!r} could not be read: {problem.strerror or problem}.")
