"""Requests that fit the description of the interface, or miss it a little: none is too much."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, settings

import piste
from piste.serve import Limits, create_app
from piste.serve.request_limits import INTERNAL_ERROR
from tests.serve.asking import events, explained

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


def test_the_server_still_works_after_all_that() -> None:
    client = TestClient(APP, base_url=HERE)
    explained(client, text="four five", samples=20)
