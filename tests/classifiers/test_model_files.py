"""Models that would be explained wrongly are refused in one sentence that names the cause."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForTokenClassification,
)

import piste
from piste import PisteError
from tests.conftest import FAMILIES

T5 = {"num_layers": 1, "d_model": 16, "d_ff": 16, "num_heads": 2, "d_kv": 8, "vocab_size": 400}
HEADS = {
    "load a causal language model with a prompt, or a function of texts": (
        AutoModelForSeq2SeqLM,
        "t5",
    ),
    "fills in masked words": (AutoModelForMaskedLM, "bert"),
    "sequence to sequence": (AutoModelForSeq2SeqLM, "t5"),
}


def make(kind: Any, family: str) -> Any:
    config = T5 if family == "t5" else FAMILIES["bert"][1]
    with torch.random.fork_rng():
        return kind.from_config(AutoConfig.for_model(family, **config))


@pytest.mark.parametrize("words", HEADS)
def test_other_heads_are_refused_in_memory_and_in_a_folder(
    words: str, wordpiece: Any, tmp_path: Path
) -> None:
    model = make(*HEADS[words])
    with pytest.raises(PisteError, match=words):
        piste.load(model, wordpiece)
    model.save_pretrained(tmp_path)
    wordpiece.save_pretrained(tmp_path)
    with pytest.raises(PisteError, match=words):
        piste.load(tmp_path)


def test_a_folder_without_a_trained_head_is_refused(wordpiece: Any, tmp_path: Path) -> None:
    make(AutoModel, "bert").save_pretrained(tmp_path)
    wordpiece.save_pretrained(tmp_path)
    with pytest.raises(PisteError, match=r"no trained weights for classifier\.bias"):
        piste.load(tmp_path)


def test_tags_that_pretend_to_be_classes_are_refused(wordpiece: Any, tmp_path: Path) -> None:
    make(AutoModelForTokenClassification, "bert").save_pretrained(tmp_path)
    wordpiece.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["architectures"] = ["BertForSequenceClassification"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(PisteError, match=r"no trained weights for bert\.pooler"):
        piste.load(tmp_path)


@pytest.mark.parametrize("family", ["bert", "gpt2-pad", "deberta-v2"])
def test_a_folder_without_a_tokenizer_is_refused(family: str, tmp_path: Path) -> None:
    from tests.conftest import build

    kind, config, _ = FAMILIES[family]
    build(kind, **config).save_pretrained(tmp_path)
    with pytest.raises(PisteError, match=r"knows no words.*tokenizer\.save_pretrained"):
        piste.load(tmp_path)


def cut_short(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def bad_json(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "bert",')


def unknown_type(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "nonesuch"}')


def other_size(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 40}))


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut short": (cut_short, "cut short or damaged"),
    "pickled": (pickled, r"only as pytorch_model\.bin"),
    "without weights": (without_weights, "holds no weights"),
    "bad JSON": (bad_json, "is not valid JSON"),
    "unknown type": (unknown_type, "nonesuch"),
    "other size": (other_size, "intermediate"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_folders_name_the_cause(damage: str, bert: Any, tmp_path: Path) -> None:
    bert.model.save_pretrained(tmp_path)
    bert.tokenizer.save_pretrained(tmp_path)
    spoil, words = DAMAGES[damage]
    spoil(tmp_path)
    with pytest.raises(PisteError, match=words) as raised:
        piste.load(tmp_path)
    assert "bundled model" not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("task", ["document-question-answering", "summarization", "fill-mask"])
def test_pipelines_of_other_tasks_are_refused(task: str, bert: Any) -> None:
    class Pipeline:
        model, tokenizer = bert.model, bert.tokenizer

        def preprocess(self) -> None: ...

        def forward(self) -> None: ...

    pipeline: Any = Pipeline()
    pipeline.task = task
    with pytest.raises(PisteError, match=f"got one of {task}, which"):
        piste.load(pipeline)
