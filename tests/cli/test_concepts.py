"""The command, from files to reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from piste.concepts import draw, read, sentences
from tests.cli.commands import run
from tests.concepts import planted

QUICK = ("--repeats", "3", "--layers", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data.txt").write_text("\n".join(sentences("acting")), encoding="utf-8")
    rows = [*(f'"{text}",1' for text in sentences("music")[:12]), '"A dull film.",0']
    (tmp_path / "data.csv").write_text("text,label\n" + "\n".join(rows), encoding="utf-8")
    (tmp_path / "mine.txt").write_text("\n".join(sentences("price")), encoding="utf-8")
    return tmp_path


def test_everything_at_once(monkeypatch, capsys, folder: Path) -> None:
    files = [folder / f"report.{ending}" for ending in ("json", "html", "md", "png")]
    outs = [part for file in files for part in ("--out", file)]
    options = ("--concept", "praise", "--concept", f"mine={folder / 'mine.txt'}", "--target")
    code, out, err = run(
        monkeypatch, capsys, "concepts", "--data", folder / "data.txt", *options, "positive",
        "--show", "A dull but wonderful film", *QUICK, *outs,
    )  # fmt: skip
    assert code == 0, err
    assert "praise raises positive" in out
    assert "wonderful" in out
    report = read(files[0])
    assert report.concepts == {"praise": 42, "mine": 42}
    assert report.examples == {"positive": 42}
    assert "wonderful" in files[1].read_text(encoding="utf-8")
    assert files[2].read_text(encoding="utf-8").count("**positive**") == 5
    assert files[3].read_bytes()[:4] == b"\x89PNG"
    assert (folder / "report-shown1.png").is_file()


def test_json_and_rows_of_the_class(monkeypatch, capsys, folder: Path) -> None:
    code, out, err = run(
        monkeypatch, capsys, "concepts", "--data", folder / "data.csv", "--target", "1",
        "--concept", "praise", "--negatives", "everyday", *QUICK, "--json",
    )  # fmt: skip
    assert code == 0, err
    found = json.loads(out)
    assert found["examples"] == {"positive": 12}
    assert found["negatives"] == 42


def test_images(monkeypatch, capsys, tmp_path: Path) -> None:
    classifier = planted.image_classifier()
    classifier.model.save_pretrained(tmp_path / "model")
    classifier.processor.save_pretrained(tmp_path / "model")
    (tmp_path / "data").mkdir()
    for number, one in enumerate(draw("dotted", (16, 16), count=10)):
        (tmp_path / "data" / f"{number}.png").write_bytes(one.png())
    code, out, err = run(
        monkeypatch, capsys, "concepts", "--model", tmp_path / "model", "--data",
        tmp_path / "data", "--target", "warm", "--concept", "red", "--concept", "blue", *QUICK,
        "--show", tmp_path / "data" / "0.png",
    )  # fmt: skip
    assert code == 0, err
    assert "red" in out


def test_the_shipped_ones_are_listed(monkeypatch, capsys) -> None:
    code, out, _ = run(monkeypatch, capsys, "concepts", "--list")
    assert code == 0
    assert "praise" in out
    assert "striped" in out
    code, out, _ = run(monkeypatch, capsys, "concepts", "--list", "--json")
    assert "music" in json.loads(out)["texts"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"--target": None}, "give --data, --target and --concept"),
        ({"--data": "nothing.txt"}, "no file or folder 'nothing.txt'"),
        ({"--target": "sideways"}, "no class 'sideways'"),
        ({"--concept": "praise="}, "name=FILE"),
        ({"--concept": "magic"}, "one of the shipped concepts"),
        ({"--layers": "one"}, "numbers with commas"),
        ({"--layers": "7"}, "no layer 7"),
        ({"--out": "report.txt"}, "can't be written to 'report.txt'"),
        ({"--number": "odds"}, "expected one of logit, log-odds"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    monkeypatch, capsys, folder: Path, changes: dict[str, str | None], words: str
) -> None:
    given = {
        "--data": str(folder / "data.txt"),
        "--target": "positive",
        "--concept": "praise",
        "--repeats": "2",
    } | changes
    parts = [part for pair in given.items() if pair[1] is not None for part in pair]
    code, _, err = run(monkeypatch, capsys, "concepts", *parts)
    assert code == 2
    assert words in " ".join(err.split())
    assert "Traceback" not in err


def test_rows_of_no_such_class_are_refused(monkeypatch, capsys, folder: Path) -> None:
    (folder / "odd.csv").write_text("text,label\na film,7\n", encoding="utf-8")
    options = ("--data", folder / "odd.csv", "--target", "positive", "--concept", "praise")
    code, _, err = run(monkeypatch, capsys, "concepts", *options)
    assert code == 2
    assert "no rows of the class 'positive'" in " ".join(err.split())
