"""Killed at any moment, as often as you like: no row is lost and none is there twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import piste
from piste import corpus
from tests.corpus.corpora import TEXTS, left, loud

ROWS = 150
MOST_ATTEMPTS = 500
LEAST_KILLS = 10


@contextmanager
def counted(each: Callable[[int], None]) -> Iterator[None]:
    """Calls and returns of functions are the clock: they do not depend on the machine's speed."""
    count = 0

    def look(*_: Any) -> None:
        nonlocal count
        count += 1
        each(count)

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


def work(path: Path, out: Path) -> None:
    model = piste.load(loud, name="loud", outputs="logits")
    corpus.run(path, model, out, method="occlusion", block=2, progress=False, held_out=8)


def work_until(last: int, path: Path, out: Path) -> None:
    """Work, and die at the last call."""

    def die(count: int) -> None:
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)

    with counted(die):
        work(path, out)


def calls(path: Path, out: Path) -> int:
    """How many a run takes."""
    last = 0

    def note(count: int) -> None:
        nonlocal last
        last = count

    with counted(note):
        work(path, out)
    return last


@pytest.mark.slow
def test_a_run_killed_again_and_again_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    lines = [json.dumps({"text": f"{TEXTS[n % 7]} {n} !"}) for n in range(ROWS)]
    lines[10], lines[33] = '{"text": ""}', "{broken"
    path.write_text("\n".join(lines))
    work(path, tmp_path / "whole")  # the first one also imports
    beginning = calls(path, tmp_path / "whole")  # everything is there, nothing is done
    working = calls(path, tmp_path / "again")
    out = tmp_path / "killed"
    # Forked, because starting Python anew each time would take minutes.
    context = multiprocessing.get_context("fork")
    chance = random.Random(0)
    kills = 0
    for _ in range(MOST_ATTEMPTS):
        # Every attempt can do but a small share of the work, so that there are enough of them.
        last = chance.randint(1, beginning + working // (2 * LEAST_KILLS))
        child = context.Process(target=work_until, args=(last, path, out))
        child.start()
        child.join()
        if child.exitcode != -signal.SIGKILL:
            assert child.exitcode == 0
            break
        kills += 1
    assert corpus.read_manifest(out)["state"] == "done"
    assert kills >= LEAST_KILLS
    assert left(out) == left(tmp_path / "whole")
    numbers = [row["document"] for row in left(out)["documents"]]
    assert sorted([*numbers, 10, 33]) == list(range(ROWS))
    assert not list(out.glob("*/.part*"))
