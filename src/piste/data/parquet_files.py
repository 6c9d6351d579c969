"""Parquet files of results, read within bounds: whoever made one may mean harm.

A small file can stand for terabytes: a page of it is compressed, and a cell that is repeated is
stored once. What a file says of its size is checked first. Texts are read as a dictionary, each
once, and what they would be in full is checked before anything is made of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from piste.errors import need
from piste.validation import check_size

MOST_BYTES = 2_000_000_000
"""Of all columns, in full."""
MOST_CELLS = 50_000_000
_ADVICE = "it is no result, or one that was made to fill memory"


def read_parquet(path: str | Path, columns: Iterable[str] | None = None) -> Any:
    """The table in a file, of these columns or of all; columns of texts are dictionaries."""
    arrow: Any = need("pyarrow", "tables", "A Parquet file")
    parquet: Any = need("pyarrow.parquet", "tables", "A Parquet file")
    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        named = repr(Path(path).name)
        check_size(named, file.metadata.num_rows * len(schema), MOST_CELLS, "cells", _ADVICE)
        groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
        told = sum(group.total_byte_size for group in groups)
        check_size(named, told, MOST_BYTES, "bytes", _ADVICE)
        texts = [
            one.name
            for one in schema
            if arrow.types.is_string(one.type) or arrow.types.is_large_string(one.type)
        ]
    wanted = None if columns is None else list(columns)
    table = parquet.read_table(path, columns=wanted, read_dictionary=texts)
    check_size(named, _characters(table), MOST_BYTES, "bytes of text", _ADVICE)
    return table


def _characters(table: Any) -> int:
    """Bytes of all texts, each as often as it stands there."""
    compute: Any = need("pyarrow.compute", "tables", "A Parquet file")
    total = 0
    for column in table.columns:
        for chunk in column.chunks:
            if hasattr(chunk, "dictionary") and len(chunk):
                sizes = compute.binary_length(chunk.dictionary)
                each = compute.take(sizes, chunk.indices)
                total += int(compute.sum(compute.cast(each, "int64")).as_py() or 0)
    return total
