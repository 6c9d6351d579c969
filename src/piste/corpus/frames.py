"""Results of a corpus run as data frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from piste.corpus.part_store import errors, read_manifest
from piste.errors import PisteError, need
from piste.validation import choose

if TYPE_CHECKING:
    import pandas

_TABLES = ("documents", "units", "errors")


def frame(
    folder: str | Path, table: Literal["documents", "units", "errors"] = "documents"
) -> pandas.DataFrame:
    """A table of a corpus run: its documents, its units, or the rows that were refused."""
    choose("table", table, _TABLES)
    read_manifest(folder)
    library: Any = need("pandas", "tables", "A data frame")
    if table == "errors":
        return library.DataFrame(list(errors(folder)), columns=["document", "source", "reason"])
    parquet: Any = need("pyarrow.parquet", "tables", "Reading a corpus run")
    parts = sorted((Path(folder) / table).glob("part-*.parquet"))
    try:
        read = [parquet.read_table(part).to_pandas() for part in parts]
    except (OSError, ValueError) as problem:
        raise PisteError(f"{str(folder)!r} has a broken part ({problem}).") from problem
    filled = [one for one in read if len(one)] or read[:1]
    return library.concat(filled, ignore_index=True) if filled else library.DataFrame()
