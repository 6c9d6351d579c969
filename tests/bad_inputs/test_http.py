"""Bad requests to the page's interface: a status of 4xx and a sentence."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from piste.serve import Limits, create_app
from tests.bad_inputs.files import GOOD, is_sentence, png
from tests.serve.asking import ended

LIMITS = Limits(characters=500, units=40, samples=3000, methods=3, image_bytes=50_000)


@pytest.fixture(scope="module")
def client(reviews: Any) -> Iterator[TestClient]:
    with TestClient(create_app([reviews, "piste:fashion"], limits=LIMITS)) as one:
        one.base_url = "http://localhost"  # type: ignore[assignment]  # it makes a URL of it
        yield one


def image(content: bytes) -> dict[str, str]:
    return {"image": base64.b64encode(content).decode(), "model": "piste:fashion"}


REQUESTS: dict[str, tuple[Any, int]] = {
    "nothing": ({}, 422),
    "no text": ({"text": ""}, 422),
    "a blank": ({"text": " "}, 422),
    "a number": ({"text": 5}, 422),
    "null": ({"text": None}, 422),
    "a list": ([], 422),
    "a word": ("text", 422),
    "too long": ({"text": "a " * 400}, 413),
    "a pair too long": ({"text": GOOD, "pair": "a" * 600}, 413),
    "a model": ({"text": GOOD, "model": "piste:dreams"}, 404),
    "a path": ({"text": GOOD, "model": "/etc/passwd"}, 404),
    "a method": ({"text": GOOD, "methods": ["magic"]}, 422),
    "no methods": ({"text": GOOD, "methods": []}, 422),
    "one method twice": ({"text": GOOD, "methods": ["lime", "lime"]}, 422),
    "too many methods": (
        {"text": GOOD, "methods": ["lime", "slalom", "occlusion", "linear"]},
        413,
    ),
    "units": ({"text": GOOD, "units": "letters"}, 422),
    "a target": ({"text": GOOD, "target": "maybe"}, 422),
    "samples": ({"text": GOOD, "samples": 1}, 422),
    "too many samples": ({"text": GOOD, "samples": 10**9}, 413),
    "fraction of samples": ({"text": GOOD, "samples": 20.5}, 422),
    "a seed": ({"text": GOOD, "seed": -1}, 422),
    "an endless seed": ({"text": GOOD, "seed": 10**30}, 422),
    "long": ({"text": GOOD, "long": "maybe"}, 422),
    "removal": ({"text": GOOD, "removal": "burn"}, 422),
    "an unknown field": ({"text": GOOD, "cache": "/tmp"}, 422),
    "an answer": ({"text": GOOD, "answer": "Yes"}, 422),
    "fields": ({"fields": {"text": GOOD}}, 422),
    "an image for a text model": (image(png(9, 9)) | {"model": "piste:reviews"}, 422),
    "a text for an image model": ({"text": GOOD, "model": "piste:fashion"}, 422),
    "no base64": ({"image": "***", "model": "piste:fashion"}, 422),
    "no image": (image(b"hello"), 422),
    "a broken image": (image(png(20, 20)), 422),
    "a bomb": (image(png(30_000, 30_000)), 413),
    "a large file": (image(b"x" * 60_000), 413),
}
LATER: dict[str, dict[str, Any]] = {
    "too many units": {"text": "a b " * 60},
    "spans outside": {"text": GOOD, "units": [[3, 999]]},
    "only special tokens": {"text": "[PAD]"},
}
"""What only shows when the input is read: the job fails with a sentence."""
BODIES = {
    "half characters": b'{"text": "\\ud800"}',
    "no JSON": b"{",
    "deep": b"[" * 15_000,
    "a large number": b'{"samples": ' + b"9" * 6_000 + b"}",
    "binary": bytes(range(256)),
    "empty": b"",
}
PLACES = {
    "no such job": ("GET", "/api/explanations/nothing", 404),
    "its events": ("GET", "/api/explanations/nothing/events", 404),
    "its file": ("GET", "/api/explanations/nothing/files/html", 404),
    "no page": ("GET", "/nowhere", 404),
    "no asset": ("GET", "/assets/secret.js", 404),
    "out of the folder": ("GET", "/assets/..%2f..%2fapp.py", 404),
    "another way": ("PUT", "/api/explanations", 405),
}


def refused(answer: Any, *statuses: int) -> None:
    assert answer.status_code in statuses, answer.text
    assert is_sentence(answer.json()["problem"]), answer.text


@pytest.mark.parametrize(("body", "status"), REQUESTS.values(), ids=REQUESTS)
def test_requests(client: TestClient, body: Any, status: int) -> None:
    refused(client.post("/api/explanations", json=body), status)


@pytest.mark.parametrize("body", LATER.values(), ids=LATER)
def test_jobs(client: TestClient, body: dict[str, Any]) -> None:
    last = ended(client, **body)
    assert last["state"] == "failed"
    assert is_sentence(last["problem"]), last


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_bodies(client: TestClient, body: bytes) -> None:
    kind = {"content-type": "application/json"}
    refused(client.post("/api/explanations", content=body, headers=kind), 400, 422)


@pytest.mark.parametrize(("way", "place", "status"), PLACES.values(), ids=PLACES)
def test_places(client: TestClient, way: str, place: str, status: int) -> None:
    refused(client.request(way, place), status)


def test_other_hosts_and_origins(client: TestClient) -> None:
    refused(client.get("/api/models", headers={"host": "evil.example"}), 421)
    foreign = {"origin": "http://evil.example"}
    refused(client.post("/api/explanations", json={"text": GOOD}, headers=foreign), 403)
