"""Judging explanations from files, whoever made them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import piste
from piste import PisteError
from piste.data.examples import Example
from piste.data.rationales import Marks
from piste.evaluation.benchmark.saved_explanations import evaluate_saved, read_explanations
from piste.evaluation.judging import judge

TEXTS = ("one two three four", "five six seven eight nine")


def lengths(texts: list[str]) -> list[float]:
    return [float(sum(len(word) ** 2 for word in text.split())) for text in texts]


@pytest.fixture
def classifier() -> Any:
    return piste.load(lengths)


def tell(classifier: Any, text: str, method: str, path: Path, **options: Any) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    e = piste.explain(classifier, text, method=method, **options)
    {".json": e.to_json, ".csv": e.to_csv, ".parquet": e.to_parquet}[path.suffix](path)
    return e


def test_files_of_every_kind_are_told_apart(classifier, tmp_path: Path) -> None:
    made = [
        tell(classifier, TEXTS[0], "occlusion", tmp_path / "first.json"),
        tell(classifier, TEXTS[1], "occlusion", tmp_path / "second.csv"),
        tell(classifier, TEXTS[0], "random", tmp_path / "more" / "first.parquet"),
    ]
    (tmp_path / "notes.txt").write_text("nothing to read here")
    found = evaluate_saved(classifier, tmp_path, metrics=["deletion"], reference="random")
    assert found.methods == ("occlusion", "random")
    assert found.examples == ("first", "second")
    rows = {(row.example, row.method): row for row in found.rows}
    assert "no explanation" in rows["second", "random"].problem
    for e, key in zip(made, (("first", "occlusion"), ("second", "occlusion")), strict=False):
        alone = judge(classifier, [e], ["deletion"], seed=3)[0].figures["aopc"]
        assert rows[key].figures["aopc"] == pytest.approx(alone), "no chance in it"


def test_one_method_with_different_options_goes_by_its_folder(classifier, tmp_path: Path) -> None:
    for samples in (20, 30):
        for number, text in enumerate(TEXTS):
            path = tmp_path / f"with {samples}" / f"{number}.json"
            tell(classifier, text, "linear", path, samples=samples)
    saved = read_explanations(tmp_path)
    assert saved.labels == ("with 20", "with 30")
    assert [example.id for example in saved.examples] == ["0", "1"]
    assert saved.digest == read_explanations(tmp_path).digest
    tell(classifier, TEXTS[0], "linear", tmp_path / "with 30" / "again.json")
    with pytest.raises(PisteError, match="two explanations"):
        read_explanations(tmp_path)


def test_equal_names_of_different_texts(classifier, tmp_path: Path) -> None:
    for number, text in enumerate(TEXTS):
        tell(classifier, text, "occlusion", tmp_path / str(number) / "e.json")
    assert [example.id for example in read_explanations(tmp_path).examples] == ["0/e", "1/e"]


def test_data_lends_its_marks(classifier, tmp_path: Path) -> None:
    tell(classifier, TEXTS[0], "occlusion", tmp_path / "first.json")
    marks = Marks(tuple(TEXTS[0].split()), (True, False, True, False))
    data = [Example("17", TEXTS[0], rationale=marks), Example("18", "another")]
    found = evaluate_saved(classifier, tmp_path, metrics=["rationale"], data=data)
    assert found.values("occlusion", "auroc") == {"first": pytest.approx(2.5 / 4)}


def test_refusals(classifier, tmp_path: Path) -> None:
    tell(classifier, TEXTS[0], "occlusion", tmp_path / "first.json")
    other = piste.load(lambda texts: [-number for number in lengths(texts)], name="other")
    with pytest.raises(PisteError, match="judge with that one"):
        evaluate_saved(other, tmp_path)
    with pytest.raises(PisteError, match="given twice"):
        evaluate_saved(classifier, tmp_path, methods="occlusion,occlusion")
    with pytest.raises(PisteError, match="there are occlusion"):
        evaluate_saved(classifier, tmp_path, methods=["lime"])
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(PisteError, match=r"broken\.json"):
        evaluate_saved(classifier, tmp_path)
