"""From what the user has to a classifier, and clear words where that can't be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste import PisteError, zoo
from piste.classifiers.hugging_face import BundledModel
from piste.classifiers.loading import CLASSIFIERS, Loading
from piste.classifiers.text.tokenization import longest_sequence
from tests.conftest import FAMILIES, TEXT, build


def test_a_saved_folder_answers_like_the_model_in_memory(bert: Any, tmp_path: Path) -> None:
    bert.model.save_pretrained(tmp_path)
    bert.tokenizer.save_pretrained(tmp_path)
    sequences = [[0, 1, 2], [4]]
    expected = bert.subject(TEXT).ask(sequences)
    np.testing.assert_array_equal(piste.load(tmp_path).subject(TEXT).ask(sequences), expected)
    np.testing.assert_array_equal(piste.load(str(tmp_path)).subject(TEXT).ask(sequences), expected)


def test_a_pipeline_is_a_model_and_a_tokenizer(bert: Any) -> None:
    class Pipeline:
        model, tokenizer = bert.model, bert.tokenizer

        def preprocess(self) -> None: ...

        def forward(self) -> None: ...

    assert piste.load(Pipeline()).subject(TEXT).units == bert.subject(TEXT).units


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("piste:nothing", "piste:reviews"),
        ("./no/such/folder", "does not exist"),
        (42, "a model or a function"),
        (None, "a model or a function"),
    ],
)
def test_bad_sources(source: Any, words: str) -> None:
    with pytest.raises(PisteError, match=words):
        piste.load(source)


def test_bad_folders_and_options(bert: Any, tmp_path: Path) -> None:
    with pytest.raises(PisteError, match=r"config\.json"):
        piste.load(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(PisteError, match="names no model_type"):
        piste.load(tmp_path)
    with pytest.raises(PisteError, match="and its tokenizer, got the model alone"):
        piste.load(bert.model)
    with pytest.raises(PisteError, match="does not move"):
        piste.load(bert.model, bert.tokenizer, device="meta")
    with pytest.raises(PisteError, match="not available"):
        piste.load("piste:reviews", device="cuda:7")
    with pytest.raises(PisteError, match="two"):
        piste.load(lambda texts: texts, bert.tokenizer)
    with pytest.raises(PisteError, match="labels"):
        piste.load(bert.model, bert.tokenizer, labels=["only one"])


def test_pickled_weights_are_not_opened(bert: Any, tmp_path: Path) -> None:
    bert.model.config.save_pretrained(tmp_path)
    bert.tokenizer.save_pretrained(tmp_path)
    torch.save(bert.model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(PisteError, match="safetensors"):
        piste.load(tmp_path)


def test_limits_come_from_the_model_and_the_tokenizer(wordpiece: Any, byte_pairs: Any) -> None:
    limits = {}
    for name in ("roberta", "gpt2-pad", "opt", "bloom"):
        kind, config, _ = FAMILIES[name]
        limits[name] = longest_sequence(build(kind, **config), byte_pairs)
    assert limits == {"roberta": 64, "gpt2-pad": 64, "opt": 2048, "bloom": None}
    assert longest_sequence(None, wordpiece) == 64


@pytest.mark.parametrize("name", ["piste:reviews", "piste:reviews-gpt"])
def test_bundled_models(name: str) -> None:
    classifier = piste.load(name)
    assert classifier.labels == ("negative", "positive")
    subject = classifier.subject("A wonderful film.")
    assert np.argmax(subject.ask([subject.whole])) == 1
    size = sum(file.stat().st_size for file in zoo.folder(name).iterdir())
    assert size <= 8_000_000
    assert "accuracy" in zoo.card(name).lower()


class Shouting:
    """A source of a kind that Piste does not know."""


class ShoutingLoader:
    def accepts(self, source: Any, how: Any) -> bool:
        return isinstance(source, Shouting)

    def load(self, source: Any, how: Any) -> Any:
        return piste.load(lambda texts: [text.count("!") for text in texts], name=how.name)


def test_bundled_names_are_known_by_their_prefix() -> None:
    own = [name for name in CLASSIFIERS.added_first() if name in ("bundled", "served")]
    assert own == ["bundled", "served"]  # a bundled name needs no other loader
    loader = BundledModel()
    assert loader.accepts("piste:reviews", Loading())
    assert not loader.accepts("org/model", Loading())
    assert not loader.accepts(len, Loading())
    assert not loader.accepts("piste:reviews", Loading(prompt="Review: {text}"))


def test_a_registered_loader_makes_classifiers_of_its_own_sources() -> None:
    with pytest.raises(PisteError, match="Shouting"):
        piste.load(Shouting())
    CLASSIFIERS.register("shouting", ShoutingLoader)
    try:
        assert piste.load(Shouting(), name="loud").name == "loud"
        assert piste.load("piste:reviews").labels == ("negative", "positive")
    finally:
        CLASSIFIERS.remove("shouting")


def test_an_unknown_option_of_load_is_refused() -> None:
    with pytest.raises(PisteError, match="load has no option 'gpu': it has device"):
        piste.load("piste:reviews", gpu=True)  # type: ignore[call-arg]
