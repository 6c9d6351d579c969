"""A corpus run to be browsed: its documents, one of them, and its words."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal, TypeVar

from piste.corpus.part_store import explanation, read_manifest
from piste.corpus.sql import connected
from piste.errors import READING_ERRORS, PisteError, need, one_line
from piste.serve import document_query
from piste.serve.document_query import DocumentQuery, Facts, FilterError
from piste.serve.request_limits import BusyError, MissingError, TooLargeError
from piste.serve.result_views import clean, explain_parameters, redact_paths, view_answer
from piste.serve.schemas import DocumentRow, Documents, DocumentView, ResultKind, ViewAnswer
from piste.show import wording
from piste.show.html import explanation_html, words_html

Made = TypeVar("Made")
_READERS = 4
"""Questions to one run at a time; each may read a whole column of it."""
_TIMEOUT = 20.0
_MOST_EXPORTED = 100_000


class CorpusRun:
    """The folder of a corpus run. It may still grow: what was found out holds until it does."""

    kind: ResultKind = "corpus"

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self.name = self._folder.name
        self._duckdb: Any = need("duckdb", "query", "Browsing a corpus run")
        need("pyarrow.parquet", "tables", "Browsing a corpus run")
        read_manifest(folder)  # refuses what is no run
        self._slots = threading.BoundedSemaphore(_READERS)
        self._cache_lock = threading.Lock()
        self._cache: dict[str, tuple[int, Any]] = {}
        self._describe()  # a broken manifest is told at the start

    @property
    def about(self) -> str:
        """How many documents, and of which model."""
        with self._reading():
            return self._describe()

    def _describe(self) -> str:
        try:
            manifest = read_manifest(self._folder)
            documents, method = int(manifest["counts"]["documents"]), manifest["settings"]["method"]
            model = redact_paths(str(manifest["classifier"]["name"]))
            state = "" if manifest["state"] == "done" else ", not finished"
        except (LookupError, TypeError, ValueError, OverflowError) as problem:
            raise PisteError(
                f"The manifest in {str(self._folder)!r} is not whole ({one_line(problem)})."
            ) from problem
        return f"{documents:,} documents, by {wording.short(str(method), 60)}, of {model}{state}"

    def documents(self, wanted: DocumentQuery) -> Documents:
        """Those that fit, a page of them."""
        with self._reading():
            return document_query.page(self._folder, self._facts(), wanted)

    def document(self, number: int, wanted: DocumentQuery) -> DocumentView:
        """What is shown of one document, and which ones stand around it."""
        with self._reading():
            row = document_query.one(self._folder, self._facts(), number)
            if row is None:
                raise MissingError(f"There is no document {number} in this run.")
            near = document_query.neighbours(self._folder, self._facts(), wanted, number)
            e = explanation(self._folder, number)
            e = replace(e, settings=redact_paths(e.settings), classifier=redact_paths(e.classifier))
            shown = explanation_html.view(e)
            told = view_answer(replace(shown, body=f"{_header(row)}\n{shown.body}"))
            told.data["explain"] = explain_parameters(e)
            return DocumentView(**told.model_dump(), neighbours=near)

    def export(self, wanted: DocumentQuery, kind: Literal["csv", "json"]) -> IO[bytes]:
        """All documents that fit, as a file that is there until it is closed."""
        with self._reading():
            facts = self._facts()
            total = document_query.page(self._folder, facts, replace(wanted, limit=1)).total
            if total > _MOST_EXPORTED:
                raise TooLargeError(
                    f"{total:,} documents fit, and at most {_MOST_EXPORTED:,} are exported here: "
                    "narrow the search, or use “piste query”."
                )
            file: IO[bytes] = TemporaryFile()  # noqa: SIM115  # whoever sends it closes it
            write = {"csv": _write_csv, "json": _write_json}[kind]
            write(file, document_query.exported(self._folder, facts, wanted, _MOST_EXPORTED))
        file.seek(0)
        return file

    def words(self) -> ViewAnswer:
        """What the words of all documents do."""
        with self._reading():
            return self._cached("words", self._words)

    def _words(self) -> ViewAnswer:
        name = read_manifest(self._folder)["classifier"]["name"]
        return view_answer(words_html.of_run(self._folder, model=redact_paths(str(name))))

    def _facts(self) -> Facts:
        def find() -> Facts:
            with connected(self._folder) as connection:
                return document_query.facts(connection)

        return self._cached("facts", find)

    def _cached(self, name: str, make: Callable[[], Made]) -> Made:
        """Made once for all clients, and again when the run has grown."""
        parts = sum(1 for _ in (self._folder / "documents").glob("part-*.parquet"))
        with self._cache_lock:
            if name not in self._cache or self._cache[name][0] != parts:
                self._cache[name] = parts, make()
            made: Made = self._cache[name][1]
            return made

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """A turn at the files; problems with them are told without saying where they are."""
        if not self._slots.acquire(timeout=_TIMEOUT):
            raise BusyError("Others are reading this run: try again in a moment.")
        try:
            yield
        except (MissingError, BusyError, TooLargeError, FilterError):
            raise
        except (*READING_ERRORS, self._duckdb.Error) as problem:
            raise MissingError(
                "The files of this run can't be read, or not any more: look at them with "
                "`piste query`, then start the server again."
            ) from problem
        finally:
            self._slots.release()


def _write_csv(file: IO[bytes], rows: Iterator[list[Any]]) -> None:
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    csv.writer(text).writerows(rows)
    text.detach()


def _write_json(file: IO[bytes], rows: Iterator[list[Any]]) -> None:
    """A list with an object for every document."""
    names = next(rows)
    start = b"[\n"
    for row in rows:
        cells = dict(zip(names, clean(row), strict=True))
        file.write(start + json.dumps(cells, ensure_ascii=False).encode("utf-8", "replace"))
        start = b",\n"
    file.write(b"\n]\n" if start == b",\n" else b"[]\n")


def _header(row: DocumentRow) -> str:
    """What the data say of a document, before what the model says."""
    told = {"id": row.id, **row.kept} if row.id is not None else dict(row.kept)
    facts = "".join(
        f" · {escape(name)} <b>{escape(wording.short(cell, 60))}</b>"
        for name, cell in told.items()
        if cell is not None
    )
    note = ""
    if row.agrees is False:
        note = (
            f'<p class="piste-note">The data call it {escape(str(row.truth))}, the model '
            f"{escape(row.predicted)}.</p>"
        )
    return f'<p class="piste-kicker">Document {row.document}{facts}</p>{note}'
