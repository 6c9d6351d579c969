"""Which rows can be explained: a document, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

from piste.data.tables import TableFile, TableRow, need_columns
from piste.errors import PisteError, shorten

MOST_CHARACTERS = 200_000
"""Longer texts are no documents but files that slipped in, and would hold up all others."""


@dataclass(frozen=True)
class Columns:
    """Which columns hold what."""

    text: str = "text"
    pair: str | None = None
    id: str | None = None
    """Whose cells name the rows; None: the column ``id``, if there is one."""
    keep: tuple[str, ...] | None = None
    """Columns that are copied to the results, to filter and group by; None: the small ones."""

    @property
    def wanted(self) -> tuple[str, ...]:
        """All of them, each once."""
        named = (self.text, self.pair, self.id, *(self.keep or ()))
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def are_in(self, files: Sequence[TableFile]) -> bool:
        """Whether the files have all of them, as far as their first rows show."""
        there = _first_cells(files)
        return not there or all(name in there for name in self.wanted)

    def settled(self, files: Sequence[TableFile], taken: Iterable[str]) -> Columns:
        """The same with the columns named that were left to choose.

        Small columns have numbers, or texts of at most a hundred characters, in the first rows.
        Names that results need themselves (``taken``) are left out.
        """
        there = _first_cells(files)
        if there:  # of JSON lines nobody else knows before the work
            need_columns(files[0].name, there, self.wanted)
        own = self.id if self.id is not None or _ID not in there else _ID
        keep = self.keep
        if keep is None:
            used = {self.text, self.pair, own, *taken}
            small = [name for name, cells in there.items() if all(map(_is_small, cells))]
            keep = tuple([name for name in small if name not in used][:_MOST_KEPT])
        return replace(self, id=own, keep=keep)


_ID = "id"
_LOOKED_AT, _MOST_KEPT, _LONGEST_KEPT = 1000, 20, 100
"""Rows by which columns are known, how many are kept, and the longest text in one."""


def _first_cells(files: Sequence[TableFile]) -> dict[str, list[Any]]:
    """The cells of the first rows, by the columns that all files have."""
    named = [there for there in (file.columns() for file in files) if there is not None]
    common = [name for name in named[0] if all(name in own for own in named)] if named else None
    rows = chain.from_iterable(file.rows(common or ()) for file in files)
    found: dict[str, list[Any]] = {name: [] for name in common or ()}
    for row in islice((row for row in rows if not row.problem), _LOOKED_AT):
        for name, cell in row.cells.items():
            if common is None or name in found:
                found.setdefault(name, []).append(cell)
    return found


def _is_small(cell: Any) -> bool:
    if isinstance(cell, str):
        return len(cell) <= _LONGEST_KEPT
    return cell is None or isinstance(cell, (bool, int, float))


@dataclass(frozen=True)
class Document:
    """One text, or a pair of texts, of a corpus."""

    number: int
    """Counted over all rows of all files, bad ones too."""
    source: str
    text: str
    pair: str | None = None
    id: str | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)

    @property
    def input(self) -> str | tuple[str, str]:
        return self.text if self.pair is None else (self.text, self.pair)


@dataclass(frozen=True)
class RefusedDocument:
    """A row that is no document."""

    number: int
    source: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """As a line of the errors file has it."""
        return {"document": self.number, "source": self.source, "reason": self.reason}


@dataclass(frozen=True)
class Block:
    """Rows that are explained together and stored as one part: all or nothing."""

    number: int
    documents: tuple[Document, ...]
    refused: tuple[RefusedDocument, ...]

    def __len__(self) -> int:
        return len(self.documents) + len(self.refused)


def blocks(rows: Iterable[TableRow], columns: Columns, size: int) -> Iterator[Block]:
    """The rows in blocks of ``size``, always the same ones.

    >>> from pathlib import Path
    >>> from piste.data.tables import TableFile
    >>> file = TableFile(Path("few.csv"), "few.csv")
    >>> rows = [TableRow(file, n, {"text": text}) for n, text in enumerate(("one", "", "two"), 1)]
    >>> [(len(block.documents), len(block.refused)) for block in blocks(rows, Columns(), 2)]
    [(1, 1), (1, 0)]
    """
    numbered = enumerate(rows)
    number = 0
    while some := list(islice(numbered, size)):
        checked = [check(place, row, columns) for place, row in some]
        documents = tuple(one for one in checked if isinstance(one, Document))
        refused = tuple(one for one in checked if isinstance(one, RefusedDocument))
        yield Block(number, documents, refused)
        number += 1


def check(number: int, row: TableRow, columns: Columns) -> Document | RefusedDocument:
    """The document in a row, or why there is none."""
    if row.problem:
        return RefusedDocument(number, row.source, row.problem)
    try:
        text = _text(row.cells, columns.text)
        pair = None if columns.pair is None else _text(row.cells, columns.pair)
    except PisteError as problem:
        return RefusedDocument(number, row.source, str(problem))
    own = None if columns.id is None else row.cells.get(columns.id)
    kept = {name: row.cells.get(name) for name in columns.keep or ()}
    return Document(number, row.source, text, pair, None if own is None else str(own), kept)


def _text(cells: Mapping[str, Any], column: str) -> str:
    text = cells.get(column)
    if text is None:
        raise PisteError(f"no {column!r}" if column not in cells else "empty")
    if isinstance(text, bytes):
        raise PisteError("bytes, not text")
    if not isinstance(text, str):
        raise PisteError(f"not text but {type(text).__name__}: {shorten(text)}")
    if not text.strip():
        raise PisteError("empty")
    if len(text) > MOST_CHARACTERS:
        raise PisteError(f"too long: {len(text):,} characters, at most {MOST_CHARACTERS:,}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise PisteError(f"not UTF-8 (sign {problem.start})") from problem
    return text


def check_kept(keep: Sequence[str], taken: Iterable[str]) -> None:
    """Refuse columns to keep whose names the results need themselves."""
    for name in keep:
        if name in set(taken):
            raise PisteError(
                f"The column {name!r} can't be kept, because results have one of that name: "
                "rename it in the input."
            )
