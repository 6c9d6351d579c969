"""The server under load: how long clients wait, what goes wrong, and whether memory grows.

    python -m benchmarks.serve [--users 20] [--seconds 60] [--leaving 0.0] [--port 0]

A server of its own process, and clients who all come at once. Each asks for an explanation of a
text nobody asked about before, follows its events, opens the view, and removes three words one
after the other; then comes the next text, until the time is over. Explanations are made one at a
time, so with N clients each waits for about N of them. Clients and server share the machine.

With ``--leaving 0.4`` four of ten explanations are not waited for: half of those are cancelled, of
the others the connection is closed while events come in.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import numpy as np

TALK = (
    "a the this that film story plot ending music actor scene script joke hero it was is never "
    "always truly quite hardly not but and or although slow dull clever warm wonderful terrible "
    "boring perfect weak strong lovely awful funny sad long short loud quiet bright empty"
)
WORDS = TALK.split()
REMOVALS = 3
EARLY = 10.0
"""Seconds after which memory is looked at for the second time."""
Answer = TypeVar("Answer")


class Visits:
    """What clients met, noted by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        kinds = ("explanation", "view", "removal", "cancelled", "left")
        self.seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
        self.errors: Counter[str] = Counter()
        self.later = 0
        """How often the queue was full."""

    def timed(self, kind: str, act: Callable[[], Answer]) -> Answer:
        """Do it, and note how long it took if it went well."""
        start = time.perf_counter()
        answer = act()
        with self._lock:
            self.seconds[kind].append(time.perf_counter() - start)
        return answer

    def error(self, problem: Exception) -> None:
        """Note what went wrong; who is told to come later waits as long as the server says."""
        answer = getattr(problem, "response", None)
        if answer is not None and answer.status_code == 503:
            with self._lock:
                self.later += 1
            time.sleep(float(answer.headers["retry-after"]))
            return
        with self._lock:
            self.errors[f"{type(problem).__name__}: {problem}"[:200]] += 1


@contextmanager
def serving(model: str, port: int) -> Iterator[tuple[str, int]]:
    """A server in a process of its own; its address and its number."""
    command = [sys.executable, "-m", "piste.cli", "serve", "--model", model, "--port", str(port)]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"}
    )
    assert process.stderr is not None
    try:
        address = None
        while address is None:
            line = process.stderr.readline()
            if not line:
                raise SystemExit("The server ended before it told its address.")
            address = re.search(r"http://\S+?(?=/?\s|/?$)", line)
        rest = threading.Thread(target=sys.stderr.writelines, args=(process.stderr,), daemon=True)
        rest.start()  # its log is shown, and never fills the pipe
        yield address[0], process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def resident(process: int) -> float:
    """Megabytes of memory that a process holds (on Linux)."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def finished(client: httpx.Client, text: str) -> str:
    """Ask for an explanation and follow it to its end; its id."""
    answer = client.post("/api/explanations", json={"text": text})
    answer.raise_for_status()
    job: dict[str, Any] = answer.json()
    with client.stream("GET", f"/api/explanations/{job['id']}/events") as events:
        events.raise_for_status()
        for line in events.iter_lines():
            if line.startswith("data: "):
                job = json.loads(line.removeprefix("data: "))
    if job["state"] != "done":
        raise RuntimeError(f"{job['state']}: {job['problem']}")
    return str(job["id"])


def left(client: httpx.Client, text: str, *, cancel: bool) -> None:
    """Ask for an explanation, and cancel it, or go away after the first news of it."""
    answer = client.post("/api/explanations", json={"text": text})
    answer.raise_for_status()
    path = f"/api/explanations/{answer.json()['id']}"
    if cancel:
        asked(client, "DELETE", path)
        return
    with client.stream("GET", f"{path}/events") as events:
        next(events.iter_lines(), None)


def asked(client: httpx.Client, method: str, path: str, body: Any = None) -> None:
    """Ask, and be content with any good answer."""
    client.request(method, path, json=body).raise_for_status()


def visit(address: str, seed: int, end: float, visits: Visits, leaving: float) -> None:
    """One client, until the time is over, who leaves this share of what was asked for."""
    rng = random.Random(seed)
    with httpx.Client(base_url=address, timeout=180) as client:
        while time.monotonic() < end:
            words = rng.choices(WORDS, k=rng.randint(10, 25))
            try:
                if rng.random() < leaving:
                    cancel, text = rng.random() < 0.5, " ".join(words)
                    visits.timed(
                        "cancelled" if cancel else "left",
                        lambda: left(client, text, cancel=cancel),  # noqa: B023
                    )
                    continue
                job = visits.timed("explanation", lambda: finished(client, " ".join(words)))  # noqa: B023  # called at once
                path = f"/api/explanations/{job}"
                visits.timed("view", lambda: asked(client, "GET", f"{path}/view"))  # noqa: B023
                for unit in rng.sample(range(len(words)), REMOVALS):
                    body = {"removed": [unit]}
                    visits.timed(
                        "removal",
                        lambda: asked(client, "POST", f"{path}/removals", body),  # noqa: B023
                    )
            except (httpx.HTTPError, RuntimeError) as problem:
                visits.error(problem)


def report(visits: Visits, memory: dict[str, float]) -> None:
    """The tables."""
    print("\n| | done | median, s | 95th percentile, s | longest, s |\n|---|---|---|---|---|")
    for kind, seconds in visits.seconds.items():
        if not seconds:
            continue
        figures = np.percentile(seconds, [50, 95, 100])
        print(f"| {kind} | {len(seconds)} | " + " | ".join(f"{one:.2f}" for one in figures) + " |")
    print(f"\nTold to come later: {visits.later}. Errors: {sum(visits.errors.values())}")
    for problem, count in visits.errors.most_common(5):
        print(f"- {count} × {problem}")
    print("\n| resident memory | MB |\n|---|---|")
    for moment, size in memory.items():
        print(f"| {moment} | {size:.0f} |")


def main() -> None:
    """Run it and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--model", default="piste:reviews")
    parser.add_argument("--leaving", type=float, default=0.0)
    parser.add_argument("--port", type=int, default=0)
    chosen = parser.parse_args()
    visits, memory = Visits(), {}
    with serving(chosen.model, chosen.port) as (address, process):
        with httpx.Client(base_url=address, timeout=300) as first:
            finished(first, "a film")  # the server answers before its models are loaded
        memory["at the start"] = resident(process)
        end = time.monotonic() + chosen.seconds
        clients = [
            threading.Thread(target=visit, args=(address, seed, end, visits, chosen.leaving))
            for seed in range(chosen.users)
        ]
        for client in clients:
            client.start()
        time.sleep(min(EARLY, chosen.seconds))
        memory[f"after {EARLY:g} s"] = resident(process)
        time.sleep(max(end - time.monotonic(), 0.0) / 2)
        memory["half way"] = resident(process)
        for client in clients:
            client.join()
        memory["at the end"] = resident(process)
    report(visits, memory)


if __name__ == "__main__":
    main()
