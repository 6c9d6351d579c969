"""Language models on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import run
from tests.language_models import save_language_model

PROMPT = "review : {text}\nsentiment :"
TEXT = "the film was slow and the ending was wonderful"


@pytest.fixture
def piste(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    return partial(run, monkeypatch, capsys)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_language_model(tmp_path_factory.mktemp("model")))


def test_examples_are_data(piste: Any, folder: str, tmp_path: Path) -> None:
    shots = tmp_path / "shots.json"
    shots.write_text(json.dumps([["it is great", "good"], ["it was slow", "bad"]]))
    options = ["--model", folder, "--prompt", PROMPT, "--labels", "good,bad", "--units", "parts"]
    options += ["--few-shot", str(shots), "--free", "examples", "--content-free", "film"]
    found = json.loads(piste("explain", TEXT, *options, "--json")[1])
    assert found["parts"] == ["example 1", "example 2", "text"]
    pinned = piste("explain", TEXT, *options, "--pinned", "example 1", "--json")[1]
    assert json.loads(pinned)["parts"] == ["example 2", "text"]


def test_an_answer_is_compared(piste: Any, folder: str) -> None:
    options = ["--model", folder, "--answer", "good", "--against", "bad", "--samples", "20"]
    found = piste("compare", TEXT, *options, "--methods", "slalom,occlusion", "--json")[1]
    one = json.loads(found)["explanations"]["slalom"]
    assert one["target"]["name"] == "log-probability of 'good' over 'bad'"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--prompt", "sentiment :", "--labels", "good,bad"], "place for the input"),
        (["--prompt", "{text", "--labels", "good,bad"], "fields as"),
        (["--prompt", "{a} {b}", "--labels", "good,bad"], 'give {"a": "…", "b": "…"}'),
        (["--prompt", "{text} :", "--labels", "good"], "two or more labels"),
        (["--prompt", "{text} :", "--labels", "good,zebra"], "unknown tokens"),
        (["--prompt", "{text} :", "--labels", "good,bad", "--few-shot", "x"], "--few-shot"),
        (["--prompt", "{text} :", "--labels", "good,bad", "--pinned", "tex"], "got 'tex'"),
        (["--labels", "good,bad"], "without a prompt"),
        (["--answer", " "], "expected a text"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    piste: Any, folder: str, options: list[str], words: str
) -> None:
    code, _, told = piste("explain", TEXT, "--model", folder, *options)
    assert code == 2
    assert words in " ".join(told.split())
    assert "Traceback" not in told
