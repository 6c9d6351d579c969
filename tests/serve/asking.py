"""What tests of the server do again and again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from fastapi.testclient import TestClient

TIMEOUT = 300.0
"""Seconds after which a test that waits for something gives up."""


def wait_for(happened: Callable[[], object]) -> None:
    """Wait until something has happened, and fail if it never does."""
    end = time.monotonic() + TIMEOUT
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def events(client: TestClient, job: str) -> list[dict[str, Any]]:
    """All news of a job, followed to its end."""
    answer = client.get(f"/api/explanations/{job}/events")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in answer.text.split("\n\n") if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def ended(client: TestClient, **request: Any) -> dict[str, Any]:
    """Ask for an explanation, and follow it to its end."""
    answer = client.post("/api/explanations", json=request)
    assert answer.status_code == 202, answer.text
    return events(client, answer.json()["id"])[-1]


def explained(client: TestClient, **request: Any) -> str:
    """The address of an explanation that is done."""
    last = ended(client, **request)
    assert last["state"] == "done", last
    return f"/api/explanations/{last['id']}"
