"""Results as files for programs: every number of every example, or a row per method."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from piste.data import storage
from piste.errors import need
from piste.evaluation.bootstrap import summary
from piste.evaluation.results import Results

Rows: TypeAlias = Callable[[Results], list[dict[str, Any]]]


def long_rows(results: Results) -> list[dict[str, Any]]:
    """One row per example, method and figure; one without figure where a method refused."""
    rows: list[dict[str, Any]] = []
    for row in results.rows:
        common = {"example": row.example, "method": row.method}
        if row.problem:
            rows.append({**common, "figure": None, "value": None, "problem": row.problem})
        for figure, value in row.figures.items():
            number = None if math.isnan(value) else float(value)
            rows.append({**common, "figure": figure, "value": number, "problem": None})
    return rows


def summary_rows(results: Results) -> list[dict[str, Any]]:
    """One row per method: every figure's average, bounds and number of examples."""
    found = summary(results)
    rows = []
    for method in results.methods:
        row: dict[str, Any] = {"method": method}
        for figure in results.figures:
            one = found.get((method, figure))
            for part in ("centre", "low", "high", "examples"):
                name = figure if part == "centre" else f"{figure}_{part}"
                value = None if one is None else getattr(one, part)
                row[name] = None if value is None or math.isnan(value) else value
        rows.append(row)
    return rows


def to_csv(
    results: Results,
    path: str | Path,
    rows: Rows = long_rows,
) -> None:
    """A CSV file, numbers to full precision; ``rows`` may be :func:`summary_rows`."""
    listed = rows(results)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(listed[0]) if listed else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    storage.write_text(path, buffer.getvalue())


def to_parquet(
    results: Results,
    path: str | Path,
    rows: Rows = long_rows,
) -> None:
    """The same as a Parquet file."""
    pyarrow: Any = need("pyarrow", "tables", "A Parquet file")
    parquet: Any = need("pyarrow.parquet", "tables", "A Parquet file")
    schema = None
    if rows is long_rows:
        text, number = pyarrow.string(), pyarrow.float64()
        kinds = {"example": text, "method": text, "figure": text, "value": number, "problem": text}
        schema = pyarrow.schema(kinds.items())
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows(results), schema=schema), buffer)
    storage.write_bytes(path, buffer.getvalue())
