"""The command line as a user meets it: real processes where it matters."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import piste
from tests.cli.commands import run

REVIEW = "A slow start, but a wonderful ending."


def test_explain_writes_everything(monkeypatch, capsys, tmp_path: Path) -> None:
    page, image = tmp_path / "page.html", tmp_path / "plane.png"
    code, out, err = run(
        monkeypatch, capsys, "explain", REVIEW, "--samples", 200, "--html", page, "--plot", image
    )
    assert code == 0, err
    assert out.startswith("positive, 55.1 %: mostly because of wonderful; against it slow")
    assert "200 questions, the cost of" in " ".join(out.split())
    assert page.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    assert image.read_bytes()[:4] == b"\x89PNG"


LONG = "The cast is good but the plot of this slow and dull film is not what I had hoped for at all"


def test_a_doubtful_explanation_ends_with_the_next_command(monkeypatch, capsys) -> None:
    code, out, err = run(monkeypatch, capsys, "explain", LONG, "--samples=20", "--seed", 2)
    assert code == 0, err
    [line] = [line for line in out.splitlines() if line.startswith("Next: ")]
    assert line == f"Next: piste explain '{LONG}' --seed 2 --samples 200"
    code, out, _ = run(monkeypatch, capsys, *shlex.split(line.removeprefix("Next: piste ")))
    assert code == 0
    assert "200 questions" in " ".join(out.split())


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ("paragraphs", [REVIEW]),
        ("sentences,words", None),
        ("2-6, 20-29", ["slow", "wonderful"]),
    ],
)
def test_units(monkeypatch, capsys, units: str, expected: list[str] | None) -> None:
    code, out, _ = run(
        monkeypatch, capsys, "explain", REVIEW, "--json", "--samples", 40, "--units", units
    )
    assert code == 0
    found = [unit["text"] for unit in json.loads(out)["units"]]
    if expected is None:
        expected = [unit.text for unit in piste.load("piste:reviews").subject(REVIEW).units]
    assert found == expected


def test_json_is_the_stored_form(monkeypatch, capsys, tmp_path: Path) -> None:
    options = ("--samples", "100", "--seed", "3", "--units", "tokens", "--target", "negative")
    code, out, _ = run(monkeypatch, capsys, "explain", REVIEW, "--json", *options)
    assert code == 0
    (tmp_path / "e.json").write_text(out, encoding="utf-8")
    e = piste.read(tmp_path / "e.json")
    assert e.target.name == "log-odds of 'negative'"
    again = piste.explain(
        piste.load("piste:reviews"), REVIEW, samples=100, seed=3, units="tokens", target="negative"
    )
    assert e.predict([0, 1]) == pytest.approx(again.predict([0, 1]))


@pytest.mark.parametrize("options", [("--form", "paper"), ("--option", "form=paper")])
def test_the_paper_form_is_an_option(monkeypatch, capsys, options) -> None:
    code, out, err = run(monkeypatch, capsys, "explain", REVIEW, "--samples", 100, *options)
    assert code == 0, err
    shown = " ".join(out.split())
    assert "value × e^importance" in shown
    assert "by slalom (paper)" in shown
    assert "importance" in shown


@pytest.mark.slow
def test_standard_input_and_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "piste.cli", "explain", "-", "--json", "--samples", "60"]
    done = subprocess.run(command, input=REVIEW.encode(), capture_output=True, check=True)
    assert json.loads(done.stdout)["input"] == REVIEW
    (tmp_path / "latin.txt").write_bytes("caf\xe9".encode("latin1"))
    done = subprocess.run(
        [*command[:4], "--file", str(tmp_path / "latin.txt")], capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"not UTF-8" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain"], "Give either"),
        (["explain", ""], "empty"),
        (["explain", "good", "--file", "x"], "Give either"),
        (["explain", "--file", "no-such-file"], "no file"),
        (["explain", "good", "--model", "piste:nothing"], "piste:reviews"),
        (["explain", "good", "--target", "sideways"], "no class"),
        (["explain", "good", "--samples", "lots"], "whole number"),
        (["explain", "good", "--units", "letters"], "sentences"),
        (["explain", "good", "--units", "0-9"], "units: expected spans (start, end) with 0"),
        (["explain", "good", "--units", "0-2,words"], "units: expected one of words"),
        (["explain", "good", "--units", "words,sentences"], "units: expected levels from coarse"),
        (["explain", "good", "--units", ""], "units: expected one of words"),
        (["explain", "good", "--method", "magic"], "slalom"),
        (["explain", "good film " * 400], "truncate"),
        (["explain", "good", "--nothing"], "No such option"),
        (["explain", "good", "--form", "round"], "paper"),
        (["explain", "good film", "--html", "no/such/folder/x.html"], "could not be written"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(monkeypatch, capsys, arguments, words) -> None:
    code, _, err = run(monkeypatch, capsys, *arguments)
    assert code == 2
    assert words in " ".join(err.split())
    assert "Traceback" not in err


def test_lists_version_and_help(monkeypatch, capsys) -> None:
    assert "piste:reviews-gpt" in run(monkeypatch, capsys, "models")[1]
    assert json.loads(run(monkeypatch, capsys, "methods", "--json")[1])[0]["name"] == "slalom"
    assert piste.__version__ in run(monkeypatch, capsys, "--version")[1]
    code, out, _ = run(monkeypatch, capsys, "explain", "--help")
    assert code == 0
    assert "--samples" in out


def test_demo(monkeypatch, capsys, tmp_path: Path) -> None:
    code, out, err = run(monkeypatch, capsys, "demo", "--folder", tmp_path / "out")
    assert code == 0, err
    assert "wonderful" in out
    assert "Dress" in out
    assert len(list((tmp_path / "out").glob("*.html"))) == 4
    assert len(list((tmp_path / "out").glob("*.png"))) == 10
