"""The routes: the page, its assets, and the JSON interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from piste.errors import PisteError
from piste.serve import page_html, result_views, schemas
from piste.serve.jobs import FINISHED
from piste.serve.launcher import LOOPBACK
from piste.serve.model_host import METHOD_DESCRIPTIONS, ModelHost
from piste.serve.priority_lock import PriorityLock
from piste.serve.request_limits import BusyError, Limits, MissingError, NotReadyError, TooLargeError
from piste.serve.result_sources import add_results, open_results
from piste.serve.schemas import refusals
from piste.serve.security import SecurityMiddleware
from piste.show import wording
from piste.show.html import answer_html, difference_html

STATUS = {MissingError: 404, NotReadyError: 409, TooLargeError: 413, BusyError: 503}
_ALIVE, _LOOK = 15.0, 0.1
"""Seconds of silence after which a stream of events shows that it is still there, and between two
looks at a job: batches may be quicker than eyes."""


def create_app(
    models: Sequence[Any] = ("piste:reviews",),
    *,
    results: Sequence[str | Path] = (),
    hosts: Sequence[str] = LOOPBACK,
    token: str | None = None,
    limits: Limits | None = None,
    runtime: str = "torch",
    loading: Mapping[str, Any] = MappingProxyType({}),
    tell: Callable[[str], None] = lambda stage: None,
) -> FastAPI:
    """The application with its models loaded; it answers only to these hosts.

    ``tell`` is called with what is being done, as "loading piste:reviews".
    ``loading`` holds further options of :func:`piste.load`, such as prompt and labels.
    """
    limits = limits or Limits()
    browsed = open_results(results)  # refused before models are loaded, which takes longer
    host = ModelHost.load(models, limits, runtime, loading, tell)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        host.jobs.close()

    app = FastAPI(
        title="Piste",
        version=version("piste"),
        description="Explains the decisions of transformer classifiers.",
        lifespan=lifespan,
        docs_url=None,  # those pages would ask other servers
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.stop, app.state.close = host.jobs.stop, host.jobs.close
    _handle_problems(app)
    shown = add_results(app, browsed)
    _add_pages(app, host, shown)
    _add_explanations(app, host)
    app.add_middleware(SecurityMiddleware, limits=limits, hosts=hosts, token=token)
    return app


def _handle_problems(app: FastAPI) -> None:
    def refused(status: int, problem: str) -> JSONResponse:
        later = {"retry-after": "5"} if status == 503 else {}
        writable = problem.encode("utf-8", "replace").decode()  # half characters can't be sent
        return JSONResponse({"problem": writable}, status, headers=later)

    @app.exception_handler(PisteError)
    async def own(request: Request, problem: PisteError) -> Response:
        return refused(STATUS.get(type(problem), 422), str(problem))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        if first["type"] == "json_invalid":
            where = f"{first['ctx']['error']} at character {first['loc'][-1]}"
            return refused(422, f"The body is no JSON ({where}): send an object.")
        place = ".".join(map(str, first["loc"][1:]))  # without "body", "path" or "query"
        return refused(422, f"{place[:60] or 'The body'}: {first['msg']}.")

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, problem: HTTPException) -> Response:
        reason = problem.detail
        if problem.status_code == 400:  # numbers of thousands of digits, lists in lists in lists …
            reason = "The body can't be read as JSON: send an object of plain texts and numbers"
        answer = refused(problem.status_code, f"{reason.rstrip('.')}.")
        answer.headers.update(problem.headers or {})
        return answer


def _add_pages(app: FastAPI, host: ModelHost, results: list[str]) -> None:
    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def page() -> str:
        return page_html.page(host.about(), results)

    @app.get("/assets/{name}", include_in_schema=False)
    def asset(name: str) -> Response:
        if name not in page_html.ASSETS:
            raise MissingError("There is no such asset.")
        content, kind = page_html.ASSETS[name]()
        return Response(content, media_type=kind)

    @app.get("/api/models", responses=refusals())
    def models() -> schemas.Models:
        """What can be asked: models, methods, limits, and results to browse."""
        limits = host.limits
        return schemas.Models(
            models=host.about(),
            methods=[
                schemas.MethodInfo(name=name, about=about)
                for name, about in METHOD_DESCRIPTIONS.items()
            ],
            limits={
                name: getattr(limits, name)
                for name in (
                    "characters",
                    "answer_characters",
                    "image_bytes",
                    "units",
                    "samples",
                    "methods",
                    "seconds",
                )
            },
            results=results,
        )


def _add_explanations(app: FastAPI, host: ModelHost) -> None:
    jobs, exports = host.jobs, PriorityLock(host.limits.exports)

    @app.post(
        "/api/explanations", status_code=202, responses=refusals(400, 404, 408, 413, 415, 503)
    )
    def explain(request: schemas.ExplanationRequest) -> schemas.Job:
        """Ask for an explanation. It is made in the background: follow it by its id."""
        return jobs.about(host.explain(request))

    @app.get("/api/explanations/{job}", responses=refusals(404))
    def state(job: str) -> schemas.Job:
        """How far an explanation is."""
        return jobs.about(jobs.get(job))

    @app.delete("/api/explanations/{job}", responses=refusals(404))
    def cancel(job: str) -> schemas.Job:
        """Cancel it; one that is done stays."""
        return jobs.about(jobs.cancel(job))

    @app.get(
        "/api/explanations/{job}/events",
        response_class=StreamingResponse,
        responses=refusals(404) | {200: {"content": {"text/event-stream": {}}}},
    )
    async def events(job: str) -> StreamingResponse:
        """Progress as server-sent events, each a job as JSON, until it is finished."""
        following = jobs.get(job)

        async def stream() -> AsyncIterator[str]:
            # Looked at, not waited for: a wait would hold a thread for every client.
            told, quiet = None, 0.0
            while True:
                now = jobs.about(following)
                if now != told:
                    told, quiet = now, 0.0
                    yield f"data: {now.model_dump_json()}\n\n"
                elif quiet >= _ALIVE:
                    quiet = 0.0
                    yield ": still there\n\n"
                if now.state in FINISHED:
                    return
                await asyncio.sleep(_LOOK)
                quiet += _LOOK

        return StreamingResponse(stream(), media_type="text/event-stream")

    @app.get(
        "/api/explanations/{job}/result",
        responses=refusals(404, 409) | {200: {"content": {"application/json": {}}}},
        response_class=Response,
    )
    def result(job: str) -> Response:
        """Explanations, verdicts and removals, complete, as ``Comparison.to_json`` writes them."""
        return Response(jobs.finished(job).to_json(), media_type="application/json")

    @app.get("/api/explanations/{job}/view", responses=refusals(404, 409))
    def view(job: str) -> schemas.ViewAnswer:
        """What the page shows of it."""
        return result_views.view_answer(result_views.comparison_view(jobs.finished(job), live=True))

    @app.get("/api/explanations/{job}/beside/{other}", responses=refusals(404, 409))
    def beside(job: str, other: str) -> schemas.ViewAnswer:
        """What the page shows of two explanations side by side: ``other`` is the later one."""
        before, now = (next(iter(jobs.finished(one).explanations.values())) for one in (job, other))
        return result_views.view_answer(difference_html.view(before, now))

    @app.post(
        "/api/explanations/{job}/removals",
        responses=refusals(400, 404, 408, 409, 413, 415, 503),
    )
    def remove(job: str, request: schemas.RemovalRequest) -> schemas.Removed:
        """The model's real answer without some units, and what every method expected."""
        one = host.remove(job, request.removed)
        return schemas.Removed(
            removed=list(one.removed),
            answer=one.answer,
            label=one.label,
            probability=one.probability,
            methods=list(one.expected),
            expected=result_views.numbers(one.expected.values()),
        )

    @app.post(
        "/api/explanations/{job}/spans",
        responses=refusals(400, 404, 408, 409, 413, 415, 503),
    )
    def explain_span(job: str, request: schemas.SpanRequest) -> schemas.SpanAnswer:
        """The explanation of a span of a language model's answer; the model is not asked again."""
        whole, e = host.explain_span(job, request.start, request.end)
        return schemas.SpanAnswer(**answer_html.span_data(e, wording.kinds(whole)))

    @app.get(
        "/api/explanations/{job}/export/{kind}",
        response_class=Response,
        responses=refusals(404, 409, 503)
        | {200: {"content": {name: {} for name in ("text/html", "image/png", "application/json")}}},
    )
    def export(job: str, kind: Literal["html", "png", "json"]) -> Response:
        """The explanation as a standalone page, an image, or JSON."""
        comparison = jobs.finished(job)
        with exports.foreground():
            content, media = result_views.export_file(comparison, kind)
        # The page's own policy allows its own script; it must not act as a page of this server.
        own = {"content-security-policy": "sandbox; default-src 'none'"} if kind == "html" else {}
        name = f'attachment; filename="explanation.{kind}"'
        return Response(content, media_type=media, headers=own | {"content-disposition": name})
