"""Questions to the results of a corpus run, in SQL: tables ``documents``, ``units``, ``errors``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from piste.corpus.folder import read_manifest
from piste.errors import PisteError, need

_LEAST = 3
"""A word in fewer documents says little about the corpus."""
_BY_WORD = f"""
    SELECT target, lower(units.text) AS word, count(DISTINCT document) AS documents,
           avg({{score}}) AS mean, stddev_samp({{score}}) / sqrt(count(*)) AS error
    FROM units JOIN documents USING (document) WHERE regexp_matches(units.text, '\\w')
    GROUP BY target, word HAVING count(DISTINCT document) >= {_LEAST}
"""
_OVER = "QUALIFY row_number() OVER (PARTITION BY target ORDER BY mean {}) <= 10 "
_FIRST, _LAST = _OVER.format("DESC"), _OVER.format("ASC")
READY: Mapping[str, tuple[str, str]] = {
    "words": (
        "words that speak for what is explained most, by their mean score",
        _BY_WORD + _FIRST + "ORDER BY target, mean DESC",
    ),
    "against": (
        "words that speak against it most",
        _BY_WORD + _LAST + "ORDER BY target, mean",
    ),
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
        "documents whose explanation foretells the model worst",
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
_SCORED = ("words", "against")


@dataclass(frozen=True)
class Answer:
    """Rows of an answer, and the names of their columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary per row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def query(folder: str | Path, sql: str) -> Answer:
    """The answer to a question in SQL, or to a ready one, by its name.

    The tables are ``documents`` (one row per document), ``units`` (one per unit) and ``errors``.
    """
    duckdb: Any = need("duckdb", "query", "piste query")
    read_manifest(folder)
    base = Path(folder)
    with duckdb.connect() as connection:
        _views(connection, base)
        if sql in READY:
            sql = _ready(connection, sql)
        try:
            found = connection.execute(sql)
            columns = [column[0] for column in found.description or ()]
            return Answer(columns, found.fetchall())
        except duckdb.Error as problem:
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


def _ready(connection: Any, name: str) -> str:
    """A ready question, about a score in the target's own numbers, or else the one that ranks.

    Linear scores of SLALOM have a scale of their own in every text.
    """
    sql = READY[name][1]
    if name not in _SCORED:
        return sql
    row = connection.execute("SELECT about ->> 'ranking' FROM documents LIMIT 1").fetchone()
    names = [one[0] for one in connection.execute("DESCRIBE units").fetchall()]
    score = "shapley" if "shapley" in names or row is None else row[0]
    if score not in names:
        raise PisteError(
            f"The results have no single score {score!r} to sort words by, but "
            f"{', '.join(names[7:])}: ask in SQL."
        )
    return sql.format(score=f'"{score}"')


def _quoted(path: Path) -> str:
    """A path as an SQL string; brackets in it are signs of its name, not of a pattern."""
    *parents, name = path.parts
    safe = [part.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]") for part in parents]
    return "'" + str(Path(*safe, name)).replace("'", "''") + "'"


def _first(problem: Exception) -> str:
    return str(problem).strip().splitlines()[0]
