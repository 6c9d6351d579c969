"""Killed at any moment, as often as you like: no row is lost and none is there twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
from pathlib import Path

import pytest

import piste
from piste import corpus
from tests.corpus.corpora import TEXTS, left, loud

ROWS = 150


def work(path: Path, out: Path, resume: bool) -> None:
    model = piste.load(loud, name="loud", outputs="logits")
    corpus.run(
        path, model, out, method="occlusion", block=2, resume=resume, progress=False, held_out=8
    )


@pytest.mark.slow
def test_a_run_killed_again_and_again_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    lines = [json.dumps({"text": f"{TEXTS[n % 7]} {n} !"}) for n in range(ROWS)]
    lines[10], lines[33] = '{"text": ""}', "{broken"
    path.write_text("\n".join(lines))
    work(path, tmp_path / "whole", False)
    out = tmp_path / "killed"
    # Forked, because starting Python anew each time would take minutes.
    context = multiprocessing.get_context("fork")
    chance = random.Random(0)
    kills = 0
    for _ in range(500):
        resume = (out / "manifest.json").is_file()
        child = context.Process(target=work, args=(path, out, resume))
        child.start()
        child.join(chance.uniform(0.0, 0.12))
        if child.is_alive():
            assert child.pid is not None
            os.kill(child.pid, signal.SIGKILL)
            child.join()
            kills += 1
        else:
            assert child.exitcode == 0
            break
    assert corpus.read_manifest(out)["state"] == "done"
    assert kills >= 10
    assert left(out) == left(tmp_path / "whole")
    numbers = [row["document"] for row in left(out)["documents"]]
    assert sorted([*numbers, 10, 33]) == list(range(ROWS))
    assert not list(out.glob("*/.part*"))
