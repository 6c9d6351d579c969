"""Bad inputs in Python: a PisteError of one sentence, and nothing lost."""

from __future__ import annotations

import errno
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image

import piste
from piste import PisteError, corpus
from piste.evaluation import evaluate, judge
from tests.bad_inputs.files import GOOD, is_sentence
from tests.corpus.corpora import left, loud, write

Given = SimpleNamespace
"""What a row may use: the model, the folder of wrong files, an empty folder, an explanation."""


@pytest.fixture
def given(reviews: Any, here: Path, tmp_path: Path) -> Given:
    return Given(model=reviews, here=here, empty=tmp_path)


@pytest.fixture(scope="module")
def explanation() -> Any:
    return piste.explain(piste.load(loud, outputs="logits"), GOOD, samples=40)


def refusal(act: Callable[[], object]) -> str:
    """The sentence of a refusal."""
    with pytest.raises(PisteError) as caught:
        act()
    told = str(caught.value)
    assert is_sentence(told), told
    return told


def asked(function: Callable[[list[str]], Any], **options: Any) -> Any:
    return piste.explain(piste.load(function, **options), GOOD, samples=20, progress=False)


LOADING: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing": (lambda: piste.load(None), "Expected a name"),
    "a number": (lambda: piste.load(5), "got 5 of type int"),
    "a dictionary": (lambda: piste.load({"a": 1}), "type dict"),
    "a class": (lambda: piste.load(dict), "got the class dict"),
    "an empty name": (lambda: piste.load(""), "got the text ''"),
    "a null character": (lambda: piste.load("\0"), "got the text"),
    "an endless name": (lambda: piste.load("a" * 9000), "got the text"),
    "an unknown bundled model": (lambda: piste.load("piste:dreams"), "piste:reviews"),
    "an unknown option": (lambda: piste.load(loud, colour="red"), "no option 'colour'"),
    "a tokenizer": (
        lambda: piste.load(piste.load("piste:reviews").tokenizer),  # type: ignore[attr-defined]
        "call piste.load(model, tokenizer)",
    ),
    "a kind": (lambda: piste.load(loud, kind="odd"), "kind: expected one of"),
    "inputs": (lambda: piste.load(loud, inputs="sounds"), "inputs: expected one of"),
    "outputs": (lambda: piste.load(loud, outputs="odd"), "outputs: expected one of"),
    "a tolerance": (lambda: piste.load("piste:reviews", tolerance=-1), "tolerance"),
}


@pytest.mark.parametrize(("act", "words"), LOADING.values(), ids=LOADING)
def test_loading(act: Callable[[], Any], words: str) -> None:
    assert words in refusal(act)


INPUTS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "nothing": (None, {}, "Expected a text"),
    "a number": (5, {}, "Expected a text"),
    "a dictionary": ({}, {}, "Expected a text"),
    "bytes": (b"Good.", {}, "Expected a text"),
    "a set": ({"Good."}, {}, "Expected a text"),
    "three texts": (("a", "b", "c"), {}, "a pair of texts"),
    "a list of nothing": ([None], {}, "Input 0: Expected a text"),
    "a frame": (pd.DataFrame({"text": [GOOD]}), {}, "table['text']"),
    "empty": ("", {}, "is empty"),
    "half characters": ("\ud800 film", {}, "surrogates"),
    "only special tokens": ("[PAD][PAD]", {}, "special tokens"),
    "a text too long to read": ("word " * 300_000, {}, "1,500,000 characters"),
    "too many units": ("a " * 120_000, {"long": "windows"}, "coarser units"),
    "longer than the model": ("good film " * 600, {}, "long='truncate'"),
    "target": (GOOD, {"target": True}, "got True"),
    "target number": (GOOD, {"target": 1.5}, "no class 1.5"),
    "target function": (GOOD, {"target": lambda logits: "x"}, "must return numbers"),
    "target shape": (GOOD, {"target": lambda logits: np.zeros(77)}, "one number per row"),
    "target that raises": (GOOD, {"target": lambda logits: 1 / 0}, "failed with ZeroDivision"),
    "units that raise": (GOOD, {"units": lambda text: 1 / 0}, "failed with ZeroDivision"),
    "target NaN": (GOOD, {"target": lambda logits: logits[:, 0] * np.nan}, "NaN or infinity"),
    "cache": (GOOD, {"cache": 5}, "cache: expected a folder, got 5"),
    "units": (GOOD, {"units": 5}, "units: expected"),
    "units function": (GOOD, {"units": lambda text: 5}, "units"),
    "no levels": (GOOD, {"units": []}, "units"),
    "long": (GOOD, {"long": []}, "long: expected"),
    "removal": (GOOD, {"removal": None}, "removal: expected"),
    "samples": (GOOD, {"samples": True}, "samples: expected"),
    "fraction of samples": (GOOD, {"samples": 2.5}, "samples: expected"),
    "seed": (GOOD, {"seed": "x"}, "seed: expected"),
    "an array of seeds": (GOOD, {"seed": np.array([1, 2])}, "seed: expected"),
    "an array as a seed": (GOOD, {"seed": np.array(1)}, "seed: expected"),
    "an array for long": (GOOD, {"long": np.array(["error", "truncate"])}, "long: expected"),
    "an array for removal": (GOOD, {"removal": np.array(["delete"])}, "removal: expected"),
    "an array of fractions": (GOOD, {"phrases": np.array([[0.5, 4.5]])}, "phrases: expected"),
    "no phrases": (GOOD, {"phrases": np.array([])}, "phrases: expected"),
    "a set of phrases": (GOOD, {"phrases": {"a"}}, "phrases: expected"),
    "progress": (GOOD, {"progress": np.array([1, 2])}, "progress: expected"),
    "method": (GOOD, {"method": 5}, "method: expected"),
    "option": (GOOD, {"colour": "red"}, "no option 'colour'"),
    "an answer": (GOOD, {"answer": "Yes"}, "language model"),
}


@pytest.mark.parametrize(("text", "how", "words"), INPUTS.values(), ids=INPUTS)
def test_inputs(given: Given, text: Any, how: dict[str, Any], words: str) -> None:
    assert words in refusal(lambda: piste.explain(given.model, text, **how))


RESULTS: dict[str, tuple[Callable[[Any, Any, Path], Any], str]] = {
    "a figure at a number": (lambda m, e, d: e.plot(path=5), "path: expected the path"),
    "a page at a number": (lambda m, e, d: e.to_html(5), "path: expected the path"),
    "removed units": (lambda m, e, d: piste.check(m, e, [1]), "removed: expected lists"),
    "removed letters": (lambda m, e, d: piste.check(m, e, "ab"), "removed: expected lists"),
    "a check of a text": (lambda m, e, d: piste.check(m, GOOD, [[1]]), "Expected an explanation"),
    "a check of texts": (lambda m, e, d: piste.check(m, [GOOD], [[1]]), "call piste.explain"),
    "judging a number": (lambda m, e, d: judge(m, 5, "deletion"), "Expected an explanation"),
    "options of methods": (
        lambda m, e, d: piste.compare(m, GOOD, ["lime"], options=5),
        "options: expected options by method",
    ),
    "a folder of an evaluation": (
        lambda m, e, d: evaluate(m, [GOOD], methods=["occlusion"], folder=5, progress=False),
        "folder: expected the path",
    ),
    "a folder of a run": (lambda m, e, d: corpus.run([GOOD], m, 5), "out: expected the path"),
    "columns": (
        lambda m, e, d: corpus.run([GOOD], m, d / "run", columns="text"),
        "columns: expected piste.corpus.Columns",
    ),
    "options of loading": (
        lambda m, e, d: corpus.run([GOOD], "piste:reviews", d / "run", loading=5),
        "loading: expected options",
    ),
    "a frame of a number": (lambda m, e, d: corpus.frame(5), "folder: expected the path"),
}


@pytest.mark.parametrize(("act", "words"), RESULTS.values(), ids=RESULTS)
def test_results(
    given: Given, tmp_path: Path, act: Callable[[Any, Any, Path], Any], words: str
) -> None:
    e = piste.explain(given.model, GOOD, method="occlusion", progress=False)
    assert words in refusal(lambda: act(given.model, e, tmp_path))


def test_compare_takes_one_input(given: Given) -> None:
    for inputs in ([], [GOOD]):
        assert "got several" in refusal(lambda one=inputs: piste.compare(given.model, one))
    assert "list of names" in refusal(lambda: piste.compare(given.model, GOOD, 5))  # type: ignore[arg-type]


def _raises(texts: list[str]) -> Any:
    raise RuntimeError("the model is tired")


def _out_of_memory(texts: list[str]) -> Any:
    raise MemoryError


FUNCTIONS: dict[str, tuple[Callable[[list[str]], Any], str]] = {
    "raises": (_raises, "the model is tired"),
    "nothing": (lambda texts: None, "got None"),
    "texts": (lambda texts: ["good"] * len(texts), ""),
    "too few": (lambda texts: [1.0] * (len(texts) - 1), ""),
    "too many": (lambda texts: [1.0] * (len(texts) + 1), ""),
    "one number": (lambda texts: 1.0, ""),
    "NaN": (lambda texts: [float("nan")] * len(texts), "NaN"),
    "infinity": (lambda texts: [float("inf")] * len(texts), "infin"),
    "ragged": (lambda texts: [[1.0] * (1 + n % 2) for n in range(len(texts))], ""),
    "three dimensions": (lambda texts: np.zeros((len(texts), 2, 2)), ""),
    "no columns": (lambda texts: np.zeros((len(texts), 0)), ""),
    "NaN for some": (lambda texts: [np.nan if len(t) < 20 else 1.0 for t in texts], "NaN"),
    "more columns later": (lambda texts: np.zeros((len(texts), 2 + (len(texts) > 1))), "columns"),
    "complex": (lambda texts: np.ones(len(texts)) * 1j, ""),
    "dictionaries": (lambda texts: [{"label": "a"} for _ in texts], ""),
}


@pytest.mark.parametrize(("function", "words"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions(function: Callable[[list[str]], Any], words: str) -> None:
    assert words in refusal(lambda: asked(function))


def test_a_function_that_hangs_is_stopped_by_ctrl_c() -> None:
    def hang(texts: list[str]) -> Any:
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        time.sleep(600)

    with pytest.raises(KeyboardInterrupt):
        asked(hang)


IMAGES: dict[str, tuple[Any, str]] = {
    "a shape": (np.zeros((2, 2, 2, 2)), "shape"),
    "no pixels": (np.zeros((0, 5, 3)), "shape"),
    "negative": (-np.ones((4, 4, 3)), "0 … 1"),
    "NaN": (np.full((4, 4, 3), np.nan), "0 … 1"),
    "texts": (np.full((4, 4), "a"), "0 … 255"),
    "too many pixels": (Image.new("1", (20_000, 6_000)), "make the image smaller"),
    "bytes of no image": (b"hello", "not an image"),
    "a number": (5, "Expected an image"),
}


@pytest.mark.parametrize(("image", "words"), IMAGES.values(), ids=IMAGES)
def test_images(image: Any, words: str) -> None:
    bright = piste.load(lambda pixels: pixels.mean(axis=(1, 2, 3)), inputs="pixels")
    assert words in refusal(lambda: piste.explain(bright, image))


FILES = {
    "nowhere.json": "There is no file",
    "no.json": "not JSON",
    "list.json": "not a stored result",
    "other.json": "not a stored result",
    "part.json": "not a whole one",
    "future.json": "not a whole one",
    "unknown.json": "'dreams'",
    "comparison.json": "not a whole one",
    "deep.json": "not JSON",
    "huge.json": "2,000,000,000 bytes",
    "binary.bin": "not UTF-8",
    "no.csv": "not made from an explanation",
    "broken.parquet": "could not be read",
    "numbers.parquet": "not made from an explanation",
    "folder": "holds no run",
    "run_broken": "not JSON",
}


@pytest.mark.parametrize(("name", "words"), FILES.items(), ids=FILES)
def test_stored_results(given: Given, name: str, words: str) -> None:
    assert words in refusal(lambda: piste.read(given.here / name))


def test_what_is_no_path_is_refused() -> None:
    assert "Expected the path" in refusal(lambda: piste.read(5))  # type: ignore[arg-type]


CORPORA: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a number": (5, {}, "Expected a file"),
    "nothing": (None, {}, "Expected a file"),
    "a generator": ((row for row in ()), {}, "Expected a file"),
    "splits": ({"train": [], "test": []}, {}, "choose one of train, test"),
    "other columns": (pd.DataFrame({"review": [GOOD]}), {}, "has no column 'text'"),
    "other fields": ([{"review": GOOD}], {}, "has no column 'text'"),
    "Arrow": (pa.table({"review": [GOOD]}), {}, "has no column 'text'"),
    "a pair": ([GOOD], {"columns": corpus.Columns(pair="second")}, "has no column 'second'"),
    "a kept column": ([GOOD], {"columns": corpus.Columns(keep=("a",))}, "has no column 'a'"),
    "a target": ([GOOD], {"target": "maybe"}, "no class 'maybe'"),
    "tokens": ([GOOD] * 2, {"units": "tokens"}, "needs a tokenizer"),
    "a mask": ([GOOD] * 2, {"removal": "mask"}, "needs a tokenizer"),
    "workers": ([GOOD], {"workers": 0}, "workers: expected"),
    "a frame for Ray": ([GOOD], {"engine": "ray"}, "write the table to a file"),
}


@pytest.mark.parametrize(("table", "how", "words"), CORPORA.values(), ids=CORPORA)
def test_corpora(given: Given, table: Any, how: dict[str, Any], words: str) -> None:
    model = piste.load(loud, name="loud", outputs="logits")
    how = {"progress": False, "samples": 20} | how
    assert words in refusal(lambda: corpus.run(table, model, given.empty / "run", **how))
    assert not list(given.empty.glob("run/documents/*"))


WRITERS = ("to_html", "to_json", "to_csv", "to_parquet", "plot")


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_disk_that_does_not_take_it(
    explanation: Any, tmp_path: Path, monkeypatch: Any, writer: str, code: int
) -> None:
    suffix = {"plot": "png"}.get(writer, writer.removeprefix("to_"))
    file = tmp_path / f"old.{suffix}"
    file.write_text("precious")

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    how: dict[str, Any] = {"path": file}
    assert os.strerror(code) in refusal(lambda: getattr(explanation, writer)(**how))
    assert file.read_text() == "precious"
    assert os.listdir(tmp_path) == [file.name]


def test_a_run_on_a_full_disk_goes_on_when_there_is_room(tmp_path: Path, monkeypatch: Any) -> None:
    table, out = write(tmp_path / "few.csv"), tmp_path / "run"
    how: dict[str, Any] = {"method": "occlusion", "block": 3, "progress": False}
    model = piste.load(loud, name="loud", outputs="logits")
    corpus.run(table, model, tmp_path / "whole", **how)
    make, written = tempfile.mkstemp, iter(range(99))

    def fill(*given: Any, **options: Any) -> Any:
        if next(written) == 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return make(*given, **options)

    monkeypatch.setattr(tempfile, "mkstemp", fill)
    assert "No space left" in refusal(lambda: corpus.run(table, model, out, **how))
    monkeypatch.undo()
    corpus.run(table, model, out, **how)
    assert left(out) == left(tmp_path / "whole")


def test_another_model_is_named(tmp_path: Path) -> None:
    table, out = write(tmp_path / "few.csv"), tmp_path / "run"
    how: dict[str, Any] = {"method": "occlusion", "progress": False}
    corpus.run(table, piste.load(loud, name="loud", outputs="logits"), out, **how)
    before = left(out)
    other = piste.load(loud, name="quiet", outputs="logits")
    assert "model 'loud', now 'quiet'" in refusal(lambda: corpus.run(table, other, out, **how))
    assert left(out) == before
