"""Which rows can be explained: a document, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, TypeAlias

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
    fields: tuple[str, ...] | None = None
    """Columns that fill the fields of a prompt, instead of a text."""

    @property
    def wanted(self) -> tuple[str, ...]:
        """All of them, each once."""
        named = (*(self.fields or (self.text, self.pair)), self.id, *(self.keep or ()))
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def of_prompt(self, fields: Sequence[str]) -> Columns:
        """The same for a prompt: one with several fields takes the columns of their names."""
        if len(fields) < 2:
            return self
        for name, given in (("text", self.text), ("pair", self.pair)):
            if given not in ("text", None):
                raise PisteError(
                    f"{name} column: expected none, because the prompt has several fields "
                    f"({', '.join(fields)}) and takes the columns of these names, got {given!r}: "
                    "leave it out, and rename columns or fields where they differ."
                )
        return replace(self, fields=tuple(fields))

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
            used = {own, *taken} if self.fields else {self.text, self.pair, own, *taken}
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


RowInput: TypeAlias = str | tuple[str, str] | dict[str, Any]


@dataclass(frozen=True)
class Document:
    """One input of a corpus: a text, a pair of texts, or what fills the fields of a prompt."""

    number: int
    """Counted over all rows of all files, bad ones too."""
    source: str
    input: RowInput
    id: str | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)


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
        given = _input(row.cells, columns)
    except PisteError as problem:
        return RefusedDocument(number, row.source, str(problem))
    own = None if columns.id is None else row.cells.get(columns.id)
    kept = {name: row.cells.get(name) for name in columns.keep or ()}
    return Document(number, row.source, given, None if own is None else str(own), kept)


def _input(cells: Mapping[str, Any], columns: Columns) -> RowInput:
    """What the columns of a row say to the model."""
    if columns.fields:
        return {name: _value(cells, name) for name in columns.fields}
    text = _text(cells, columns.text)
    return text if columns.pair is None else (text, _text(cells, columns.pair))


def _value(cells: Mapping[str, Any], column: str) -> Any:
    """What fills a field: a text, several, or several by name, none of them empty."""
    value = _cell(cells, column)
    if hasattr(value, "tolist"):  # pandas has lists as arrays
        value = value.tolist()
    try:
        if isinstance(value, Mapping):  # Parquet fills names that only other rows have by None
            texts = {str(name): text for name, text in value.items() if text is not None}
            return {name: _checked(text) for name, text in texts.items()} or _checked(None)
        if isinstance(value, list):
            return [_checked(text) for text in value] or _checked(None)
        return _checked(value)
    except PisteError as problem:
        raise PisteError(f"{column}: {problem}") from problem


def _text(cells: Mapping[str, Any], column: str) -> str:
    return _checked(_cell(cells, column))


def _cell(cells: Mapping[str, Any], column: str) -> Any:
    if column not in cells:
        raise PisteError(f"no {column!r}")
    return cells[column]


def _checked(text: Any) -> str:
    if text is None:
        raise PisteError("empty")
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
