"""Many visitors at once who cancel and go away: all are answered, and nothing of them stays."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import uvicorn

import piste
from piste.serve import Limits, create_app
from piste.serve.jobs import FINISHED, Jobs
from tests.serve.asking import TIMEOUT, wait_for

VISITORS, KEPT = 30, 10


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> weakref.WeakSet[Any]:
    """All jobs of the server that are still held by something."""
    known: weakref.WeakSet[Any] = weakref.WeakSet()
    add = Jobs.add

    def adding(self: Any, *given: Any) -> Any:
        job = add(self, *given)
        known.add(job)
        return job

    monkeypatch.setattr(Jobs, "add", adding)
    return known


@pytest.fixture
def address(made: weakref.WeakSet[Any]) -> Iterator[str]:
    classifier = piste.load(lambda texts: [float(len(text) % 7) for text in texts], name="counting")
    app = create_app([classifier], limits=Limits(waiting=VISITORS, kept=KEPT, seconds=TIMEOUT))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_for(lambda: server.started)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(TIMEOUT)
    assert not thread.is_alive(), "nobody's open connection holds up the end"


def visit(address: str, number: int) -> str:
    """One visitor, who waits for the answer, cancels, or goes away while it is being made."""
    with httpx.Client(base_url=address, timeout=TIMEOUT) as client:
        text = f"visitor number {number} says a few words of the film"
        asked = client.post("/api/explanations", json={"text": text, "samples": 30})
        if asked.status_code == 503:
            assert asked.headers["retry-after"]
            return "told to come later"
        assert asked.status_code == 202, asked.text
        path = f"/api/explanations/{asked.json()['id']}"
        if number % 3 == 1:
            gone = client.delete(path)
            assert gone.status_code == 404 or gone.json()["state"] in FINISHED, gone.text
            return "cancelled"
        with client.stream("GET", f"{path}/events") as events:
            if events.status_code == 404:
                return "came too late"  # of very many visitors only the last results are kept
            lines = (line for line in events.iter_lines() if line)
            assert next(lines).startswith("data: ")
            if number % 3 == 2:
                return "left"
            for _ in lines:
                pass
        last = client.get(path)
        assert last.status_code == 404 or last.json()["state"] == "done", last.text
        return "answered"


def test_nothing_of_many_visitors_stays(address: str, made: weakref.WeakSet[Any]) -> None:
    with ThreadPoolExecutor(VISITORS) as pool:
        met = Counter(pool.map(lambda number: visit(address, number), range(3 * VISITORS)))
    assert all(met[end] for end in ("answered", "cancelled", "left")), met
    wait_for(lambda: all(one.state in FINISHED for one in list(made)))
    for number in range(0, 3 * KEPT, 3):  # after the crowd, one after the other
        assert visit(address, 900 + number) == "answered"

    def few() -> bool:
        gc.collect()
        return len(made) <= KEPT + 1  # and the one that is being let go of

    wait_for(few)
