"""Models learn the rule, and are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studies.__main__ import main
from studies.synthetic import KINDS, Recipe, answers, train_additive
from tests.cli.commands import run_main


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


def test_studies_are_listed(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    assert "additive" in run_main(main, monkeypatch, capsys, "--list")[1]
    code, _, err = run_main(main, monkeypatch, capsys)
    assert code == 2
    assert "Which study?" in err
