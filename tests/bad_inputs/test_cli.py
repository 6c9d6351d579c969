"""Bad inputs on the command line: one sentence, exit code 2, nothing written, no traceback."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.bad_inputs.files import GOOD, is_sentence
from tests.cli.commands import run

# name: the command, and words of its refusal. Files are in the folder of wrong files.
EXPLAIN = {
    "nothing": ("explain", "Give either a text"),
    "empty": ("explain ''", "The text is empty"),
    "blank": ("explain '  '", "The text is empty"),
    "two inputs": ("explain Good. -f good.txt", "Give either a text"),
    "no file": ("explain -f nowhere.txt", "There is no file 'nowhere.txt'"),
    "a folder": ("explain -f folder", "There is no file 'folder': it is a folder"),
    "an empty file": ("explain -f empty.txt", "The text is empty"),
    "a blank file": ("explain -f blank.txt", "The text is empty"),
    "not UTF-8": ("explain -f latin.txt", "not UTF-8"),
    "UTF-16": ("explain -f utf16.txt", "not UTF-8"),
    "binary": ("explain -f binary.bin", "not UTF-8"),
    "many megabytes": ("explain -f huge.txt", "50,000,000 bytes, more than the 4,000,000"),
    "an image for a text model": ("explain -i bomb.png", "Expected a text"),
    "no image": ("explain nowhere.png", "There is no file"),
    "a method": ("explain Good. --method magic", "method: expected one of"),
    "samples": ("explain Good. --samples many", "--samples: expected a whole number"),
    "no samples": ("explain Good. --samples 0", "samples: expected a whole number of at least 1"),
    "a seed": ("explain Good. --seed -1", "seed: expected"),
    "units": ("explain Good. --units letters", "units: expected one of"),
    "spans outside": ("explain Good. --units 3-99", "span"),
    "long": ("explain Good. --long maybe", "long: expected one of"),
    "removal": ("explain Good. --removal burn", "removal: expected one of"),
    "a target": ("explain Good. --target maybe", "There is no class 'maybe'"),
    "a far target": ("explain Good. --target 7", "There is no class 7"),
    "a margin": ("explain Good. --target 'positive vs positive'", "two different classes"),
    "an option": ("explain Good. --option nosign", "--option: expected name=value"),
    "an unknown option": ("explain Good. --option a=1", "has no option 'a'"),
    "out": ("explain Good. --out result.xyz", "its suffix must be"),
    "a cache that is a file": ("explain Good. --cache good.txt", "good.txt"),
    "a runtime": ("explain Good. -m folder --runtime steam", "runtime: expected one of"),
    "labels": ("explain Good. --labels '{'", "--labels: expected"),
    "few shots": ("explain Good. --few-shot x", "--few-shot: expected JSON"),
    "a timeout": ("explain Good. --timeout -1", "timeout: expected seconds"),
    "nobody listens": (
        "explain Good. -m http://127.0.0.1:9/v1 --labels a,b --prompt '{text}' --served-model m",
        "127.0.0.1:9",
    ),
    "no methods": ("compare Good. --methods ''", "No method was given"),
    "one method twice": ("compare Good. --methods lime,lime", "given twice"),
    "compare a folder": ("compare -f folder", "There is no file"),
}
MODELS = {
    "no model": "no config.json",
    "no_config": "no config.json",
    "bad_config": "config.json",
    "list_config": "config.json",
    "no_type": "model_type",
    "odd_type": "dream",
    "no_weights": "weights",
    "cut_weights": "weights",
    "empty_weights": "weights",
    "pickle": "safetensors",
    "bad_tokenizer": "tokenizer",
    "other_size": "",
    "t5": "",
    "good.txt": "",
    "nowhere/at/all": "does not exist",
}
IMAGES = {
    "bomb.png": "make the image smaller",
    "large.png": "12000 × 12000 pixels",
    "huge.png": "300,000,000 bytes",
    "broken.png": "broken image",
    "empty.png": "not an image",
    "text.png": "not an image",
    "page.docx": "not an image",
}
CORPUS = {
    "no file": ("nowhere.csv", "There is no file or folder"),
    "a text": ("good.txt", "expected one of .csv"),
    "a spreadsheet": ("table.xlsx", "expected one of .csv"),
    "an empty folder": ("folder", "has no table"),
    "an empty table": ("empty.csv", "is empty"),
    "other columns": ("wrong.csv", "has no column 'text'"),
    "other fields": ("wrong.jsonl", "has no column 'text'"),
    "Parquet": ("broken.parquet", "not a whole Parquet file"),
    "empty Parquet": ("empty.parquet", "not a whole Parquet file"),
    "Arrow": ("broken.arrow", "not a whole Arrow file"),
    "blank rows": ("blank.csv", "No row could be explained"),
    "Latin rows": ("latin.csv", "not UTF-8"),
    "broken lines": ("broken.jsonl", "The first of 2 was refused"),
    "lists": ("list.jsonl", "The first of 2 was refused"),
    "numbers": ("numbers.jsonl", "not text but int"),
    "numbers in Parquet": ("numbers.parquet", "not text but int"),
    "bytes": ("bytes.parquet", "bytes, not text"),
    "an open quote": ("quote.csv", "a quotation mark that is never closed"),
    "a target": ("good.csv --target maybe", "There is no class 'maybe'"),
    "units": ("good.csv --units letters", "units: expected one of"),
    "levels": ("good.csv --units words,paragraphs", "from coarse to fine"),
    "long": ("good.csv --long maybe", "long: expected one of"),
    "removal": ("good.csv --removal burn", "removal: expected one of"),
    "an image's removal": ("good.csv --removal blur", "removal: expected one of"),
    "a seed": ("good.csv --seed -1", "seed: expected"),
    "samples": ("good.csv --samples 0", "samples: expected"),
    "a method": ("good.csv --method magic", "method: expected one of"),
    "no vocabulary": ("good.csv --vocabulary nowhere.parquet", "There is no vocabulary"),
    "another vocabulary": ("good.csv --vocabulary numbers.parquet", "no vocabulary of Piste's"),
    "refine alone": ("good.csv --refine 3", "--refine improves"),
    "phrases": ("good.csv --option 'phrases=[[0.5, 1]]'", "phrases: expected"),
    "phrases of sentences": (
        "good.csv --units sentences --option phrases=auto",
        "phrases join words",
    ),
    "phrases of a method": (
        "good.csv --method occlusion --option phrases=auto",
        "needs a method that finds pairs",
    ),
    "a block": ("good.csv --block 0", "block: expected"),
    "workers": ("good.csv --workers 0", "--workers: expected"),
    "an engine": ("good.csv --engine steam", "--engine: expected local or ray"),
    "a kept column": ("good.csv --keep topic", "has no column 'topic'"),
    "a column of ours": ("good.csv --keep text", "can't be kept"),
    "an id": ("good.csv --id-column number", "has no column 'number'"),
    "a pair": ("good.csv --pair-column second", "has no column 'second'"),
    "images": ("good.csv --model piste:fashion", "reads images"),
    "a broken run": ("good.csv --out run_broken", "can't be read"),
    "a list for a run": ("good.csv --out run_list", "manifest"),
    "a run of the future": ("good.csv --out run_future", "update Piste"),
    "somebody's folder": ("good.csv --out thesis", "not empty and holds no corpus run"),
    "a file for a folder": ("good.csv --out good.txt", "good.txt"),
    "a folder in a file": ("good.csv --out good.txt/run", "good.txt"),
}
RESULTS = {
    "query nothing": ("query", "What is asked?"),
    "query no run": ("query folder labels", "holds no corpus run"),
    "query a file": ("query good.txt labels", "holds no corpus run"),
    "query a broken run": ("query run_broken labels", "can't be read"),
    "words of nothing": ("words folder", "holds no corpus run"),
    "least": ("words folder --least -1", "--least: expected a whole number of at least 1"),
    "top": ("words folder --top 0", "--top: expected"),
    "diff of nothing": ("diff folder folder", "holds no corpus run"),
    "diff of no vocabulary": ("diff numbers.parquet numbers.parquet", "no vocabulary"),
    "vocabulary of nothing": ("vocabulary head.csv -o words.parquet", "has no rows"),
    "vocabulary of a text": ("vocabulary good.txt -o words.parquet", "expected one of"),
    "vocabulary target": ("vocabulary good.csv -o words.parquet --target maybe", "no class"),
    "vocabulary size": ("vocabulary good.csv -o words.parquet --documents 0", "--documents"),
    "vocabulary nowhere": ("vocabulary good.csv -o no/words.parquet", "is not there"),
    "evaluate nothing": ("evaluate --data nowhere.csv", "There is no file"),
    "evaluate metrics": ("evaluate --data good.csv --metrics magic", "metric"),
    "evaluate other columns": ("evaluate --data wrong.csv", "has no column 'text'"),
    "serve no results": ("serve --results folder", "folder"),
    "concepts of nothing": ("concepts --concept praise", "give --data"),
    "concepts nowhere": ("concepts --data nowhere.csv --target 1 --concept praise", "nowhere.csv"),
}


@pytest.fixture
def refused(monkeypatch: Any, capsys: Any, here: Path, reviews: Any) -> Any:
    """Runs a command among the wrong files; its refusal. What was there is there, and no more."""
    loaded = {"piste:reviews": reviews}
    from piste.classifiers.hugging_face import BundledModel, NamedModel

    def load(self: Any, source: Any, how: Any) -> Any:
        return loaded[source] if source in loaded else NamedModel.load(self, source, how)

    monkeypatch.setattr(BundledModel, "load", load)
    monkeypatch.chdir(here)

    def refuse(*arguments: object) -> str:
        before = _there(here)
        code, out, err = run(monkeypatch, capsys, *arguments)
        assert code == 2, (out, err)
        assert _there(here) == before, err
        lines = err.splitlines()
        told = [line for line in lines if line.startswith("piste: ")]
        assert len(told) == 1, err
        assert lines[-1] == told[0], err
        assert is_sentence(told[0]), err
        return told[0]

    return refuse


def _there(folder: Path) -> dict[str, int]:
    found = (Path(base, name) for base, _, names in os.walk(folder) for name in names)
    return {str(file): file.stat().st_size for file in found if file.name != ".lock"}


@pytest.mark.parametrize(("command", "words"), EXPLAIN.values(), ids=EXPLAIN)
def test_explain(refused: Any, command: str, words: str) -> None:
    assert words in refused(*shlex.split(command))


@pytest.mark.parametrize(("folder", "words"), MODELS.items(), ids=MODELS)
def test_models(refused: Any, folder: str, words: str) -> None:
    name = folder if "/" in folder or "." in folder else f"./{folder.replace(' ', '_')}"
    told = refused("explain", GOOD, "--model", name)
    assert words in told
    assert "neither a bundled model" not in told


@pytest.mark.parametrize(("image", "words"), IMAGES.items(), ids=IMAGES)
def test_images(refused: Any, image: str, words: str) -> None:
    assert words in refused("explain", "--image", image, "--model", "piste:fashion")


@pytest.mark.parametrize(("command", "words"), CORPUS.values(), ids=CORPUS)
def test_corpus(refused: Any, tmp_path: Path, command: str, words: str) -> None:
    given = shlex.split(command)
    given += [] if "--out" in given else ["--out", str(tmp_path / "run")]
    given += [] if "--samples" in given else ["--samples", "20"]
    assert words in refused("corpus", *given)


@pytest.mark.parametrize("first", ["good.csv --target maybe", "blank.csv", "numbers.jsonl"])
def test_a_corrected_command_is_not_held_up(
    refused: Any, monkeypatch: Any, capsys: Any, tmp_path: Path, first: str
) -> None:
    how = ("--out", tmp_path / "run", "--method", "occlusion")
    refused("corpus", *shlex.split(first), *how)
    code, out, err = run(monkeypatch, capsys, "corpus", "good.csv", *how)
    assert code == 0, err
    assert "3 documents explained, 0 rows refused" in out


@pytest.mark.parametrize(("command", "words"), RESULTS.values(), ids=RESULTS)
def test_results(refused: Any, command: str, words: str) -> None:
    assert words in refused(*shlex.split(command))
