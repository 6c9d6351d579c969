"""`piste compare`, and what is behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import piste
from piste import PisteError
from tests.cli.commands import run

REVIEW = "A slow start, but a wonderful ending."


def test_methods_stand_side_by_side(monkeypatch: Any, capsys: Any, tmp_path: Path) -> None:
    page, image = tmp_path / "page.html", tmp_path / "image.png"
    code, out, err = run(
        monkeypatch, capsys, "compare", REVIEW, "--methods", "slalom,occlusion, random",
        "--samples", 100, "--html", page, "--plot", image,
    )  # fmt: skip
    assert code == 0, err
    for word in ("slalom", "occlusion", "random", "wonderful", "AOPC", "R²"):
        assert word in out
    assert page.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    assert image.read_bytes().startswith(b"\x89PNG")


def test_json_holds_everything(monkeypatch: Any, capsys: Any) -> None:
    code, out, _ = run(
        monkeypatch,
        capsys,
        "compare",
        REVIEW,
        "--methods",
        "slalom,zero",
        "--samples",
        60,
        "--json",
    )
    data = json.loads(out)
    assert code == 0
    assert set(data["explanations"]) == set(data["verdicts"]) == {"slalom", "zero"}
    assert data["verdicts"]["slalom"]["calls"] == 60
    assert data["verdicts"]["slalom"]["r2_all"] > data["verdicts"]["zero"]["r2_all"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--methods", "slalom,lima"], "got 'lima'"),
        (["--removal", "burn"], "got 'burn'"),
        (
            ["--methods", "lime", "--samples", "0"],
            "samples: expected a whole number of",
        ),
        (["--methods", "slalom:weight"], "no score 'weight'"),
    ],
)
def test_mistakes_get_one_sentence(
    monkeypatch: Any, capsys: Any, arguments: list[str], words: str
) -> None:
    code, out, err = run(monkeypatch, capsys, "compare", REVIEW, *arguments)
    assert (code, out) == (2, "")
    assert words in " ".join(err.split())


def test_usual_methods_that_can_not_are_skipped_and_chosen_ones_refused() -> None:
    def count(texts: list[str]) -> list[float]:
        return [text.count("o") - 0.5 * text.count("a") for text in texts]

    comparison = piste.compare(count, "one two three banana so", samples=60)
    assert set(comparison.skipped) == {"integrated_gradients"}
    assert "only gives answers" in comparison.skipped["integrated_gradients"]
    assert comparison.verdicts["kernel_shap"]["r2_all"] == pytest.approx(1.0)
    with pytest.raises(PisteError, match="only gives answers"):
        piste.compare(count, "one two", ["gradient"])
    with pytest.raises(PisteError, match="list of names"):
        piste.compare(count, "one two", "slalom")  # type: ignore[arg-type]


def test_options_and_scores_are_read_from_names(reviews: Any) -> None:
    names = ["slalom", "slalom:value", "slalom[sampler=short]", "integrated_gradients[steps=8]"]
    comparison = piste.compare(reviews, REVIEW, names, samples=80)
    assert list(comparison.explanations) == names
    assert comparison.explanations["slalom:value"].ranking == "value"
    assert comparison.explanations["slalom[sampler=short]"].settings["sampler"] == "short"
    page = comparison.to_html()
    assert all(name in page for name in names)


def test_all_are_judged_by_the_same_questions(reviews: Any) -> None:
    one = piste.compare(reviews, REVIEW, ["occlusion", "slalom"], samples=80)
    other = piste.compare(reviews, REVIEW, ["slalom"], samples=80)
    assert one.verdicts["slalom"]["r2_all"] == pytest.approx(other.verdicts["slalom"]["r2_all"])
    assert np.array_equal(one.explanations["slalom"].score(), other.explanations["slalom"].score())
