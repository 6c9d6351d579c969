"""Questions to the results of a corpus run, in SQL: tables ``documents``, ``units``, ``errors``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piste.corpus.part_store import read_manifest
from piste.errors import PisteError, need

if TYPE_CHECKING:
    import pandas

READY: Mapping[str, tuple[str, str]] = {
    "labels": (
        "how many documents have which label, and how sure the model is",
        "SELECT predicted, count(*) AS documents, avg(probability) AS probability, "
        "median(r2) AS r2 FROM documents GROUP BY predicted ORDER BY documents DESC",
    ),
    "doubtful": (
        "documents the model is least sure of",
        "SELECT document, predicted, round(probability, 3) AS probability, text[:80] AS text "
        "FROM documents ORDER BY documents.probability LIMIT 20",
    ),
    "poor": (
        "documents whose explanation predicts the model worst",
        "SELECT document, predicted, round(r2, 3) AS r2, units, text[:80] AS text "
        "FROM documents WHERE r2 IS NOT NULL ORDER BY documents.r2 LIMIT 20",
    ),
    "errors": (
        "why rows were refused, and how many",
        "SELECT regexp_replace(reason, '[0-9][0-9,.]*', '…', 'g') AS reason, count(*) AS rows, "
        "min(source) AS first FROM errors GROUP BY ALL ORDER BY rows DESC",
    ),
}
"""Ready questions: what they ask, and how."""


@dataclass(frozen=True)
class Answer:
    """Rows of an answer, and the names of their columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary per row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_frame(self) -> pandas.DataFrame:
        """The rows as a data frame."""
        library: Any = need("pandas", "tables", "A data frame")
        return library.DataFrame(list(self.rows), columns=list(self.columns))


@contextmanager
def connected(folder: str | Path, *, bounded: bool = True) -> Iterator[Any]:
    """DuckDB with the tables of a run.

    A question that takes more than an eighth of the memory uses the disk, and fails beyond that:
    whoever made the run may mean harm, and a small file can stand for terabytes.
    """
    duckdb: Any = need("duckdb", "query", "Asking the results of a corpus run")
    read_manifest(folder)
    with tempfile.TemporaryDirectory(prefix="piste-") as place:
        bounds = {"memory_limit": f"{_eighth_of_memory()}B", "max_temp_directory_size": "4GB"}
        config = {"temp_directory": place} | (bounds if bounded else {})
        try:
            with duckdb.connect(config=config) as connection:
                _views(connection, Path(folder))
                yield connection
        except duckdb.Error as problem:
            raise PisteError(
                f"The tables of {str(folder)!r} can't be read: {_first(problem)}"
            ) from problem


def _eighth_of_memory() -> int:
    """In bytes, and at least a gigabyte."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # a system that does not tell
        whole = 0
    return max(whole // 8, 2**30)


def query_rows(connection: Any, sql: str, given: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """The rows of an answer."""
    return list(connection.execute(sql, list(given)).fetchall())


def query(folder: str | Path, sql: str) -> Answer:
    """The answer to a question in SQL, or to a ready one, by its name.

    The tables are ``documents`` (one row per document), ``units`` (one per unit) and ``errors``.
    """
    with connected(folder, bounded=False) as connection:
        if sql in READY:
            sql = READY[sql][1]
        try:
            found = connection.execute(sql)
            columns = [column[0] for column in found.description or ()]
            return Answer(columns, found.fetchall())
        except need("duckdb", "query", "piste query").Error as problem:
            raise PisteError(f"DuckDB can't answer this: {_first(problem)}") from problem


def _views(connection: Any, base: Path) -> None:
    for name in ("documents", "units"):
        if any((base / name).glob("part-*.parquet")):
            pattern = _quoted(base / name / "part-*.parquet")
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({pattern})")
        else:
            connection.execute(f"CREATE VIEW {name} AS SELECT 0 AS document WHERE false")
    columns = "{document: 'BIGINT', source: 'VARCHAR', reason: 'VARCHAR'}"
    if any((base / "errors").glob("part-*.jsonl")):
        pattern = _quoted(base / "errors" / "part-*.jsonl")
        source = f"read_json({pattern}, format = 'newline_delimited', columns = {columns})"
        connection.execute(f"CREATE VIEW errors AS SELECT * FROM {source}")
    else:
        connection.execute(
            "CREATE VIEW errors AS SELECT 0::BIGINT AS document, '' AS source, '' AS reason "
            "WHERE false"
        )


def _quoted(path: Path) -> str:
    """A path as an SQL string; brackets in it are signs of its name, not of a pattern."""
    *parents, name = path.parts
    safe = [part.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]") for part in parents]
    return "'" + str(Path(*safe, name)).replace("'", "''") + "'"


def _first(problem: Exception) -> str:
    return str(problem).strip().splitlines()[0]
