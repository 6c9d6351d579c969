"""Every stored result is read again by one function."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import piste
from piste import PisteError
from piste.comparison import Comparison
from piste.concepts.report import ConceptReport
from piste.evaluation import Results, evaluate
from piste.readers import READERS, kind_of
from piste.vocabulary import Vocabulary
from tests.conftest import TEXT
from tests.data.test_storage import same
from tests.serve.results_made import make_concepts, make_vocabulary


@pytest.fixture(scope="module")
def comparison(reviews: Any) -> Comparison:
    made = piste.compare(reviews, TEXT, ["slalom", "occlusion", "slalom:value"], samples=60)
    return replace(made, skipped={"gradient": "It looks inside: <no> “model”."})


def test_a_comparison_is_read_as_it_was_written(comparison: Comparison, tmp_path: Path) -> None:
    file = tmp_path / "comparison.json"
    comparison.to_json(file)
    again = piste.read(file)
    assert isinstance(again, Comparison)
    assert list(again.explanations) == list(comparison.explanations)
    for name, e in comparison.explanations.items():
        same(again.explanations[name], e)
        assert (again.explanations[name].ranking, again.explanations[name].method) == (
            e.ranking,
            e.method,
        )
    assert again.verdicts == comparison.verdicts
    assert again.skipped == comparison.skipped
    assert again.checks == comparison.checks
    assert json.loads(again.to_json()) == json.loads(comparison.to_json())
    assert again.to_html() == comparison.to_html()


def test_numbers_that_json_does_not_know_are_kept(comparison: Comparison, tmp_path: Path) -> None:
    one = comparison.checks[0]
    expected = {**one.expected, "slalom": float("nan"), "occlusion": float("inf")}
    verdicts = {**comparison.verdicts, "slalom": {"r2_all": float("nan")}}
    odd = replace(comparison, verdicts=verdicts, checks=(replace(one, expected=expected),))
    odd.to_json(tmp_path / "c.json")
    again = piste.read(tmp_path / "c.json")
    assert again.checks[0].expected["slalom"] != again.checks[0].expected["slalom"]
    assert again.checks[0].expected["occlusion"] == float("inf")
    assert again.verdicts["slalom"]["r2_all"] != again.verdicts["slalom"]["r2_all"]


def test_reports_results_runs_and_vocabularies(reviews: Any, tmp_path: Path) -> None:
    make_concepts(tmp_path / "concepts.json")
    make_vocabulary(tmp_path / "words.parquet", reviews)
    found = evaluate(
        reviews, ["A fine film.", "A dull film."], methods=["occlusion"], metrics=["deletion"],
        folder=tmp_path / "run", progress=False,
    )  # fmt: skip
    found.to_json(tmp_path / "results.json")
    kinds = {
        "concepts.json": ("concepts", ConceptReport),
        "words.parquet": ("vocabulary", Vocabulary),
        "results.json": ("results", Results),
        "run": ("run", Results),
        "run/run.json": ("run", Results),
    }
    for name, (kind, type_) in kinds.items():
        assert kind_of(tmp_path / name) == kind
        assert isinstance(piste.read(tmp_path / name), type_)
    for name in ("results.json", "run"):
        again = piste.read(tmp_path / name)
        assert [row.to_dict() for row in again.rows] == [row.to_dict() for row in found.rows]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"piste_comparison": 9}', "format 9"),
        ('{"piste_comparison": 1, "explanations": {}}', "not a whole one"),
        ('{"piste_results": 1, "rows": 3}', "not whole"),
        ('{"piste_future": 1}', "'future', expected one of explanation, comparison"),
        ('{"other": 1}', "no field 'piste'"),
        ("[1, 2]", "no field 'piste'"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_result_is_refused_in_a_sentence(
    content: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "file.json").write_text(content)
    with pytest.raises(PisteError, match=words) as refused:
        piste.read(tmp_path / "file.json")
    assert "\n" not in str(refused.value)
    assert "file.json" in str(refused.value)


def test_folders_without_one_result(tmp_path: Path) -> None:
    with pytest.raises(PisteError, match="no run"):
        piste.read(tmp_path)
    (tmp_path / "manifest.json").write_text('{"piste_corpus": 1}')
    with pytest.raises(PisteError, match=r"corpus\.explanations"):
        piste.read(tmp_path)


def test_every_reader_is_there() -> None:
    assert all(callable(READERS[kind]) for kind in READERS)
