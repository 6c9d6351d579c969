"""Results of other commands, to be browsed: they are asked for by number, never by a path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import FastAPI, Query
from fastapi import Path as InPath

from piste.serve.corpus_results import CorpusRun
from piste.serve.document_query import DocumentQuery
from piste.serve.request_limits import MissingError
from piste.serve.result_sources import Result, StoredResult
from piste.serve.schemas import Documents, ResultInfo, Sort, ViewAnswer, refusals

Number = Annotated[int, InPath(ge=0, le=2**31 - 1)]
_WAITING = refusals(404, 503)


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
    def documents(
        result: Number,
        search: Annotated[
            str, Query(max_length=200, description="In the text; capitals don't count.")
        ] = "",
        predicted: Annotated[
            str | None, Query(max_length=1000, description="Only with this label.")
        ] = None,
        sort: Sort = "surprise",
        descending: bool = True,
        offset: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
        limit: Annotated[int, Query(ge=1, le=100)] = 25,
    ) -> Documents:
        """Documents of a corpus run, a page of them."""
        wanted = DocumentQuery(search, predicted, sort, descending, offset, limit)
        return run(result).documents(wanted)

    @app.get("/api/results/{result}/documents/{document}", responses=_WAITING)
    def document(result: Number, document: Number) -> ViewAnswer:
        """What the page shows of one document's explanation."""
        return run(result).document(document)

    return [one.name for one in results]
