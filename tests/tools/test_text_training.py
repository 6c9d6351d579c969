"""The training command, end to end on a handful of generated reviews."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import piste
from tools.zoo import text_training, train
from tools.zoo.text_recipes import TEXT_RECIPES

pandas = pytest.importorskip("pandas")


def generated_reviews(file: Path) -> None:
    """Sixty reviews whose label is the sum of their words."""
    rng = np.random.default_rng(0)
    words = ["good", "wonderful", "fine", "bad", "awful", "dull", "film", "plot", "the", "a"]
    rows = []
    for number in range(60):
        label = number % 2
        liked, other = words[:3] if label else words[3:6], words[6:]
        chosen = [str(rng.choice(liked if rng.random() < 0.5 else other)) for _ in range(30)]
        text = " ".join(chosen) + f" <br />number {number}"
        rows.append((text, label, "train" if number < 40 else "test"))
    pandas.DataFrame(rows, columns=["text", "label", "split"]).to_parquet(file)


@pytest.mark.parametrize("name", list(TEXT_RECIPES))
def test_the_command_trains_scores_and_writes_a_card(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generated_reviews(tmp_path / "reviews.parquet")
    monkeypatch.setattr(text_training, "HELD_OUT_REVIEWS", 4)
    short = replace(TEXT_RECIPES[name], epoch_lengths=(32,), batch_size=8)
    monkeypatch.setitem(train.RECIPES, name, short)
    threads = torch.get_num_threads()
    weights = []
    with torch.random.fork_rng():
        for folder in ("first", "second"):
            out = str(tmp_path / folder)
            train.main([name, "--data", str(tmp_path / "reviews.parquet"), "--out", out])
            classifier = piste.load(out)
            weights.append(classifier.model.state_dict())
    torch.set_num_threads(threads)
    assert classifier.labels == ("negative", "positive")
    assert "Accuracy" in (tmp_path / "first" / "README.md").read_text(encoding="utf-8")
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    subject = classifier.subject("A good<br />film.")
    assert [unit.text for unit in subject.units] == ["A", "good", "film", "."]
