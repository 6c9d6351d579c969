"""The documents of a corpus run, found, sorted and paged in SQL with bound parameters only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from piste.corpus.blocks import DOCUMENT_COLUMNS
from piste.corpus.sql import connected, query_rows
from piste.errors import PisteError, shorten
from piste.serve.schemas import DocumentRow, Documents, Neighbours, Sort

_TRUTHS = ("label", "labels", "class", "category", "gold", "truth", "target_label", "y")
"""Names of columns that hold numbers of classes, if numbers are what they hold."""
_SHOWN = 200
"""Signs of a text in a list."""
_BEFORE = 60
_CELL = 200
_MOST_LABELS = 200
_LABEL = 1000
"""Signs of a label: a query for documents has no more of them."""
_MOST_COLUMNS = 50
_MOST_CHOICES = 30
"""Different cells of a column that are offered as a list; of more, any piece is searched for."""
EXPORTED = (
    "document", "id", "text", "pair", "predicted", "probability", "target", "value",
    "r2", "calls", "units", "note",
)  # fmt: skip
"""Columns of an export, before those that were kept."""


class FilterError(PisteError):
    """A filter that this run has no column for."""


@dataclass(frozen=True)
class DocumentQuery:
    """Which documents, in which order: all that is given must hold."""

    search: str = ""
    predicted: str | None = None
    cells: tuple[tuple[str, str], ...] = ()
    """Kept columns, and what is wanted in them."""
    least_r2: float | None = None
    most_r2: float | None = None
    note: str = ""
    """In what was noted of the document: how many tokens it has, whether it was cut off."""
    sort: Sort = "surprise"
    descending: bool = True
    offset: int = 0
    limit: int = 25


@dataclass(frozen=True)
class Facts:
    """What all questions to a run need to know of it."""

    labels: tuple[str, ...]
    """Of the model, in its order."""
    predicted: tuple[str, ...]
    kept: tuple[str, ...]
    truth: str | None
    """The kept column with the label that the data give a document."""
    numbered: bool
    """Whether that column has numbers instead of names."""
    sure: bool
    """Whether the model gives probabilities."""
    measured: bool
    """Whether any explanation was checked."""
    noted: bool = False
    """Whether any document has a note."""
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of kept columns with few different cells, these."""

    @property
    def surprise(self) -> str:
        """What surprise means in this run."""
        if self.truth is not None and self.sure:
            return (
                f"Surprise is 1 minus the probability that the model gives to the label in the "
                f"data (the column {self.truth}): above 0.5 they mostly disagree, near 1 the model "
                "is sure of something else."
            )
        parts = []
        if self.sure:
            parts.append("how unsure the model is")
        if self.measured:
            parts.append("how badly the explanation predicts the model")
        if not parts:
            return "Surprise is not known: there are neither probabilities nor checks."
        return (
            f"Surprise is {' and '.join(parts)}, as a rank among all documents of the run from 0 "
            f"(least) to 1 (most){', averaged' if len(parts) > 1 else ''}."
        )


def facts(connection: Any) -> Facts:
    """Look a run over."""
    columns = [row[0] for row in query_rows(connection, "DESCRIBE documents")]
    if "about" not in columns:  # no part is there yet
        return Facts((), (), (), None, False, False, False)
    kept = tuple(name for name in columns if name not in DOCUMENT_COLUMNS and len(name) <= _CELL)[
        :_MOST_COLUMNS
    ]
    found = query_rows(
        connection,
        "SELECT CAST(about -> 'output' -> 'labels' AS VARCHAR[]) FROM documents LIMIT 1",
    )
    labels = tuple(found[0][0]) if found else ()
    predicted = query_rows(
        connection,
        f"SELECT predicted[:{_LABEL}] AS label FROM documents GROUP BY ALL "
        f"ORDER BY count(*) DESC LIMIT {_MOST_LABELS}",
    )
    [(sure, measured, noted)] = query_rows(
        connection, "SELECT count(probability) > 0, count(r2) > 0, count(note) > 0 FROM documents"
    )
    truth, numbered = _truth(connection, kept, labels)
    names = tuple(sorted(row[0] for row in predicted))
    choices = {name: cells for name in kept if (cells := _choices(connection, name))}
    return Facts(
        labels, names, kept, truth, numbered, bool(sure), bool(measured), bool(noted), choices
    )


def _choices(connection: Any, column: str) -> tuple[str, ...]:
    """The different cells of a column, if they are few and short."""
    rows = query_rows(
        connection,
        f"SELECT DISTINCT {quoted(column)}[:{_CELL + 1}] AS cell FROM documents "
        f"WHERE cell IS NOT NULL LIMIT {_MOST_CHOICES + 1}",
    )
    cells = sorted(str(row[0]) for row in rows)
    few = len(cells) <= _MOST_CHOICES and all(len(cell) <= _CELL for cell in cells)
    return tuple(cells) if few else ()


def _truth(connection: Any, kept: Sequence[str], labels: Sequence[str]) -> tuple[str | None, bool]:
    """The first kept column that has nothing but labels in it, by name or by number.

    Numbers are believed only where the column's name says what they are.
    """
    names = {label.lower() for label in labels}
    numbers = {str(number) for number in range(len(labels))}
    for column in sorted(kept, key=lambda name: name.lower() not in _TRUTHS):
        rows = query_rows(
            connection,
            f"SELECT DISTINCT lower({quoted(column)}) AS cell FROM documents "
            f"WHERE cell IS NOT NULL LIMIT {len(labels) + 1}",
        )
        cells = {row[0] for row in rows}
        if len(labels) > 1 and cells and cells <= names:
            return column, False
        if len(labels) > 1 and cells and cells <= numbers and column.lower() in _TRUTHS:
            return column, True
    return None, False


def page(folder: Path, known: Facts, wanted: DocumentQuery) -> Documents:
    """The documents that are wanted, and how many there are in all."""
    rows: list[DocumentRow] = []
    total = 0
    if known.labels:
        where, given = _where(known, wanted)
        with connected(folder) as connection:
            [(total,)] = _named(connection, f"SELECT count(*) FROM documents {where}", given)
            rows = _rows(connection, known, f"{where} ORDER BY {_order(wanted)}", given, wanted)
    return Documents(
        total=total,
        offset=wanted.offset,
        rows=rows,
        predicted=list(known.predicted),
        kept=list(known.kept),
        choices={name: list(cells) for name, cells in known.choices.items()},
        measured=known.measured,
        noted=known.noted,
        truth=known.truth,
        surprise=known.surprise,
    )


def _where(known: Facts, wanted: DocumentQuery) -> tuple[str, dict[str, Any]]:
    """What must hold, in SQL, and its parameters."""
    limits: list[str] = []
    given: dict[str, Any] = {}
    if wanted.search:
        limits.append(
            "(contains(lower(text), lower($search)) OR contains(lower(pair), lower($search)))"
        )
        given["search"] = wanted.search
    if wanted.predicted is not None:
        limits.append("predicted = $predicted")
        given["predicted"] = wanted.predicted
    for number, (column, cell) in enumerate(wanted.cells):
        if column not in known.kept:
            raise FilterError(
                f"column: expected one of {', '.join(known.kept) or 'none'}, got {shorten(column)}."
            )
        name, sign = f"cell{number}", quoted(column)
        exact = f"{sign} = ${name}"
        limits.append(
            exact if column in known.choices else f"contains(lower({sign}), lower(${name}))"
        )
        given[name] = cell
    for name, sign in (("least_r2", ">="), ("most_r2", "<=")):
        if (bound := getattr(wanted, name)) is not None:
            limits.append(f"r2 {sign} ${name}")
            given[name] = bound
    if wanted.note:
        limits.append("contains(lower(note), lower($note))")
        given["note"] = wanted.note
    return (f"WHERE {' AND '.join(limits)}" if limits else ""), given


def _order(wanted: DocumentQuery) -> str:
    way = "DESC" if wanted.descending else "ASC"
    return f"{quoted(wanted.sort)} {way} NULLS LAST, document"


def neighbours(folder: Path, known: Facts, wanted: DocumentQuery, document: int) -> Neighbours:
    """What stands before and after a document among those that are wanted."""
    where, given = _where(known, wanted)
    told, own = _told(known)
    sql = f"""
        WITH {told}, placed AS (
            SELECT document, lag(document) OVER w AS before, lead(document) OVER w AS after,
                   row_number() OVER w AS place, count(*) OVER () AS total
            FROM told {where} WINDOW w AS (ORDER BY {_order(wanted)})
        )
        SELECT before, after, place, total FROM placed WHERE document = $document
    """
    with connected(folder) as connection:
        rows = _named(connection, sql, given | own | {"document": document})
    before, after, place, total = rows[0] if rows else (None, None, None, 0)
    return Neighbours(before=before, after=after, place=place, total=total)


def exported(folder: Path, known: Facts, wanted: DocumentQuery, most: int) -> Iterator[list[Any]]:
    """The names of all columns, then all documents that are wanted, at most ``most``."""
    if not known.labels:
        yield [*EXPORTED, "surprise"]
        return
    where, given = _where(known, wanted)
    told, own = _told(known)
    columns = ", ".join(quoted(name) for name in (*EXPORTED, "surprise", *known.kept))
    sql = f"WITH {told} SELECT {columns} FROM told {where} ORDER BY {_order(wanted)} LIMIT $most"
    with connected(folder) as connection:
        found = connection.execute(sql, given | own | {"most": most})
        yield [*EXPORTED, "surprise", *known.kept]
        while rows := found.fetchmany(500):
            yield from (list(row) for row in rows)


def one(folder: Path, known: Facts, document: int) -> DocumentRow | None:
    """One document as it stands in a list."""
    if not known.labels:
        return None
    with connected(folder) as connection:
        given = {"document": document}
        found = _rows(
            connection, known, "WHERE document = $document", given, DocumentQuery(limit=1)
        )
    return found[0] if found else None


def _named(connection: Any, sql: str, given: dict[str, Any]) -> list[tuple[Any, ...]]:
    return list(connection.execute(sql, given or None).fetchall())


def _rows(
    connection: Any, known: Facts, end: str, given: dict[str, Any], wanted: DocumentQuery
) -> list[DocumentRow]:
    """Rows of a question."""
    begin = "1"
    if wanted.search:
        begin = f"greatest(strpos(lower(text), lower($search)) - {_BEFORE}, 1)"
    kept = "".join(f", {quoted(name)}[:{_CELL}]" for name in known.kept)
    told, own = _told(known)
    sql = f"""
        WITH {told}
        SELECT document, id[:{_CELL}], predicted[:{_LABEL}], probability, r2, units, surprise,
               place, agrees,
               substr(text, {begin}, {_SHOWN}), {begin} > 1,
               length(text) >= {begin} + {_SHOWN}{kept}
        FROM told {end} LIMIT $limit OFFSET $offset
    """
    own |= {"limit": wanted.limit, "offset": wanted.offset}
    return [_row(row, known) for row in _named(connection, sql, given | own)]


def _row(cells: tuple[Any, ...], known: Facts) -> DocumentRow:
    document, own, predicted, chance, r2, units, surprise, place, agrees, *rest = cells
    text, cut_before, cut_after, *kept = rest
    line = " ".join(text.split())
    return DocumentRow(
        document=document,
        id=own,
        predicted=predicted,
        probability=chance,
        r2=r2,
        units=units,
        surprise=surprise,
        truth=None if place is None else known.labels[place],
        agrees=agrees,
        text=f"{'…' if cut_before else ''}{line}{'…' if cut_after else ''}",
        kept=dict(zip(known.kept, kept, strict=True)),
    )


def _told(known: Facts) -> tuple[str, dict[str, Any]]:
    """All documents with what is told of them, in SQL, and its parameters.

    Surprise is told before anything is left out, for it may be a rank.
    """
    truth, agrees, surprise = _surprise(known)
    given: dict[str, Any] = {}
    if known.truth is not None:
        given["labels"] = list(known.labels)
        if not known.numbered:
            given["lower"] = [label.lower() for label in known.labels]
    sql = (
        f"told AS (SELECT *, {truth} AS place, {agrees} AS agrees, {surprise} AS surprise "
        "FROM documents)"
    )
    return sql, given


def _surprise(known: Facts) -> tuple[str, str, str]:
    """In SQL: the number of the data's label, whether it was predicted, and the surprise."""
    if known.truth is None:
        ranks = [
            f"percent_rank() OVER (ORDER BY {column} DESC NULLS FIRST)"
            for column, there in (("probability", known.sure), ("r2", known.measured))
            if there
        ]
        mean = f"({' + '.join(ranks)}) / {len(ranks)}" if ranks else "CAST(NULL AS DOUBLE)"
        return "CAST(NULL AS INTEGER)", "CAST(NULL AS BOOLEAN)", mean
    column = quoted(known.truth)
    if known.numbered:
        truth = f"TRY_CAST({column} AS INTEGER)"
    else:
        truth = f"(list_position($lower, lower({column})) - 1)"
    agrees = f"({truth} = list_position($labels, predicted) - 1)"
    # Most documents agree, and need no look into what else is known of them.
    surprise = (
        f"CASE WHEN {agrees} THEN 1 - probability ELSE 1 - "
        f"CAST(about -> 'output' -> 'probabilities' AS DOUBLE[])[{truth} + 1] END"
    )
    return truth, agrees, surprise


def quoted(column: str) -> str:
    """A column's name as SQL has it: quotes in it are doubled."""
    return '"' + column.replace('"', '""') + '"'
