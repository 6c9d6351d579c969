"""Served models on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from piste.cli import application
from piste.errors import PisteError
from tests.classifiers.served.fake_server import FakeServer, serving

PROMPT = "Review: {text}\nSentiment:"
TEXT = "A slow start, but a wonderful ending."


def run(*words: object) -> tuple[str, str]:
    result = CliRunner().invoke(application(), [str(word) for word in words])
    if result.exception is not None:
        raise result.exception
    return result.stdout, result.stderr


def test_explain_reads_the_prompt_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_text(PROMPT + "\n")
    with serving() as server:
        shared = ("--model", server.url, "--served-model", "fake", "--samples", 30, "--json")
        labels = ("--labels", "positive, negative")
        out, err = run("explain", TEXT, "--prompt", file, *labels, *shared)
        again, _ = run("explain", TEXT, "--prompt", PROMPT, *labels, *shared)
        assert all(json.loads(body)["model"] == "fake" for body in server.paid)
    found = json.loads(out)
    assert found["classifier"]["prompt"] == PROMPT
    assert found["output"] == json.loads(again)["output"]
    assert "up to 31 requests" in err


def test_messages_and_wordings_are_json(tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps([{"role": "user", "content": "Review: {text}\nGood or bad?"}]))
    labels = '{"good": ["good", "positive"], "bad": "bad"}'
    with serving() as server:
        out, _ = run(
            "compare", TEXT, "--model", server.url, "--prompt", file, "--labels", labels,
            "--methods", "occlusion", "--samples", 30, "--json",
        )  # fmt: skip
        assert all("messages" in json.loads(body) for body in server.paid)
    assert '"good"' in out


@pytest.mark.parametrize("option", ["--prompt", "--labels"])
def test_broken_json_is_said(option: str) -> None:
    with pytest.raises(PisteError, match=f"{option}: expected"):
        run("explain", TEXT, "--model", "http://127.0.0.1:9/v1", option, "[1,")


def test_a_cap_stops_a_run() -> None:
    with serving() as server:
        shared = ("--model", server.url, "--prompt", PROMPT, "--labels", "positive,negative")
        with pytest.raises(PisteError, match="max_requests is 20"):
            run("explain", TEXT, *shared, "--max-requests", 20)
        assert server.received == 0


def test_corpus_and_evaluate(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    texts = ["A good film.", "A dull film.", "A great and good ending."]
    file.write_text("".join(json.dumps({"text": text, "label": 0}) + "\n" for text in texts))
    with serving(FakeServer()) as server:
        shared = ("--model", server.url, "--prompt", PROMPT, "--labels", "positive,negative")
        dry, _ = run(
            "corpus", file, "--out", tmp_path / "o", *shared, "--samples", 20, "--estimate"
        )
        assert "3 rows, up to 63 questions" in dry
        assert server.received == 0
        out, err = run("corpus", file, "--out", tmp_path / "o", *shared, "--samples", 20)
        assert "3 documents explained" in out
        assert "up to 63 requests" in err
        sent = server.received
        run("corpus", file, "--out", tmp_path / "o", *shared, "--samples", 20)
        assert server.received - sent < 10
        out, _ = run(
            "evaluate", "--data", file, "--examples", 2, "--samples", 20, "--methods",
            "occlusion", "--metrics", "deletion", "--json", *shared,
        )  # fmt: skip
        assert json.loads(out)["examples"] == 2
