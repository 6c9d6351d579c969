"""The check of the table of architectures, for some that tests/properties does not have."""

from __future__ import annotations

import pytest

from benchmarks.architectures.__main__ import page
from benchmarks.architectures.checks import Outcome, check
from benchmarks.architectures.models import Architecture, architectures

ALL = {(one.name, one.kind): one for one in architectures()}
SOME = [
    ("ConvBERT", "text"),
    ("Funnel", "text"),
    ("I-BERT", "text"),
    ("Longformer", "text"),
    ("MobileBERT", "text"),
    ("ModernBERT", "text"),
    ("Perceiver", "text"),
    ("Reformer", "text"),
    ("CTRL", "text"),
    ("Qwen2-MoE", "text"),
    ("T5", "text"),
    ("BART", "text"),
    ("BERT, PEFT (LoRA)", "text"),
    ("BERT, dynamically quantised", "text"),
    ("ConvNeXT", "image"),
    ("Mamba", "prompt"),
    ("Mamba", "answer"),
    ("GPT-2", "answer"),
]


@pytest.mark.parametrize("key", SOME, ids=" ".join)
def test_architectures_work(key: tuple[str, str]) -> None:
    outcome = check(ALL[key])
    assert (outcome.status, outcome.words) == ("works", "")
    assert [column for column, _ in outcome.inside] == ["gradients", "attention", "AttnLRP"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CANINE", "a model that reads short texts"),
        ("T5, text without an end token", "the tokenizer that belongs to the model"),
        ("BERT, multiple choice", "which chooses between several texts"),
        ("BERT without a head", "AutoModelForSequenceClassification"),
    ],
)
def test_architectures_are_refused(name: str, words: str) -> None:
    outcome = check(ALL[name, "text"])
    assert outcome.status == "refused"
    assert words in outcome.words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("BERT, dynamically quantised", "quantised layers, which have no gradients"),
        ("I-BERT", "no plain vectors"),
        ("Perceiver", "no input embeddings"),
        ("Reformer", "gradients only in training"),
        ("T5", "no others: choose a method that needs answers only"),
    ],
)
def test_methods_that_look_inside_say_why_not(name: str, words: str) -> None:
    assert words in dict(check(ALL[name, "text"]).inside)["gradients"]


def test_a_model_that_cannot_be_made_or_fails_is_a_row() -> None:
    def broken() -> None:
        raise TypeError("no such option")

    outcome = check(Architecture("New", "text", broken))
    assert outcome.status == "fails"
    assert "no such option" in outcome.words


def test_the_page_has_every_outcome() -> None:
    inside = (("gradients", "works"), ("attention", "NewModel has none."), ("AttnLRP", "works"))
    text = page(
        [
            Outcome("One", "text", "NewModel", "works", how="right padding", inside=inside),
            Outcome("Two", "image", "OtherModel", "refused", "Expected a | b."),
        ]
    )
    assert "1 work, 1 are refused with a sentence, 0 fail" in text
    assert "| One | `NewModel` | works | right padding | yes | no (1) | yes |" in text
    assert "| Two | `OtherModel` | Expected a \\| b. |" in text
    assert "1. The model has none." in text
