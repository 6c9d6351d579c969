"""Explanations of a block as two tables: one row per document, one row per unit."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from piste.corpus.documents import Block, Document, RefusedDocument
from piste.data.parquet_files import read_parquet
from piste.errors import PisteError, need
from piste.prompt_text import PromptText

if TYPE_CHECKING:
    from piste.explanation import Explanation

DOCUMENT_COLUMNS = (
    "document",
    "id",
    "source",
    "text",
    "pair",
    "predicted",
    "probability",
    "target",
    "value",
    "r2",
    "calls",
    "units",
    "note",
    "about",
)
"""What the table of documents has beside the columns that are kept."""
_CONSTANT = ("classifier", "versions", "seconds", "input")
"""What all documents share stands in the manifest; seconds differ from run to run; texts have
columns of their own."""
_KINDS = {"document": "int64", "calls": "int64", "units": "int64"}
_NUMBERS = ("probability", "value", "r2")
_UNIT_KINDS = {
    "document": "int64",
    "unit": "int32",
    "text": "string",
    "start": "int32",
    "end": "int32",
    "segment": "int32",
    "tokens": "int32",
}


@dataclass(frozen=True)
class Part:
    """A block's results as they are stored: bytes of two Parquet files, and the refused rows."""

    number: int
    documents: bytes
    units: bytes
    refused: tuple[RefusedDocument, ...]
    rows: int
    calls: int
    told: bytes = b""
    """What its documents told for those of later stages."""

    @property
    def errors(self) -> str:
        """The refused rows as JSON lines."""
        lines = (json.dumps(one.to_dict(), ensure_ascii=False) for one in self.refused)
        return "".join(f"{line}\n" for line in lines)


def make_part(
    block: Block,
    explained: Sequence[tuple[Document, Explanation]],
    refused: Sequence[RefusedDocument],
    kept: Sequence[str],
) -> Part:
    """The tables of a block; without an explanation there is none of units.

    Nobody could say which scores such a table has, and all parts must have the same columns.
    """
    from piste.data import unit_tables  # not above: a question to results reads no explanation

    arrow: Any = need("pyarrow", "tables", "A corpus run")
    documents = [_document(document, e) for document, e in explained]
    table = {name: [row[name] for row in documents] for name in DOCUMENT_COLUMNS}
    fields = {name: arrow.type_for_alias(_kind(name)) for name in DOCUMENT_COLUMNS}
    for name in kept:
        table[name] = [_plain(document.kept[name]) for document, _ in explained]
        fields[name] = arrow.string()
    units: dict[str, list[Any]] = {name: [] for name in _UNIT_KINDS}
    for document, e in explained:
        columns = unit_tables.unit_columns(e)
        units["document"] += [document.number] * len(e)
        units["unit"] += range(len(e))
        for name, cells in columns.items():
            units.setdefault(name, []).extend(cells)
    kinds = {name: arrow.type_for_alias(_UNIT_KINDS.get(name, "float32")) for name in units}
    return Part(
        block.number,
        _bytes(arrow, table, fields),
        _bytes(arrow, units, kinds) if explained else b"",
        tuple(refused),
        len(block),
        sum(e.calls for _, e in explained),
    )


def _document(document: Document, e: Explanation) -> dict[str, Any]:
    from piste.data import storage

    about = storage.describe(e)
    text, pair = e.input if isinstance(e.input, tuple) else (e.input, None)
    for level in about.get("levels", ()):
        level["seconds"] = None
    kept = {name: one for name, one in about.items() if name not in _CONSTANT}
    if isinstance(e.input, PromptText):
        kept["input"] = {name: one for name, one in about["input"].items() if name != "prompt"}
    note = "; ".join(f"{name}: {value}" for name, value in _notes(e).items())
    value = e.output.value
    return {
        "document": document.number,
        "id": document.id,
        "source": document.source,
        "text": text,
        "pair": pair,
        "predicted": e.output.label,
        "probability": e.output.probability,
        "target": e.target.name,
        "value": value if isinstance(value, float) else None,
        "r2": _finite(e.fidelity.r2),
        "calls": e.calls,
        "units": len(e),
        "note": note or None,
        "about": json.dumps(kept, ensure_ascii=False),
    }


def _notes(e: Explanation) -> dict[str, Any]:
    """What was done to the input: cut, say."""
    own = e.settings.get("input", {})
    return {name: value for name, value in own.items() if name not in ("removal", "units")}


def _finite(number: float) -> float | None:
    return number if number == number and abs(number) != float("inf") else None


def _plain(cell: Any) -> str | None:
    """Kept cells are text in the results: two files may have one column in two kinds."""
    if cell is None or isinstance(cell, str):
        return cell
    return str(cell) if isinstance(cell, (int, float, bool)) else json.dumps(cell, default=str)


def _kind(name: str) -> str:
    return _KINDS.get(name, "float64" if name in _NUMBERS else "string")


def _bytes(arrow: Any, columns: Mapping[str, Sequence[Any]], kinds: Mapping[str, Any]) -> bytes:
    parquet: Any = need("pyarrow.parquet", "tables", "A corpus run")
    arrays = [arrow.array(cells, type=kinds[name]) for name, cells in columns.items()]
    buffer = io.BytesIO()
    table = arrow.Table.from_arrays(arrays, names=list(columns))
    parquet.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def read_part(
    folder: Path, number: int, manifest: Mapping[str, Any], only: int | None = None
) -> list[Explanation]:
    """The explanations of one part, as they were; ``only`` that of one document if it is named."""
    from piste.data import unit_tables

    name = part_name(number)
    documents = read_parquet(folder / "documents" / name)
    if not len(documents):
        return []
    units = read_parquet(folder / "units" / name)
    found, start = [], 0
    sizes = zip(documents["document"].to_pylist(), documents["units"].to_pylist(), strict=True)
    for place, (document, size) in enumerate(sizes):
        begin, start = start, start + size
        if only not in (None, document):
            continue
        (row,) = documents.slice(place, 1).to_pylist()
        own = units.slice(begin, size).to_pydict()
        if any(one != row["document"] for one in own["document"]):
            raise PisteError(
                f"{str(folder)!r}: units and documents of {name} don't belong together."
            )
        about = json.loads(row["about"])
        given: Any = row["text"] if row["pair"] is None else [row["text"], row["pair"]]
        if "input" in about:  # a prompt with its parts
            given = {"prompt": given, **about["input"]}
        about |= {
            "input": given,
            "classifier": manifest["classifier"],
            "versions": manifest["versions"],
            "seconds": float("nan"),
        }
        columns = {key: cells for key, cells in own.items() if key not in ("document", "unit")}
        found.append(unit_tables.from_columns(about, columns))
    return found


def part_name(number: int) -> str:
    """The file of a block, in both tables.

    >>> part_name(12)
    'part-000012.parquet'
    """
    return f"part-{number:06d}.parquet"
