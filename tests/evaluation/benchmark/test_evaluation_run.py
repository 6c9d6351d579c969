"""The benchmark: same examples, same budget, same results; kills, refusals, other settings."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

import piste
from piste import PisteError
from piste.data.examples import Example
from piste.evaluation.benchmark import explainers
from piste.evaluation.benchmark.evaluation_run import evaluate
from piste.evaluation.benchmark.explainers import make_entries, split_names
from piste.evaluation.benchmark.run_store import ROWS, read_results
from piste.evaluation.metrics.agreement import NaiveBayes, naive_bayes_table
from piste.evaluation.metrics.base import derive
from piste.evaluation.results import Results
from piste.methods.occlusion import OcclusionMethod

WORDS = ("good", "bad", "wonderful", "dull", "the", "film", "and", "plot", "never", "ends")
WEIGHTS = {word: weight for weight, word in enumerate(WORDS, start=-4)}
METHODS = ("slalom", "linear", "occlusion", "random")
METRICS = ("deletion", "fidelity")


def tone(texts: list[str]) -> list[float]:
    """Weights of the words, bent, so that no method is right about everything."""
    return [math.tanh(sum(WEIGHTS.get(w, 0) for w in t.split()) / 5) * 3 for t in texts]


@pytest.fixture
def classifier() -> Any:
    return piste.load(tone, version="1")


@pytest.fixture
def examples() -> list[Example]:
    import numpy as np

    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 9)) for _ in range(10)]
    return [Example(str(100 + n), text, label=n % 2) for n, text in enumerate(texts)]


def plain(results: Results, seconds: bool = False) -> list[Any]:
    """All rows, comparable: NaN as None, and without the time that was measured."""
    rows = [row.to_dict() for row in results.rows]
    for row in rows:
        if not seconds:
            row["figures"].pop("seconds", None)
    return rows


def run(classifier: Any, data: Any, **options: Any) -> Results:
    chosen: dict[str, Any] = {"methods": METHODS, "metrics": METRICS, "samples": 60}
    return evaluate(classifier, data, **chosen | options)


def test_all_methods_on_the_same_examples_with_the_same_budget(classifier, examples) -> None:
    found = run(classifier, examples, examples=4, samples=70)
    assert found.methods == METHODS
    assert found.examples == ("100", "101", "102", "103")
    for method in METHODS:
        assert list(found.values(method, "aopc")) == list(found.examples)
    for method in ("slalom", "linear"):  # the same question twice is one call
        assert all(50 <= calls <= 70 for calls in found.values(method, "calls").values())
    twice = run(classifier, examples, examples=4, samples=140, methods=("slalom", "linear"))
    assert min(twice.values("slalom", "calls").values()) > 70
    assert min(twice.values("linear", "calls").values()) > 70
    control = found.values("random", "r2_all")
    assert sum(found.values("slalom", "r2_all").values()) > sum(control.values())
    assert set(found.figures) >= {"aopc", "r2_all", "seconds", "calls"}
    assert found.settings["seed"] == 0


def test_a_second_run_is_identical_and_order_does_not_matter(classifier, examples) -> None:
    first, second = (run(classifier, examples, examples=4) for _ in range(2))
    assert plain(first) == plain(second)
    backwards = plain(run(classifier, examples[3::-1]))
    key = lambda row: (row["example"], row["method"])  # noqa: E731  # said once
    assert sorted(backwards, key=key) == sorted(plain(first), key=key)
    other = run(classifier, examples, examples=4, seed=1)
    assert plain(first) != plain(other)
    slopes = [run(classifier, [one], methods=["random"]).rows[0].figures for one in examples[:2]]
    assert slopes[0]["mse_1"] != slopes[1]["mse_1"]
    assert derive(0, "1") != derive(0, "2") != derive(1, "2")


def test_killed_in_the_middle_and_resumed(classifier, examples, tmp_path, monkeypatch) -> None:
    whole = run(classifier, examples, examples=6, folder=tmp_path / "whole")
    asked: list[str] = []
    solve = OcclusionMethod.solve

    def failing(self: Any, task: Any) -> Any:
        asked.append(task.subject.input)
        if len(asked) == 4:
            raise RuntimeError("killed")
        return solve(self, task)

    monkeypatch.setattr(OcclusionMethod, "solve", failing)
    with pytest.raises(RuntimeError, match="killed"):
        run(classifier, examples, examples=6, folder=tmp_path / "torn")
    file = tmp_path / "torn" / ROWS
    assert len(file.read_bytes().splitlines()) == 3 * len(METHODS)
    assert read_results(tmp_path / "torn").examples == ("100", "101", "102")
    # The kill comes while rows are being written: within a letter, and within an example.
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-2]) + lines[-2][:40] + "“".encode()[:2])
    assert read_results(tmp_path / "torn").examples == ("100", "101")
    resumed = run(classifier, examples, examples=6, folder=tmp_path / "torn")
    assert asked[4:] == [example.text for example in examples[2:6]], "what was done stays"
    assert plain(resumed) == plain(whole)
    assert plain(read_results(tmp_path / "torn"), seconds=True) == plain(resumed, seconds=True)
    before = file.read_bytes()
    again = run(classifier, examples, examples=6, folder=tmp_path / "torn")
    assert len(asked) == 8, "nothing was left to do"
    assert plain(again, seconds=True) == plain(resumed, seconds=True)
    assert file.read_bytes() == before


KILLED = """
import os, signal, sys
import piste
from piste.evaluation.benchmark.evaluation_run import evaluate

def count(texts):
    if sys.argv[2] == "kill" and any("seven" in text for text in texts):
        os.kill(os.getpid(), signal.SIGKILL)
    return [sum(map(len, text.split()[::2])) for text in texts]

texts = [f"a {word} film about nothing" for word in "one two three six seven eight".split()]
evaluate(piste.load(count, version="1"), texts, methods=["occlusion", "random"],
         metrics=["single"], folder=sys.argv[1])
"""


@pytest.mark.slow
def test_a_real_kill_loses_one_example_at_most(tmp_path: Path) -> None:
    for way, folder in (("kill", "torn"), ("live", "torn"), ("live", "whole")):
        command = [sys.executable, "-c", KILLED, str(tmp_path / folder), way]
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode == (0 if way == "live" else -9), done.stderr
        if way == "kill":
            assert len(read_results(tmp_path / "torn").examples) == 4
    assert plain(read_results(tmp_path / "torn")) == plain(read_results(tmp_path / "whole"))


def test_a_broken_line_in_the_middle_is_told(classifier, examples, tmp_path: Path) -> None:
    run(classifier, examples, examples=2, methods=["occlusion"], folder=tmp_path)
    lines = (tmp_path / ROWS).read_text().splitlines()
    (tmp_path / ROWS).write_text("\n".join([lines[0][:50], lines[1]]) + "\n")
    with pytest.raises(PisteError, match="Line 1 of"):
        run(classifier, examples, examples=2, methods=["occlusion"], folder=tmp_path)


def test_more_examples_go_on_and_fewer_are_there(
    classifier, examples, tmp_path, monkeypatch
) -> None:
    told: list[str] = []
    explain = explainers.explain
    monkeypatch.setattr(
        explainers, "explain", lambda c, i, **how: told.append(i) or explain(c, i, **how)
    )
    run(classifier, examples, examples=3, folder=tmp_path, methods=["occlusion"])
    five = run(classifier, examples, examples=5, folder=tmp_path, methods=["occlusion"])
    assert told == [example.text for example in examples[:5]]
    assert plain(five) == plain(run(classifier, examples, examples=5, methods=["occlusion"]))
    assert json.loads((tmp_path / "run.json").read_text())["examples"][4][0] == "104"
    two = run(classifier, examples, examples=2, folder=tmp_path, methods=["occlusion"])
    assert plain(two) == plain(five)[:2]
    assert len(read_results(tmp_path).examples) == 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 1}, "seed 0, now 1"),
        ({"samples": 80}, "samples 60, now 80"),
        ({"methods": ("slalom", "random")}, "methods"),
        ({"metrics": ("deletion",)}, "metrics"),
        ({"options": {"slalom": {"sampler": "short"}}}, "options"),
        ({"units": "sentences"}, "units None, now 'sentences'"),
    ],
)
def test_another_run_in_the_same_folder_is_refused(
    classifier, examples, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    run(classifier, examples, examples=1, folder=tmp_path)
    before = (tmp_path / ROWS).read_bytes()
    with pytest.raises(PisteError) as refused:
        run(classifier, examples, examples=1, folder=tmp_path, **change)
    assert words in str(refused.value)
    assert "another folder" in str(refused.value)
    assert (tmp_path / ROWS).read_bytes() == before


def test_another_model_or_other_data_in_the_same_folder_is_refused(
    classifier, examples, tmp_path: Path
) -> None:
    run(classifier, examples, examples=2, folder=tmp_path)
    with pytest.raises(PisteError, match="model"):
        run(piste.load(tone, version="2"), examples, examples=2, folder=tmp_path)
    with pytest.raises(PisteError, match="the data, first in example '101'"):
        run(classifier, [examples[0], Example("101", "new")], folder=tmp_path)
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(PisteError, match="not a whole one"):
        run(classifier, examples, examples=2, folder=tmp_path)
    (tmp_path / "run.json").unlink()
    with pytest.raises(PisteError, match="not empty and holds no run of piste evaluate"):
        run(classifier, examples, examples=2, folder=tmp_path)
    with pytest.raises(PisteError, match="holds no run of piste evaluate"):
        read_results(tmp_path)


def test_two_evaluations_can_not_write_to_one_folder(
    classifier, examples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fcntl")
    explain = explainers.explain

    def meanwhile(*given: Any, **how: Any) -> Any:
        with pytest.raises(PisteError, match="Another run is writing"):
            run(classifier, examples, examples=2, folder=tmp_path, methods=["random"])
        return explain(*given, **how)

    monkeypatch.setattr(explainers, "explain", meanwhile)
    found = run(classifier, examples, examples=2, folder=tmp_path, methods=["random"])
    assert plain(read_results(tmp_path)) == plain(found)


def test_a_method_that_refuses_and_an_example_that_fails(classifier, examples) -> None:
    texts = [examples[0], Example("none", ""), examples[1]]
    found = run(classifier, texts, methods=("occlusion", "gradient"))
    reasons = {(row.example, row.method): row.problem for row in found.rows}
    assert "looks inside" in reasons["100", "gradient"]
    assert "empty" in reasons["none", "occlusion"]
    assert reasons["100", "occlusion"] == reasons["101", "occlusion"] == ""
    assert list(found.values("occlusion", "aopc")) == ["100", "101"]
    assert found.values("gradient", "aopc") == {}
    assert set(found.problems()) == {"occlusion", "gradient"}


def test_every_example_has_a_seed_of_its_own(classifier, examples, monkeypatch) -> None:
    seeds: list[tuple[str, int]] = []
    explain = explainers.explain

    def noting(given: Any, input: Any, **how: Any) -> Any:
        seeds.append((input, how["seed"]))
        return explain(given, input, **how)

    monkeypatch.setattr(explainers, "explain", noting)
    run(classifier, examples, examples=4, methods=["random"])
    forth = dict(seeds)
    assert len(set(forth.values())) == 4
    seeds.clear()
    run(classifier, examples[::-1], methods=["random", "zero"])
    assert forth.items() <= dict(seeds).items(), "order and company change nothing"
    assert len(set(seeds)) == len(examples), "all methods have the same"


def test_scores_share_one_explanation(classifier, examples, monkeypatch) -> None:
    told: list[Any] = []
    explain = explainers.explain
    monkeypatch.setattr(
        explainers, "explain", lambda c, i, **how: told.append(how) or explain(c, i, **how)
    )
    paper = "slalom[form=paper]"
    names = (paper, f"{paper}:importance", f"{paper}:nothing", "slalom:value")
    found = run(classifier, examples, examples=1, methods=names)
    assert found.methods == names
    assert [how.get("form") for how in told] == ["paper", None]
    rows = {row.method: row for row in found.rows}
    own, other = rows[paper].figures, rows[f"{paper}:importance"].figures
    assert own["r2_all"] == other["r2_all"], "the same explanation predicts the same"
    assert own["aopc"] != other["aopc"], "another score ranks otherwise"
    assert "no score 'nothing'" in rows[f"{paper}:nothing"].problem
    alone = run(classifier, examples, examples=1, methods=[f"{paper}:importance"])
    assert alone.rows[0].figures["aopc"] == other["aopc"]


def test_names_of_methods() -> None:
    assert split_names("a[x=1,y=2]:v, b") == ["a[x=1,y=2]:v", "b"]
    short, plain_ = make_entries(
        "slalom[sampler=short,samples=9]:value,occlusion", 50, {"slalom": {"solver": "sgd"}}
    )
    assert short.options == {"samples": 9, "solver": "sgd", "sampler": "short"}
    assert (short.label, short.variant) == (
        "slalom[sampler=short,samples=9]:value",
        "slalom[sampler=short,samples=9]",
    )
    assert plain_.options == {"held_out": 0}  # no verdict of its own
    assert make_entries("lime[kernel_width=5.5]")[0].options == {"kernel_width": 5.5}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"methods": ["magic"]}, "magic"),
        ({"methods": ["slalom", "slalom"]}, "given twice"),
        ({"methods": []}, "No method"),
        ({"methods": ["slalom[sampler]"]}, "option=value"),
        ({"methods": ["slalom[size=3]"]}, "no option 'size'"),
        ({"methods": ["slalom[sampler=magic]"]}, "sampler: expected"),
        ({"methods": ["slalom:a:b"]}, "can't be read"),
        ({"options": {"lime": {}}}, "not among the methods"),
        ({"metrics": ["magic"]}, "stability"),
        ({"metrics": []}, "No metric"),
        ({"metrics": ["sanity", "sanity"]}, "both give"),
        ({"samples": 0}, "samples: expected"),
        ({"examples": 0}, "examples: expected"),
        ({"seed": -1}, "seed: expected"),
        ({"units": "letters"}, "units: expected"),
        ({"removal": "magic"}, "removal: expected"),
        ({"reference": "magic"}, "reference='magic'"),
        ({"save_explanations": True}, "no folder"),
    ],
)
def test_wrong_names_are_refused_before_the_work(classifier, examples, options, words) -> None:
    with pytest.raises(PisteError) as refused:
        run(classifier, examples, **options)
    assert words in str(refused.value)


def test_long_texts_are_cut_and_it_is_noted(bert: Any) -> None:
    long, short = "good film and bad plot " * 30, "a good film"
    found = run(bert, [long, short], methods=["occlusion"], metrics=["single"])
    assert [bool(row.note) for row in found.rows] == [True, False]
    assert found.rows[0].note.startswith("text cut:")
    assert found.notes() == {"text cut": 1}
    assert found.settings["notes"] == {"text cut": "1 examples"}
    refused = run(bert, [long, short], methods=["occlusion"], metrics=["single"], long="error")
    assert "truncate" in refused.rows[0].problem
    tokens = run(bert, [short], methods=["occlusion"], metrics=["single"], units="tokens")
    assert tokens.rows[0].figures["spearman_single"] == pytest.approx(1.0)
    masked = run(bert, [short], methods=["occlusion"], metrics=["single"], removal="mask")
    assert masked.rows[0].figures["spearman_single"] == pytest.approx(1.0)


def test_rationales_and_word_counts_come_from_the_data(classifier, tmp_path: Path) -> None:
    rows = [
        {"text": "the good film never ends", "label": 1, "marks": [0, 0, 0, 1, 1]},
        {"text": "a dull plot and bad film", "label": 0, "marks": [0, 1, 0, 0, 1, 0]},
        {"text": "no marks here", "label": 0, "marks": None},
    ]
    file = tmp_path / "data.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    from piste.data.examples import read_data

    data = read_data(file, rationale="marks", shuffle=False)
    found = evaluate(
        classifier, data, methods=["occlusion"], metrics=["rationale", "naive_bayes"], seed=2
    )
    by_hand = naive_bayes_table([row["text"] for row in rows], [1, 0, 0])
    wanted = evaluate(
        classifier,
        data,
        methods=["occlusion"],
        metrics=["rationale", NaiveBayes(by_hand)],
        seed=2,
    )
    assert plain(found) == plain(wanted)
    marked = found.values("occlusion", "auroc")
    assert set(marked) == {"0", "1"}
    assert marked["0"] == pytest.approx(1.0), "the heaviest words were marked"
    with pytest.raises(PisteError, match="no labels"):
        evaluate(classifier, ["good"], methods=["occlusion"], metrics=["naive_bayes"])
    labelled = [Example("0", "x", label="positive")]
    with pytest.raises(PisteError, match="no class of the model"):
        evaluate(classifier, labelled, methods=["occlusion"], metrics=["naive_bayes"])


def test_explanations_are_saved_and_progress_is_told(classifier, examples, tmp_path) -> None:
    seen: list[tuple[int, int]] = []
    run(
        classifier,
        examples,
        examples=3,
        methods=["occlusion", "slalom[sampler=short]:value"],
        folder=tmp_path,
        save_explanations=True,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]
    files = sorted((tmp_path / "explanations").rglob("*.json"))
    assert len(files) == 6
    assert piste.read(files[0]).input in {example.text for example in examples[:3]}


def test_a_cache_changes_nothing(classifier, examples, tmp_path: Path) -> None:
    plainly = run(classifier, examples, examples=2)
    for _ in range(2):
        cached = run(classifier, examples, examples=2, cache=tmp_path / "answers")
        assert plain(cached) == plain(plainly)


def test_a_full_disk_is_told_and_loses_nothing(classifier, examples, tmp_path, monkeypatch) -> None:
    run(classifier, examples, examples=1, folder=tmp_path, methods=["occlusion"])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("piste.evaluation.benchmark.run_store.os.fsync", full)
        with pytest.raises(PisteError, match="No space left"):
            run(classifier, examples, examples=2, folder=tmp_path, methods=["occlusion"])
    found = run(classifier, examples, examples=2, folder=tmp_path, methods=["occlusion"])
    assert plain(found) == plain(run(classifier, examples, examples=2, methods=["occlusion"]))


def test_the_bar_counts_examples(classifier, examples, monkeypatch) -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=90)
    monkeypatch.setattr("piste.engine.progress.Console", lambda **_: terminal)
    run(classifier, examples, examples=3, methods=["occlusion"], progress=False)
    assert screen.getvalue() == ""
    run(classifier, examples, examples=3, methods=["occlusion"], progress=True)
    assert "3 of 3" in Text.from_ansi(screen.getvalue()).plain
