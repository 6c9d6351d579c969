"""Ctrl + C, at every stage: one line, exit code 130, and how to go on."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import run
from tests.corpus.corpora import write

REVIEW = "A slow start, but a wonderful ending."


def press(*_: Any, **__: Any) -> Any:
    signal.raise_signal(signal.SIGINT)


def swallowed(*_: Any, **__: Any) -> Any:
    """Libraries that are interrupted while they are imported turn it into another error."""
    try:
        press()
    except KeyboardInterrupt:
        raise ImportError("cannot import name 'half' from partially initialized module") from None


@pytest.mark.parametrize("pressed", [press, swallowed])
@pytest.mark.parametrize(
    "stage",
    [
        "piste.cli.application",
        "piste.cli.command.start",
        "piste.classifiers.load",
        "piste.engine.engine.Engine.ask",
        "piste.methods.slalom.SlalomMethod.plan",
        "piste.methods.slalom.SlalomMethod.solve",
        "piste.explanation.Explanation.to_json",
    ],
)
def test_a_command_is_stopped(monkeypatch, capsys, stage: str, pressed: Any) -> None:
    monkeypatch.setattr(stage, pressed)
    code, out, err = run(monkeypatch, capsys, "explain", REVIEW, "--json")
    assert (code, out, err) == (130, "", "piste: stopped.\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("stage", ["part_store.PartStore.add", "corpus_run.explain_block"])
def test_a_corpus_says_how_to_go_on(monkeypatch, capsys, tmp_path: Path, stage: str) -> None:
    table, out = write(tmp_path / "texts.csv"), tmp_path / "run"
    command = ("corpus", table, "-o", out, "--method", "occlusion", "--json")
    with monkeypatch.context() as patched:
        patched.setattr(f"piste.corpus.{stage}", press)
        code, _, err = run(patched, capsys, *command)
    assert code == 130
    cost, told = err.splitlines()
    assert cost.startswith("7 rows to explain, at most about ")
    assert told == (
        f"piste: stopped. What is explained so far is in {out}: the same command continues."
    )
    code, printed, err = run(monkeypatch, capsys, *command)
    assert code == 0, err
    assert '"documents": 7' in printed


def test_an_evaluation_says_how_to_go_on(monkeypatch, capsys, tmp_path: Path) -> None:
    monkeypatch.setattr("piste.evaluation.benchmark.evaluation_run.ExampleRun", press)
    table = write(tmp_path / "texts.csv")
    own = ("--methods", "occlusion", "--folder", tmp_path / "run", "-n", 2)
    code, _, err = run(monkeypatch, capsys, "evaluate", "--data", table, *own)
    assert code == 130
    assert err.startswith("piste: stopped. What is measured so far is in ")
    assert len(err.splitlines()) == 1
