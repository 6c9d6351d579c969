"""Results of other commands, opened to be browsed: asked for by number, never by a path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Depends, FastAPI, Query
from fastapi import Path as InPath
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.background import BackgroundTask

from piste.comparison import Comparison
from piste.concepts import ConceptReport
from piste.errors import READING_ERRORS, PisteError
from piste.evaluation.results import Results
from piste.explanation import Explanation
from piste.readers import READERS, kind_of
from piste.serve.corpus_results import CorpusRun
from piste.serve.document_query import DocumentQuery
from piste.serve.request_limits import MissingError
from piste.serve.result_views import (
    comparison_view,
    explain_parameters,
    redact_paths,
    view_answer,
)
from piste.serve.schemas import (
    Documents,
    DocumentView,
    ResultInfo,
    ResultKind,
    Sort,
    ViewAnswer,
    refusals,
)
from piste.show.html import concept_html, explanation_html, page_shell, words_html
from piste.show.report import evaluation_html
from piste.vocabulary import Vocabulary

Number = Annotated[int, InPath(ge=0, le=2**31 - 1)]
_WAITING = refusals(404, 503)
KNOWN = (
    "the folder of a corpus run or of an evaluation, a vocabulary (.parquet), a concept report, "
    "a comparison or evaluation results (.json), or an explanation (.json, .csv or .parquet)"
)
_CHUNK = 1 << 16
_PRIVATE = ("command", "data_file")
"""Settings of an evaluation that tell where files lie."""


@dataclass(frozen=True)
class _Reading:
    """What a file or folder held when it was read."""

    kind: ResultKind
    about: str
    answer: ViewAnswer


class StoredResult:
    """A result whose view is made when the server starts, and again when its files have changed.

    Where they can't be read any more, or not yet, the view stays as it was.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self.name = self._path.name
        self._lock = Lock()
        self._stamp = _stamp(self._path)
        self._held = _read(self._path)

    @property
    def kind(self) -> ResultKind:
        return self._now().kind

    @property
    def about(self) -> str:
        return self._now().about

    @property
    def answer(self) -> ViewAnswer:
        return self._now().answer

    def _now(self) -> _Reading:
        with self._lock:
            stamp = _stamp(self._path)
            if stamp != self._stamp:
                self._stamp = stamp
                with suppress(PisteError):
                    self._held = _read(self._path)
            return self._held


Result: TypeAlias = StoredResult | CorpusRun


def open_results(paths: Sequence[str | Path]) -> list[Result]:
    """What the paths hold, or why one of them can't be browsed."""
    return [_opened(Path(path)) for path in paths]


def _opened(path: Path) -> Result:
    if not path.exists():
        raise PisteError(f"There is no file or folder {str(path)!r}: expected {KNOWN}.")
    with _browsable(path):
        return CorpusRun(path) if kind_of(path) == "corpus" else StoredResult(path)


def _stamp(path: Path) -> object:
    """Something that changes with a file, or with the files of a folder."""
    try:
        found = sorted(path.iterdir()) if path.is_dir() else [path]
        return [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in found]
    except OSError:  # just being replaced
        return None


def _read(path: Path) -> _Reading:
    with _browsable(path):
        kind = kind_of(path)
        if kind not in VIEWERS:
            raise PisteError(f"{str(path)!r} can't be browsed: expected {KNOWN}.")
        shown, about, view = VIEWERS[kind](READERS[kind](path))
        return _Reading(shown, about, view_answer(view))


@contextmanager
def _browsable(path: Path) -> Iterator[None]:
    try:
        yield
    except PisteError:
        raise
    except READING_ERRORS as problem:
        raise PisteError(f"{str(path)!r} can't be browsed: expected {KNOWN}.") from problem


Shown: TypeAlias = tuple[ResultKind, str, page_shell.View]


def _vocabulary(found: Vocabulary) -> Shown:
    found = replace(found, about=redact_paths(found.about))
    about = f"{len(found):,} words of {found.about['documents']:,} documents"
    return "vocabulary", about, words_html.of_vocabulary(found)


def _concepts(report: ConceptReport) -> Shown:
    own = {name: redact_paths(getattr(report, name)) for name in ("settings", "classifier")}
    report = replace(report, notes=redact_paths(report.notes), **own)
    about = f"{len(report.concepts):,} concepts in {report.classifier.get('name')}"
    return "concepts", about, concept_html.view(report)


def _explanation(e: Explanation) -> Shown:
    e = _without_paths(e)
    about = f"one input, by {e.method}, of {e.classifier.get('name') or 'a model'}"
    return "explanation", about, _with_parameters(explanation_html.view(e), e)


def _comparison(found: Comparison) -> Shown:
    explanations = {name: _without_paths(e) for name, e in found.explanations.items()}
    found = replace(found, explanations=explanations, skipped=redact_paths(found.skipped))
    first = next(iter(explanations.values()))
    model = first.classifier.get("name") or "a model"
    many = len(explanations)
    about = f"one input, by {many} method{'s' if many != 1 else ''}, of {model}"
    return "comparison", about, _with_parameters(comparison_view(found), first)


def _evaluation(results: Results) -> Shown:
    settings = {name: one for name, one in results.settings.items() if name not in _PRIVATE}
    rows = tuple(
        replace(row, problem=redact_paths(row.problem), note=redact_paths(row.note))
        for row in results.rows
    )
    results = replace(results, rows=rows, settings=redact_paths(settings))
    about = f"{len(results.methods):,} methods on {len(results.examples):,} examples"
    return "evaluation", about, evaluation_html.view(results)


def _with_parameters(view: page_shell.View, e: Explanation) -> page_shell.View:
    return replace(view, data={**(view.data or {}), "explain": explain_parameters(e)})


def _without_paths(e: Explanation) -> Explanation:
    return replace(e, settings=redact_paths(e.settings), classifier=redact_paths(e.classifier))


VIEWERS: Mapping[str, Callable[[Any], Shown]] = {
    "vocabulary": _vocabulary,
    "concepts": _concepts,
    "explanation": _explanation,
    "comparison": _comparison,
    "results": _evaluation,
    "run": _evaluation,
}
"""What is shown of a result, by the kind that :func:`piste.readers.kind_of` names."""


def wanted_documents(
    search: Annotated[
        str, Query(max_length=200, description="In the text; capitals don't count.")
    ] = "",
    predicted: Annotated[
        str | None, Query(max_length=1000, description="Only with this label.")
    ] = None,
    column: Annotated[
        list[Annotated[str, Field(max_length=1000)]],
        Query(max_length=20, description="Kept columns; what is wanted in each stands in cell."),
    ] = [],  # noqa: B006  # FastAPI copies it
    cell: Annotated[
        list[Annotated[str, Field(max_length=1000)]],
        Query(
            max_length=20,
            description="Of columns with few different cells one of them, of others any piece.",
        ),
    ] = [],  # noqa: B006
    least_r2: Annotated[float | None, Query(description="Only with this R² or more.")] = None,
    most_r2: Annotated[float | None, Query(description="Only with this R² or less.")] = None,
    note: Annotated[str, Query(max_length=200, description="In what was noted of it.")] = "",
    sort: Sort = "surprise",
    descending: bool = True,
    offset: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=100)] = 25,
) -> DocumentQuery:
    """Which documents are wanted: all that is given must hold."""
    if len(column) != len(cell):
        raise PisteError(
            f"cell: expected one for every column, got {len(cell)} for {len(column)} columns."
        )
    cells = tuple(zip(column, cell, strict=True))
    return DocumentQuery(
        search, predicted, cells, least_r2, most_r2, note, sort, descending, offset, limit
    )


Wanted = Annotated[DocumentQuery, Depends(wanted_documents)]


def add_results(app: FastAPI, results: Sequence[Result]) -> list[str]:
    """Routes to the results; their names."""

    def get(result: int) -> Result:
        if result >= len(results):
            raise MissingError(f"There is no result {result} here: GET /api/results lists them.")
        return results[result]

    def run(result: int) -> CorpusRun:
        found = get(result)
        if not isinstance(found, CorpusRun):
            raise MissingError(f"Result {result} is no corpus run: it has no documents.")
        return found

    @app.get("/api/results", responses=refusals())
    def listed() -> list[ResultInfo]:
        """The results that can be browsed."""
        return [
            ResultInfo(number=number, kind=one.kind, name=one.name, about=one.about)
            for number, one in enumerate(results)
        ]

    @app.get("/api/results/{result}/view", responses=refusals(404))
    def view(result: Number) -> ViewAnswer:
        """What the page shows of any result but a corpus run."""
        found = get(result)
        if not isinstance(found, StoredResult):
            raise MissingError(f"Result {result} is a corpus run: ask for its documents or words.")
        return found.answer

    @app.get("/api/results/{result}/words", responses=_WAITING)
    def words(result: Number) -> ViewAnswer:
        """What the words of a corpus run or of a vocabulary do."""
        found = get(result)
        if isinstance(found, CorpusRun):
            return found.words()
        if found.kind != "vocabulary":
            raise MissingError(f"Result {result} has no words: it is neither run nor vocabulary.")
        return found.answer

    @app.get("/api/results/{result}/documents", responses=_WAITING)
    def documents(result: Number, wanted: Wanted) -> Documents:
        """Documents of a corpus run, a page of them."""
        return run(result).documents(wanted)

    @app.get("/api/results/{result}/documents/{document}", responses=_WAITING)
    def document(result: Number, document: Number, wanted: Wanted) -> DocumentView:
        """What the page shows of one document's explanation, and what stands around it."""
        return run(result).document(document, wanted)

    @app.get(
        "/api/results/{result}/documents/export/{kind}",
        response_class=StreamingResponse,
        responses=refusals(404, 413, 503)
        | {200: {"content": {"text/csv": {}, "application/json": {}}}},
    )
    def export(result: Number, kind: Literal["csv", "json"], wanted: Wanted) -> StreamingResponse:
        """All documents that fit, with their whole texts, in the order that is wanted."""
        file = run(result).export(wanted, kind)
        media = {"csv": "text/csv; charset=utf-8", "json": "application/json"}[kind]
        name = f'attachment; filename="documents.{kind}"'
        return StreamingResponse(
            iter(partial(file.read, _CHUNK), b""),
            media_type=media,
            headers={"content-disposition": name},
            background=BackgroundTask(file.close),
        )

    return [one.name for one in results]
