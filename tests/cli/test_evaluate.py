"""`piste evaluate` as a user meets it."""

from __future__ import annotations

import ast
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from piste.cli import application
from piste.evaluation.benchmark.run_store import read_results
from tests.cli import commands

REVIEWS = (
    ("A slow start, but a wonderful ending.", 1),
    ("The plot is ridiculous and the jokes are awful.", 0),
    ("I don't like this film, it is a waste of talent.", 0),
    ("Superb photography and a clever, warm story.", 1),
)


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str, str]:
    return commands.run(monkeypatch, capsys, "evaluate", *arguments)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures and pages take seconds, and once is enough."""
    monkeypatch.setattr("piste.show.report.metric_figures.write_figures", lambda *_: [])
    monkeypatch.setattr("piste.show.report.evaluation_html.to_html", lambda *_: "")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "empty").mkdir()
    file = tmp_path / "reviews.jsonl"
    rows = [
        {"text": text, "label": label, "split": "test" if n else "train"}
        | {"marks": [n % 2 for n in range(len(text.split()))]}
        for n, (text, label) in enumerate(REVIEWS * 2)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


FEW = ("--methods", "slalom,slalom:value,occlusion,random", "--samples", 60, "--examples", 3)


@pytest.mark.slow
def test_everything_is_written(monkeypatch, capsys, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    given = ("--data", data, *FEW, "--metrics", "deletion,fidelity", "--folder", folder)
    code, out, err = run(monkeypatch, capsys, *given)
    assert code == 0, err
    for word in ("slalom:value", "occlusion", "deletion AOPC", "R², all sizes", "Only 3 examples"):
        assert word in out.replace("\u00a0", " ")
    names = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    assert names >= {
        *("rows.jsonl", "run.json", "results.md", "results.csv", "results.parquet"),
        *("summary.csv", "index.html"),
    }
    figures = [name for name in names if name.startswith("figures/")]
    assert figures
    assert all((folder / name).read_bytes()[:4] == b"\x89PNG" for name in figures)
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    found = read_results(folder)
    assert found.settings["data"] == "reviews.jsonl"
    assert found.settings["command"].startswith("piste evaluate --data")


def test_a_run_goes_on(monkeypatch, capsys, data: Path, tmp_path: Path, undrawn: None) -> None:
    folder = tmp_path / "out"
    given = ("--data", data, *FEW, "--metrics", "deletion", "--folder", folder)
    assert run(monkeypatch, capsys, *given)[0] == 0
    before = (folder / "rows.jsonl").read_bytes()
    more = [*given]
    more[more.index(3)] = 5
    code, _, err = run(monkeypatch, capsys, *more)
    assert code == 0, err
    assert (folder / "rows.jsonl").read_bytes().startswith(before)
    assert len(read_results(folder).examples) == 5
    assert "5 examples" in (folder / "results.md").read_text(encoding="utf-8")
    code, _, err = run(monkeypatch, capsys, *more, "--seed", 7)
    assert code == 2
    assert "seed 0, now 7" in " ".join(err.split())


def test_json_for_programs(monkeypatch, capsys, data: Path) -> None:
    code, out, err = run(
        monkeypatch, capsys, "-d", data, *FEW, "--json", "--reference", "random", "--split", "test"
    )
    assert code == 0, err
    found = json.loads(out)
    methods = {row["method"]: row for row in found["methods"]}
    assert methods["slalom"]["aopc_examples"] == 3
    assert {one["other"] for one in found["differences"]} == {"random"}
    assert found["refused"] == {}
    assert found["settings"]["data"] == "reviews.jsonl (test)"
    assert found["figures"]["aopc"] == "higher"
    assert all(methods[name]["calls"] <= 60 for name in ("slalom", "slalom:value"))


def test_rationales_labels_and_explaining_again(monkeypatch, capsys, data: Path) -> None:
    given = ("-d", data, "--methods", "occlusion,gradient", "-n", 2, "--json")
    metrics = "rationale,naive_bayes,stability,equal_inputs,sanity"
    more = ("--metrics", metrics, "--rationale-column", "marks", "--max-words", 9)
    code, out, err = run(monkeypatch, capsys, *given, *more)
    assert code == 0, err
    row = json.loads(out)["methods"][0]
    assert 0 <= row["auroc"] <= 1
    assert row["spearman_nb"] is not None
    assert row["stability"] == 1
    assert row["sanity"] < 1


def test_saved_explanations_are_judged(
    monkeypatch, capsys, data: Path, tmp_path: Path, undrawn: None
) -> None:
    folder = tmp_path / "out"
    names = "occlusion,slalom,slalom[sampler=short]"
    given = ("-d", data, "--methods", names, "--samples", 60, "-n", 2, "--metrics", "deletion")
    code, _, err = run(monkeypatch, capsys, *given, "--folder", folder, "--save-explanations")
    assert code == 0, err
    saved = folder / "explanations"
    again = tmp_path / "again"
    given = ("--explanations", saved, "--metrics", "deletion,rationale", "--folder", again)
    given += ("--data", data, "--rationale-column", "marks")
    code, out, err = run(monkeypatch, capsys, *given)
    assert code == 0, err
    first, second = read_results(folder), read_results(again)
    assert set(second.methods) == {"occlusion", "slalom", "slalom_sampler=short"}
    assert second.values("slalom", "aopc") == pytest.approx(first.values("slalom", "aopc"))
    assert second.values("slalom_sampler=short", "aopc") == pytest.approx(
        first.values("slalom[sampler=short]", "aopc")
    )
    assert len(second.values("occlusion", "auroc")) == 2
    assert (again / "results.md").is_file()
    code, out, err = run(
        monkeypatch, capsys, "--explanations", saved, "--methods", "slalom:value", "--json"
    )
    assert code == 0, err
    assert [row["method"] for row in json.loads(out)["methods"]] == ["slalom:value"]
    for options, words in (
        (("--explanations", saved, "--metrics", "stability"), "explains again"),
        (("--explanations", saved, "--methods", "magic"), "'magic'"),
        (("--explanations", saved, "--model", "piste:reviews-gpt"), "judge with that one"),
        (("--explanations", tmp_path / "nowhere"), "no folder"),
        (("--explanations", data.parent / "empty"), "no explanations"),
    ):
        code, _, err = run(monkeypatch, capsys, *options)
        assert code == 2
        assert words in " ".join(err.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--data"),
        (("--data", "no-such.csv"), "no file"),
        (("--data", "DATA", "--text-column", "review"), "it has text"),
        (("--data", "DATA", "--split", "dev"), "train, test"),
        (("--data", "DATA", "--methods", "magic"), "slalom"),
        (("--data", "DATA", "--methods", "slalom[magic=1]"), "no option"),
        (("--data", "DATA", "--metrics", "magic"), "deletion"),
        (("--data", "DATA", "--model", "piste:nothing"), "piste:reviews"),
        (("--data", "DATA", "--examples", "0"), "examples: expected"),
        (("--data", "DATA", "--samples", "0"), "samples: expected"),
        (("--data", "DATA", "--units", "letters"), "sentences"),
        (("--data", "DATA", "--reference", "magic"), "expected one of the methods"),
        (("--data", "DATA", "--min-words", "900"), "900 or more words"),
        (("--data", "DATA", "--save-explanations"), "no folder"),
        (("--data", "DATA", "--folder", "/proc/nowhere"), "can't be made"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    monkeypatch, capsys, data: Path, options: tuple[Any, ...], words: str
) -> None:
    given = [data if one == "DATA" else one for one in options]
    code, _, err = run(monkeypatch, capsys, *given)
    assert code == 2
    assert words in " ".join(err.split())
    assert "Traceback" not in err


OPTIONS = {
    "--data": None, "--model": "piste:reviews", "--methods": None, "--metrics": None,
    "--examples": 50, "--samples": None, "--units": "words", "--removal": "delete",
    "--long": "truncate", "--seed": 0, "--folder": None, "--explanations": None,
    "--save-explanations": False, "--reference": None, "--text-column": "text",
    "--label-column": "label", "--pair-column": None, "--image-column": None,
    "--rationale-column": None, "--words-column": None, "--split": None, "--min-words": 0,
    "--max-words": None, "--runtime": "torch", "--cache": None, "--json": False,
    "--prompt": None, "--labels": None, "--served-model": None, "--max-requests": None,
    "--max-tokens": None, "--concurrency": None, "--timeout": None, "--hypothesis": None,
    "--few-shot": None, "--pinned": None, "--free": None, "--content-free": None,
}  # fmt: skip


def test_every_field_is_an_option_with_its_default() -> None:
    command = typer.main.get_command(application()).commands["evaluate"]  # type: ignore[attr-defined]  # of a group
    found = {one.opts[0]: one.default for one in command.params if one.name != "help"}
    assert found == OPTIONS
    short = {one.opts[0]: one.opts[1] for one in command.params if len(one.opts) > 1}
    assert short == {"--data": "-d", "--model": "-m", "--examples": "-n"}
    source = ast.parse(
        Path(str(import_module("piste.cli.evaluate").__file__)).read_text(encoding="utf-8")
    )
    (own,) = [
        node.args
        for node in source.body
        if isinstance(node, ast.FunctionDef) and node.name == "evaluate"
    ]
    assert 1 <= len(own.args) + len(own.kwonlyargs) <= 6  # options come in groups
