"""Every study runs from a clean start with --quick, and finds something of what it looks for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import studies
from studies.__main__ import main
from tests.cli.commands import run_main

pytestmark = pytest.mark.slow
# A few made-up reviews instead of real ones can't bear every claim, but for one.
MADE_UP = ("naive-bayes", "human-attention", "non-transformer")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all, so that a model is trained once."""
    return tmp_path_factory.mktemp("studies")


@pytest.mark.parametrize("name", studies.names())
def test_it_runs(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    code, out, err = run_main(
        main, monkeypatch, capsys, name, "--quick", "--folder", folder, "--json"
    )
    assert code == 0, err
    found = json.loads(out)
    verdicts = [claim["it"] for claim in found["claims"]]
    assert set(verdicts) <= {"holds", "holds in part", "does not hold"}
    assert verdicts.count("does not hold") <= int(name in MADE_UP), found
    own = folder / f"{name}-quick"
    page = (own / "findings.md").read_text(encoding="utf-8")
    assert f"python -m studies {name} --quick" in page
    for line in page.splitlines():
        if line.startswith("!["):
            figure = own / line.split("(")[1].rstrip(")")
            assert figure.read_bytes()[:4] == b"\x89PNG"


def test_the_number_of_repetitions_is_lost(folder: Path) -> None:
    """Proposition 4.1 on models that were really trained: the rule itself goes up by 43.5."""
    studies.run("additive", folder, quick=True)
    lines = (folder / "additive-quick" / "parts.jsonl").read_text(encoding="utf-8").splitlines()
    for part in (json.loads(line)["found"] for line in lines):
        assert np.ptp(part["repeated"]) < 1
        assert part["correlation"] > 0.8
