"""Reports and maps: stored, read again, looked into, shown."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from piste import PisteError
from piste.concepts import ConceptReport, draw, locate, read, score
from tests.concepts import planted

TEXT = "f1 good2 f3 idle4 bad1"


def printed(thing: object, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=110, **options)
    console.print(thing)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_json_and_back(report: ConceptReport, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    text = report.to_json(path)
    again = read(path)
    assert again.to_json() == text
    assert again.scores == report.scores
    assert again.goals == report.goals
    for concept, layers in report.vectors.items():
        for layer, vector in layers.items():
            assert np.array_equal(again.vectors[concept][layer], vector)
    assert repr(again) == repr(report)


def test_verdicts(report: ConceptReport) -> None:
    sure = replace(report.scores[0], separable=True, p_corrected=0.01, score=0.9, sensitivity=1.0)
    assert sure.verdict == "raises"
    assert replace(sure, score=0.1, sensitivity=-1.0).verdict == "lowers"
    assert replace(sure, p_corrected=0.2).verdict == "unclear"
    assert replace(sure, score=0.3).verdict == "unclear"  # most fall, a few rise far
    assert replace(sure, separable=False).verdict == "not separable"


def test_broken_files_are_refused(report: ConceptReport, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    for content, words in (
        ('{"piste": 1}', "no stored concept report"),
        (report.to_json()[:400], "not a whole one"),
        (json.dumps(json.loads(report.to_json()) | {"piste_concepts": 99}), "it says 99"),
    ):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(PisteError, match=words):
            read(path)
    with pytest.raises(PisteError, match="There is no file"):
        read(tmp_path / "none.json")


def test_looking_into_it(report: ConceptReport) -> None:
    assert report.layers == (1, 2)
    assert report.targets == ("yes", "no")
    assert report.main_kind == "moved"
    assert len(report.select()) == 2 * 3 * 2
    assert {one.target for one in report.select(target="no")} == {"no"}
    with pytest.raises(PisteError, match="several classes: name one of yes, no"):
        report.of("good", layer=1)
    with pytest.raises(PisteError, match="no layer 7: it has 1, 2"):
        report.of("good", layer=7, target="yes")
    with pytest.raises(PisteError, match="no concept 'odd': it has good, bad, idle"):
        report.select(concept="odd")
    with pytest.raises(PisteError, match="no kind 'odd'"):
        report.select(kind="odd")
    with pytest.raises(AttributeError):
        report.depth = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        report.vectors["good"][1][0] = 0


def test_it_is_shown(report: ConceptReport, encoder: Any, tmp_path: Path) -> None:
    shown = printed(report)
    assert "good raises yes" in shown
    assert "random sets" in shown
    assert "random sets" in printed(report, color_system="truecolor", force_terminal=True)
    table = report.to_markdown()
    assert table.count("\n| ") == 2 * (1 + 6)
    for name in ("a.png", "b.svg", "c.pdf"):
        report.plot(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    report.plot(kind="reader")
    with pytest.raises(PisteError, match=r"use \.png"):
        report.plot(tmp_path / "a.txt")
    found = locate(encoder, TEXT, report, target="yes")
    page = report.to_html(tmp_path / "page.html", maps=[found])
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert page.startswith("<!doctype html>")
    assert "good2" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_names_are_escaped(encoder: Any) -> None:
    sets = {
        "<b>&": planted.texts(planted.GOOD, 12, 1),
        "a|b": planted.texts(planted.BAD, 12, 2),
    }
    data = planted.texts(planted.IDLE, 10, 3)
    found = score(encoder, data, sets, target="yes", layers=[1], repeats=2)
    where = found.locate(encoder, "f1 <i>good2</i> f3")
    page = found.to_html(maps=[where])
    assert "<b>&" not in page
    assert "<i>good2" not in page
    assert "a\\|b" in found.to_markdown()
    assert "[b]" not in printed(found)


def test_a_score_that_means_nothing_is_not_told(report: ConceptReport) -> None:
    from dataclasses import replace

    refused = tuple(replace(one, separable=False) for one in report.scores)
    empty = replace(report, scores=refused)
    assert {one.verdict for one in empty.scores} == {"not separable"}
    row = next(line for line in empty.to_markdown().splitlines() if line.startswith("| good"))
    assert row.split("|")[3].strip() == "–"
    assert "No concept is shown" in printed(empty)
    empty.plot()


def test_where_it_is_in_a_text(report: ConceptReport, encoder: Any, tmp_path: Path) -> None:
    found = report.locate(encoder, TEXT, target="yes")
    assert found.layer == 1  # the last that attention reads
    assert [unit.text for unit in found.units] == TEXT.split()
    assert set(found.scores) == {"good", "bad", "idle"}
    assert len(found.top("good", 2)) == 2
    assert "good2" in printed(found)
    assert "good2" in printed(found, color_system="truecolor", force_terminal=True)
    found.plot(tmp_path / "map.png")
    assert "good2" in found._repr_html_()
    only = report.locate(encoder, TEXT, target="no", concepts=["bad"], layer=2)
    assert list(only.scores) == ["bad"]
    with pytest.raises(PisteError, match="no concept 'odd'"):
        found.top("odd")
    with pytest.raises(PisteError, match="choose target among them"):
        report.locate(encoder, TEXT)
    with pytest.raises(PisteError, match="no layer 9"):
        report.locate(encoder, TEXT, target="yes", layer=9)
    with pytest.raises(PisteError, match="take the model that the concepts were scored on"):
        report.locate("piste:reviews", "a good film", target="yes")


def test_the_map_adds_up_to_the_derivative(report: ConceptReport, encoder: Any) -> None:
    """Products over units and fixed tokens have the sign of what was scored, u being the mean."""
    import torch

    from piste.concepts.states import StateReader

    reader = StateReader(encoder, [report.goals[0]])
    (seen,) = reader.read([encoder.subject(TEXT)], [1])
    slope, weights = seen.gradients[0][0][0], seen.attention[0][0]  # type: ignore[index]
    along = slope @ torch.tensor(report.vectors["good"][1]).float()
    products = weights * along * weights.norm() / along.norm()
    found = report.locate(encoder, TEXT, target="yes")
    assert found.scores["good"] == pytest.approx(products[1:-1].numpy(), abs=1e-6)


def test_where_it_is_in_an_image(reader_of_images: Any, tmp_path: Path) -> None:
    data = draw("chequered", (16, 16), count=10, seed=4)
    found = score(reader_of_images, data, ["red", "blue"], target="warm", layers=[1], repeats=2)
    where = found.locate(reader_of_images, data[0])
    assert len(where.units) == 16
    assert where.input.painted(where.scores["red"]).shape == (16, 16)  # type: ignore[union-attr]
    where.plot(tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 1000
    assert "red" in printed(where)
    assert "red" in printed(where, color_system="truecolor", force_terminal=True)
    assert "<svg" in found.to_html(maps=[where])
