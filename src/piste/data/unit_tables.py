"""Explanations as tables and files: frames, CSV, Parquet, and a reader of all that is stored."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from piste.data.files import write_bytes, write_text
from piste.data.parquet_files import read_parquet
from piste.data.storage import UNIT_COLUMNS, build, describe, from_json, read_text
from piste.errors import READING_ERRORS, PisteError, need, one_line
from piste.explanation import Explanation
from piste.subject import Unit

if TYPE_CHECKING:
    import pandas

_META = "piste"
"""The column, or the attribute of a frame, that holds what is not one number per unit."""


def unit_columns(e: Explanation) -> dict[str, list[Any]]:
    """Unit columns, then ``score`` and ``score_error``; class-wise ones as ``score[label]``."""
    columns: dict[str, list[Any]] = {
        name: [getattr(unit, name) for unit in e.units] for name in UNIT_COLUMNS
    }
    for name in e.scores:
        for suffix, arrays in (("", e.scores), ("_error", e.errors)):
            if name not in arrays:
                continue
            array = arrays[name]
            if array.ndim == 1:
                columns[name + suffix] = array.tolist()
            else:
                for label, column in zip(e.output.labels, array.T, strict=True):
                    columns[f"{name}{suffix}[{label}]"] = column.tolist()
    return columns


def from_columns(meta: Mapping[str, Any], columns: Mapping[str, list[Any]]) -> Explanation:
    """The explanation that :func:`describe` and :func:`unit_columns` tell of."""
    kinds = (str, int, int, int, int)
    rows = zip(*(columns[name] for name in UNIT_COLUMNS), strict=True)
    units = [Unit(*(kind(cell) for kind, cell in zip(kinds, row, strict=True))) for row in rows]
    labels = meta["output"]["labels"]
    scores: dict[str, Any] = {}
    errors: dict[str, Any] = {}
    for column in columns:
        if column in UNIT_COLUMNS or column == _META:
            continue
        name = column.split("[", 1)[0]
        group = errors if name.endswith("_error") else scores
        key = name.removesuffix("_error")
        if "[" in column:
            if key not in group:
                parts = [columns[f"{name}[{label}]"] for label in labels]
                group[key] = np.array(parts, dtype=np.float64).T
        else:
            group[key] = columns[column]
    return build(meta, units, scores, errors)


def to_frame(e: Explanation) -> pandas.DataFrame:
    """A table with one row per unit; ``attrs["piste"]`` holds the rest."""
    pandas = need("pandas", "tables", "A DataFrame")
    frame = pandas.DataFrame(unit_columns(e))
    frame.attrs[_META] = json.dumps(describe(e), ensure_ascii=False)
    return frame


def comparison_frame(explanations: Mapping[str, Explanation]) -> pandas.DataFrame:
    """A table with one row per unit of an input, and the ranking score of every method."""
    pandas = need("pandas", "tables", "A DataFrame")
    first = unit_columns(next(iter(explanations.values())))
    columns = {name: first[name] for name in UNIT_COLUMNS}
    return pandas.DataFrame(columns | {name: e.score() for name, e in explanations.items()})


def from_frame(frame: pandas.DataFrame) -> Explanation:
    """The explanation a frame was made of."""
    if _META not in frame.attrs:
        raise PisteError("This table was not made from an explanation: attrs['piste'] is missing.")
    columns = {str(name): frame[name].tolist() for name in frame.columns}
    return from_columns(json.loads(frame.attrs[_META]), columns)


def to_csv(e: Explanation, path: str | Path) -> None:
    """A CSV file, numbers to full precision."""
    columns = unit_columns(e)
    columns[_META] = [json.dumps(describe(e), ensure_ascii=False)] + [""] * (len(e) - 1)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    write_text(path, buffer.getvalue())


def from_csv(text: str) -> Explanation:
    """The explanation that :func:`to_csv` wrote."""
    csv.field_size_limit(2**31 - 1)
    rows = list(csv.reader(io.StringIO(text, newline="")))
    if not rows or _META not in rows[0]:
        raise PisteError(
            "This CSV was not made from an explanation: the column 'piste' is missing."
        )
    columns: dict[str, list[Any]] = {name: list(cells) for name, *cells in zip(*rows, strict=True)}
    for name, cells in columns.items():
        if name not in (*UNIT_COLUMNS, _META):
            columns[name] = [float(cell) if cell else float("nan") for cell in cells]
    return from_columns(json.loads(columns[_META][0]), columns)


def to_parquet(e: Explanation, path: str | Path) -> None:
    """A Parquet file that any reader takes as a table."""
    need("pyarrow", "tables", "A Parquet file")
    buffer = io.BytesIO()
    to_frame(e).to_parquet(buffer, index=False)
    write_bytes(path, buffer.getvalue())


def from_parquet(path: Path) -> Explanation:
    """The explanation that :func:`to_parquet` wrote."""
    need("pandas", "tables", "A Parquet file")
    return from_frame(read_parquet(path).to_pandas())


def read(path: str | Path) -> Explanation:
    """A stored explanation: .json, .csv or .parquet."""
    file = Path(path)
    if file.suffix not in (".csv", ".parquet") or not file.is_file():
        return read_text(path, from_json, "explanation")
    if file.suffix == ".csv":
        return read_text(path, from_csv, "explanation")
    try:
        return from_parquet(file)
    except PisteError as problem:
        raise PisteError(f"{str(path)!r}: {problem}") from problem
    except READING_ERRORS as problem:
        raise PisteError(
            f"{str(path)!r} is not a stored explanation, or not a whole one ({one_line(problem)})."
        ) from problem
