"""Zero-shot classification: the outputs are the candidate labels, as in transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax
from transformers import pipeline

import piste
from piste import PisteError
from tests.conftest import FAMILIES, TEXT, build

LABELS = ["slow", "a truly wonderful ending", "film"]
NAMES = {0: "contradiction", 1: "neutral", 2: "entailment"}


@pytest.fixture(scope="module")
def entailment(wordpiece: Any) -> Any:
    config = FAMILIES["bert"][1] | {"id2label": NAMES}
    config |= {"label2id": {name: k for k, name in NAMES.items()}}
    return pipeline("zero-shot-classification", model=build("bert", **config), tokenizer=wordpiece)


def chances(entailment: Any, *given: Any, **options: Any) -> np.ndarray:
    """What transformers says of every label."""
    with torch.random.fork_rng():  # its data loader draws a number
        found = entailment(*given, **options)
    return np.array([found["scores"][found["labels"].index(label)] for label in LABELS])


@pytest.mark.parametrize("several", [False, True])
def test_probabilities_are_those_of_the_pipeline(entailment: Any, several: bool) -> None:
    template = "Do you think it is {}?"
    expected = chances(entailment, TEXT, LABELS, hypothesis_template=template, multi_label=several)
    kind: Any = "labels" if several else None
    classifier = piste.load(entailment, labels=LABELS, hypothesis=template, kind=kind)
    subject = classifier.subject(TEXT)
    logits = subject.ask([subject.whole])[0]
    found = expit(logits) if several else softmax(logits)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_only_the_text_has_units_and_reduced_texts_are_asked_like_texts(entailment: Any) -> None:
    classifier = piste.load(entailment, labels=LABELS)
    subject = classifier.subject(TEXT)
    assert [unit.text for unit in subject.units][:3] == ["A", "slow", "start"]
    assert all(unit.text in TEXT and unit.segment == 0 for unit in subject.units)
    expected = chances(entailment, "A slow start", LABELS)
    np.testing.assert_allclose(softmax(subject.ask([[0, 1, 2]])[0]), expected, atol=1e-5)


@pytest.mark.parametrize("removal", ["delete", "mask", "attention"])
def test_explained_with_every_removal(entailment: Any, removal: Any) -> None:
    classifier = piste.load(entailment, labels=LABELS)
    e = piste.explain(classifier, TEXT, samples=60, removal=removal)
    assert e.output.labels == tuple(LABELS)
    assert e.output.label == LABELS[int(np.argmax(chances(entailment, TEXT, LABELS)))]
    assert e.classifier["hypothesis"] == "This example is {}."
    assert piste.explain(classifier, TEXT, samples=60, units=[(2, 6)], target="film").calls


def test_the_hypothesis_is_never_cut_off(entailment: Any) -> None:
    classifier = piste.load(entailment, labels=LABELS)
    e = piste.explain(classifier, TEXT * 4, samples=60, long="truncate")
    assert e.settings["input"]["truncated_tokens"] > 0


def test_settings_of_the_pipeline_and_folders_with_a_hypothesis(
    entailment: Any, tmp_path: Path
) -> None:
    own = pipeline(
        "zero-shot-classification",
        model=entailment.model,
        tokenizer=entailment.tokenizer,
        candidate_labels=LABELS,
        hypothesis_template="think {}.",
    )
    assert piste.load(own).describe()["hypothesis"] == "think {}."
    entailment.model.save_pretrained(tmp_path)
    entailment.tokenizer.save_pretrained(tmp_path)
    classifier = piste.load(tmp_path, labels=LABELS, hypothesis="think {}.")
    np.testing.assert_allclose(
        classifier.subject(TEXT).ask([[1, 2]]), piste.load(own).subject(TEXT).ask([[1, 2]])
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "candidate labels"),
        ({"labels": ["a", "a"]}, "different names"),
        ({"labels": LABELS, "hypothesis": "no place"}, "hypothesis: expected a text with one"),
    ],
)
def test_what_is_missing_is_said(entailment: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PisteError, match=words):
        piste.load(entailment, **options)


def test_a_plain_classifier_is_no_model_of_entailment(bert: Any) -> None:
    with pytest.raises(PisteError, match="outputs is called entailment"):
        piste.load(bert.model, bert.tokenizer, labels=LABELS, hypothesis="about {}")
    with pytest.raises(PisteError, match="one text"):
        piste.load(
            build("bert", **FAMILIES["bert"][1] | {"id2label": NAMES}),
            bert.tokenizer,
            labels=LABELS,
            hypothesis="about {}",
        ).subject(("a", "b"))
