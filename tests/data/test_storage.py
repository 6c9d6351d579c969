"""Stored and read again, complete, in every form; nothing half written."""

from __future__ import annotations

import copy
import json
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import piste
from piste import Explanation, PisteError
from tests.conftest import TEXT

pandas = pytest.importorskip("pandas")


def same(first: Explanation, second: Explanation) -> None:
    assert first.units == second.units
    assert first.input == second.input
    assert first.output == second.output
    assert first.target == second.target
    assert (first.calls, first.seconds, first.method) == (
        second.calls,
        second.seconds,
        second.method,
    )
    for name in first.scores:
        np.testing.assert_array_equal(first.scores[name], second.scores[name])
    for name in (*first.errors, *second.errors):
        np.testing.assert_array_equal(first.errors[name], second.errors[name])
    np.testing.assert_array_equal(first.predict([0, 1]), second.predict([0, 1]))
    assert first.fidelity.r2 == second.fidelity.r2 or np.isnan(second.fidelity.r2)


@pytest.fixture(scope="module", params=["one", "all", "pair", "analytic", "newlines"])
def explanation(request: pytest.FixtureRequest, bert: Any) -> Explanation:
    options: dict[str, Any] = {"samples": 60}
    text: Any = TEXT
    if request.param == "all":
        options["target"] = "all"
    if request.param == "pair":
        text = (TEXT, 'The "film", is good.')
    if request.param == "analytic":
        options["solver"] = "analytic"
    if request.param == "newlines":
        text, options["units"] = 'good\r\nfilm, "so\nbad"; 😀 電影', "tokens"
    return piste.explain(bert, text, **options)


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_there_and_back(explanation: Explanation, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"e.{suffix}"
    getattr(explanation, f"to_{suffix}")(file)
    same(explanation, piste.read(file))
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]


def test_frames(explanation: Explanation) -> None:
    frame = explanation.to_frame()
    assert frame["text"].tolist() == [unit.text for unit in explanation.units]
    same(explanation, Explanation.from_frame(frame))


def test_json_is_valid_for_everyone(explanation: Explanation) -> None:
    data = json.loads(explanation.to_json(), parse_constant=lambda _: pytest.fail("not JSON"))
    assert data["piste"] == 2
    assert data["versions"]["piste"] == piste.__version__


def test_a_result_of_format_1_is_read_and_predicts_as_it_did() -> None:
    e = piste.read(Path(__file__).parent / "explanation-format-1.json")
    assert (e.ranking, e.mixing) == ("linear", None)
    expected = {(0, 1): -0.7676873258, (1, 6): 0.2189596870, (): 0.0600613619}
    for keep, answer in expected.items():
        assert e.predict(list(keep)) == pytest.approx(answer, abs=1e-9)
    assert e.predict(range(len(e))) == pytest.approx(1.7203423798, abs=1e-9)
    assert e.interactions().shape == (len(e), len(e))
    again = piste.Explanation.from_frame(e.to_frame())
    assert again.predict([0, 1]) == pytest.approx(expected[0, 1])


def test_an_explanation_is_frozen(bert: Any) -> None:
    e = piste.explain(bert, TEXT, samples=40)
    with pytest.raises(AttributeError):
        e.calls = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        e.scores["value"][0] = 1
    with pytest.raises(TypeError):
        e.scores["value"] = 1  # type: ignore[index]


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(PisteError, match="no file"):
        piste.read(tmp_path / "none.json")
    for name, content in (
        ("a.json", b"{}"),
        ("b.json", b"not json"),
        ("c.json", b"\xff\xfe\xfa"),
        ("d.csv", b"a,b\n1,2\n"),
        ("e.json", b'{"piste": 99, "units": [], "scores": {}, "errors": {}}'),
        ("f.json", b"[1]"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(PisteError):
            piste.read(tmp_path / name)
    frame = pandas.DataFrame({"a": [1]})
    frame.to_parquet(tmp_path / "g.parquet")
    with pytest.raises(PisteError, match="not made from an explanation"):
        piste.read(tmp_path / "g.parquet")


def test_a_write_that_fails_keeps_the_old_file(
    bert: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = piste.explain(bert, TEXT, samples=40)
    file = tmp_path / "e.json"
    file.write_text("old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(PisteError, match="No space left"):
        e.to_json(file)
    assert file.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["e.json"]
    monkeypatch.undo()
    with pytest.raises(PisteError, match="could not be written"):
        e.to_json(tmp_path / "no" / "folder.json")


def test_predict_refuses_what_is_not_there(bert: Any) -> None:
    e = piste.explain(bert, TEXT, samples=40)
    for wrong in ([99], [-1], [0.5], np.ones(3, dtype=bool), "all"):
        with pytest.raises(PisteError):
            e.predict(wrong)
    with pytest.raises(PisteError, match="no score"):
        e.score("magic")


def test_results_can_be_pickled_and_copied(explanation: Explanation) -> None:
    same(explanation, pickle.loads(pickle.dumps(explanation)))
    same(explanation, copy.deepcopy(explanation))


def test_infinite_errors_and_links_survive(tmp_path: Path) -> None:
    text = " ".join(f"word{k}" for k in range(300))
    e = piste.explain(lambda texts: [len(t) / 9 for t in texts], text, sampler="short", samples=60)
    assert np.isinf(e.errors["value"]).any()
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    e.to_json(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    same(e, piste.read(tmp_path / "real.json"))


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_named_parts_of_units_are_kept(bert: Any, suffix: str, tmp_path: Path) -> None:
    e = piste.explain(bert, "A slow start", samples=20)
    named = replace(e, units=(replace(e.units[0], part="title"), *e.units[1:]))
    getattr(named, f"to_{suffix}")(tmp_path / f"e.{suffix}")
    assert piste.read(tmp_path / f"e.{suffix}").units == named.units
