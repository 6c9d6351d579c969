"""Requests that fit the description of the interface, or miss it a little: none is too much."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import piste
from piste.serve import Limits, create_app
from piste.serve.request_limits import INTERNAL_ERROR
from tests.language_models import save_language_model
from tests.serve.asking import events, explained
from tests.serve.odd_requests import Visitor, anything, requests

schemathesis = pytest.importorskip("schemathesis")
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
BOUNDED = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
HERE = "http://localhost"


def count(texts: list[str]) -> list[float]:
    """A model quick enough to be asked about thousands of odd texts."""
    return [float(len(text) % 7) for text in texts]


# The queue is so long that it is never full: only that would be a rightful 503.
APP = create_app([piste.load(count)], limits=Limits(waiting=100_000, samples=60, seconds=0.5))
SCHEMA = schemathesis.openapi.from_asgi("/api/openapi.json", APP, headers={"host": "localhost"})


@SCHEMA.parametrize()
@BOUNDED
def test_no_request_is_too_much(case: Any) -> None:
    answer = case.call_and_validate(base_url=HERE, checks=CHECKS)
    assert answer.status_code not in (401, 403, 421), (
        "the middleware would hide everything behind it"
    )


@SCHEMA.include(path="/api/explanations", method="POST").parametrize()
@BOUNDED
def test_no_text_goes_wrong(case: Any) -> None:
    """With names that exist, so that texts come through to the worker."""
    if not isinstance(case.body, dict):
        return
    kept = ("text", "pair", "samples", "seed", "long")
    case.body = {name: case.body[name] for name in kept if name in case.body}
    answer = case.call_and_validate(base_url=HERE, checks=CHECKS)
    if answer.status_code == 202:
        last = events(TestClient(APP, base_url=HERE), answer.json()["id"])[-1]
        assert last["problem"] != INTERNAL_ERROR


@pytest.fixture(scope="module")
def job() -> str:
    """An explanation that is done."""
    address = explained(TestClient(APP, base_url=HERE), text="one two three", samples=20)
    return address.rpartition("/")[2]


@SCHEMA.include(path_regex="{job}").exclude(path_regex="export").parametrize()
@BOUNDED
def test_no_request_about_an_explanation_is_too_much(case: Any, job: str) -> None:
    case.path_parameters["job"] = job
    case.call_and_validate(base_url=HERE, checks=CHECKS)


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory, reviews: Any) -> Visitor:
    """At a server with models of every kind."""
    folder = save_language_model(tmp_path_factory.mktemp("secret-place") / "tiny")
    models = [
        reviews,
        piste.load("piste:fashion"),
        piste.load(folder, name="free"),
        piste.load(folder, prompt="{context}\nquestion : {question} ?", name="fields"),
        piste.load(folder, prompt="review : {text}", labels=["good", "bad"], name="labels"),
    ]
    app = create_app(models, limits=Limits(waiting=1000, samples=60, characters=1000))
    return Visitor(TestClient(app, base_url=HERE), (str(folder.parent), "Traceback"))


@pytest.mark.parametrize("number", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_odd_requests_that_come_through_to_the_models(visitor: Visitor, number: int) -> None:
    models = visitor.client.get("/api/models").json()["models"]
    spans = st.fixed_dictionaries({"start": st.integers(0, 9), "end": st.integers(1, 9)})
    units = st.fixed_dictionaries({"removed": st.lists(st.integers(0, 12), max_size=4)})
    ends: set[str] = set()

    @seed(number)
    @settings(BOUNDED, max_examples=60 if number else 15, derandomize=False, database=None)
    @given(requests(models), spans | anything(4), units | anything(4))
    def go(request: Any, span: Any, removed: Any) -> None:
        ends.add(visitor.explain(request, span, removed))

    go()
    assert {"done", "refused"} <= ends


def test_the_server_still_works_after_all_that() -> None:
    client = TestClient(APP, base_url=HERE)
    explained(client, text="four five", samples=20)
