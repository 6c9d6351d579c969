"""Tables in memory, read like files: frames of pandas and polars, data sets, Arrow, lists."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from piste.data.tables import TableFile, TableRow
from piste.errors import PisteError, shorten

_BATCH = 1024


@dataclass(frozen=True)
class FrameTable(TableFile):
    """A table that somebody holds in memory; it is only read."""

    frame: Any = None

    def rows(self, columns: Sequence[str]) -> Iterator[TableRow]:
        number = 0
        for some in _batches(self.frame, [name for name in columns if name in self.names]):
            for cells in some:
                number += 1
                whole = isinstance(cells, Mapping)
                plain = {str(name): _plain(cell) for name, cell in cells.items()} if whole else {}
                problem = "" if whole else f"no dictionary of cells but {type(cells).__name__}"
                yield TableRow(self, number, plain, problem)

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns; of a list of dictionaries those of the first."""
        if isinstance(self.frame, list):
            first = self.frame[0] if self.frame else {}
            return tuple(map(str, first)) if isinstance(first, Mapping) else ()
        names = getattr(self.frame, "column_names", None)
        return tuple(map(str, self.frame.columns if names is None else names))

    def columns(self) -> tuple[str, ...] | None:
        return None if isinstance(self.frame, list) else self.names

    def count(self, columns: Sequence[str]) -> int:
        return len(self.frame)

    def describe(self, columns: Sequence[str]) -> dict[str, Any]:
        """Name, rows and a digest of the cells that are used."""
        digest, rows = hashlib.sha256(), 0
        for row in self.rows(columns):
            rows += 1
            cells = repr([row.cells.get(name) for name in columns])
            digest.update(cells.encode("utf-8", "replace"))
        return {"file": self.name, "rows": rows, "digest": digest.hexdigest()[:16]}


def frame_table(given: Any) -> FrameTable:
    """A table of what somebody holds in memory.

    >>> [row.cells for row in frame_table([{"text": "Good."}]).rows(["text"])]
    [{'text': 'Good.'}]
    """
    kind = type(given).__name__
    known = isinstance(given, list) or hasattr(given, "columns") or hasattr(given, "column_names")
    if not known or isinstance(given, Mapping):
        parts = ", ".join(map(str, given)) if isinstance(given, Mapping) else ""
        advice = f": choose one of {parts}" if parts else ""
        raise PisteError(
            "Expected a file, a folder, a data frame, a data set or a list of dictionaries, got "
            f"{shorten(given)} of type {kind}{advice}."
        )
    if not hasattr(given, "__len__"):
        raise PisteError(
            f"Expected a table of known length, got a stream ({kind}): save it to a file first, "
            "for example by to_parquet."
        )
    if isinstance(given, list):
        given = [{"text": one} if isinstance(one, str) else one for one in given]
    return FrameTable(Path(kind), kind, given)


def _batches(frame: Any, columns: list[str]) -> Iterator[Sequence[Any]]:
    """Some rows at a time, each with these columns."""
    for start in range(0, len(frame), _BATCH):
        end = min(start + _BATCH, len(frame))
        if isinstance(frame, list):
            yield frame[start:end]
        elif hasattr(frame, "iloc"):  # pandas
            own = [name for name in frame.columns if str(name) in columns]
            yield frame[own].iloc[start:end].to_dict("records")
        elif hasattr(frame, "to_dicts"):  # polars
            yield frame.select(columns).slice(start, end - start).to_dicts()
        elif hasattr(frame, "to_pylist"):  # Arrow
            yield frame.select(columns).slice(start, end - start).to_pylist()
        else:  # datasets
            own = frame.select_columns(columns) if hasattr(frame, "select_columns") else frame
            cells = own[start:end]
            yield [{name: cells[name][number] for name in columns} for number in range(end - start)]


def _plain(cell: Any) -> Any:
    """A cell as a file would have it: Python's own numbers, None where it is missing."""
    if type(cell).__name__ in ("NAType", "NaTType"):
        return None
    cell = cell.item() if hasattr(cell, "item") and getattr(cell, "ndim", 1) == 0 else cell
    return None if isinstance(cell, float) and cell != cell else cell
