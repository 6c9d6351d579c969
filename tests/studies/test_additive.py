"""Proposition 4.1 on models that were really trained."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from piste.studies.additive import STUDY
from piste.studies.synthetic import KINDS, Recipe, answers, train_additive
from tests.cli.commands import run


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_trained_learns_the_rule_and_is_kept(kind: str, tmp_path: Path) -> None:
    recipe = Recipe(kind, 1, width=32, heads=2, steps=150, batch=64, rate=2e-3)
    classifier = train_additive(recipe, tmp_path)
    good, bad = answers(classifier, ["perfect the best", "worst the bad"])
    assert good > 0.5
    assert bad < -0.5
    (folder,) = tmp_path.iterdir()
    before = (folder / "model.safetensors").stat().st_mtime_ns
    again = train_additive(recipe, tmp_path)
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    np.testing.assert_array_equal(answers(again, ["perfect"]), answers(classifier, ["perfect"]))


@pytest.mark.slow
def test_the_study(monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path) -> None:
    code, out, err = run(
        monkeypatch, capsys, "study", "additive", "--quick", "--folder", tmp_path, "--json"
    )
    assert code == 0, err
    found = json.loads(out)
    assert [claim["it"] for claim in found["claims"]] == ["holds"]
    folder = tmp_path / "additive-quick"
    assert (folder / "repeated.png").read_bytes()[:4] == b"\x89PNG"
    page = (folder / "findings.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {STUDY.title}")
    for line in (folder / "parts.jsonl").read_text(encoding="utf-8").splitlines():
        part = json.loads(line)["found"]
        assert np.ptp(part["repeated"]) < 1  # the rule has 43.5
        assert part["correlation"] > 0.8


def test_studies_are_listed(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    assert "additive" in run(monkeypatch, capsys, "study", "--list")[1]
    code, _, err = run(monkeypatch, capsys, "study")
    assert code == 2
    assert "Which study?" in err
