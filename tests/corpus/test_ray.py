"""Two node processes give what one process gives, also when a worker is killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from piste import PisteError, corpus
from studies.reviews import made_up
from tests.corpus.corpora import left, loud

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of two nodes with one core each."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    try:
        yield cluster.address
    finally:
        cluster.shutdown()


def workers() -> list[int]:
    """Processes that hold the model."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            name = entry.read_bytes()
        except OSError:
            continue
        if name.startswith(b"ray::_Worker"):
            found.append(int(entry.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds its workers in /proc")
def test_a_worker_that_dies_costs_no_row(address: str, tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    lines = [json.dumps({"text": one.text}) for one in made_up(24, seed=8)]
    lines[5] = '{"text": null}'
    path.write_text("\n".join(lines))
    how: dict[str, Any] = {"method": "occlusion", "block": 3}
    corpus.run(path, "piste:reviews", tmp_path / "one", progress=False, **how)
    killed: list[int] = []

    def kill_once(done: int, total: int) -> None:
        if done and not killed:
            killed.append(workers()[0])
            os.kill(killed[0], signal.SIGKILL)

    counts = corpus.run(
        path, "piste:reviews", tmp_path / "many", engine="ray", address=address, workers=2,
        progress=kill_once, **how,
    )  # fmt: skip
    assert killed
    assert (counts.rows, counts.refused) == (24, 1)
    one, many = left(tmp_path / "one"), left(tmp_path / "many")
    assert many["errors"] == one["errors"]
    assert [row["text"] for row in many["documents"]] == [row["text"] for row in one["documents"]]
    for mine, other in zip(one["units"], many["units"], strict=True):
        numbers = [name for name, cell in mine.items() if isinstance(cell, float)]
        assert numbers
        for name in mine:
            expected = pytest.approx(mine[name], abs=1e-4, nan_ok=True)
            assert other[name] == (expected if name in numbers else mine[name])


def test_what_other_processes_can_not_load_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text('{"text": "A film."}')
    with pytest.raises(PisteError, match="loads the model in every process"):
        corpus.run(path, loud, tmp_path / "out", engine="ray", progress=False)
    with pytest.raises(PisteError, match="No Ray cluster answers"):
        corpus.run(
            path, "piste:reviews", tmp_path / "other", engine="ray", address="127.0.0.1:1",
            progress=False,
        )  # fmt: skip
