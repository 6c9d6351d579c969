"""Documents longer than the model reads: an explicit choice, recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste import PisteError
from tests.conftest import FAMILIES, build

LONG = "The film is good and the start is slow. " * 40
TOKENS = 40 * 11  # "start" has two


def test_too_long_is_an_error_by_default(bert: Any) -> None:
    with pytest.raises(
        PisteError, match=rf"{TOKENS + 2} tokens .* at most 64.*truncate.*windows.*short"
    ):
        piste.explain(bert, LONG)


def test_truncation_is_the_tokenizers_own_and_recorded(bert: Any) -> None:
    subject = bert.subject(LONG, long="truncate")
    encoded = bert.tokenizer(LONG, truncation=True, max_length=64, return_tensors="pt")
    with torch.no_grad():
        own = bert.model(**encoded).logits.numpy()
    assert np.array_equal(subject.ask([subject.whole]), own.astype(float))
    explanation = piste.explain(bert, LONG, long="truncate", samples=40)
    notes = explanation.settings["input"]
    assert notes["long"] == "truncate"
    assert notes["truncated_tokens"] == TOKENS + 2 - 64
    assert notes["truncated_side"] == "right"


def test_the_tokenizer_keeps_its_own_settings(wordpiece: Any, bert: Any) -> None:
    backend = wordpiece.backend_tokenizer
    backend.enable_truncation(max_length=7)
    before = backend.to_str()
    bert.subject(LONG, long="truncate")
    bert.subject("good film")
    assert backend.to_str() == before
    backend.no_truncation()


def test_a_unit_longer_than_the_model_reads(wordpiece: Any) -> None:
    classifier = piste.load(build("bert", **FAMILIES["bert"][1]), wordpiece)
    text = "good film " * 50 + "."
    with pytest.raises(PisteError, match="103 tokens"):
        piste.explain(classifier, text, units="sentences")
    whole = piste.explain(classifier, text, units="sentences", long="windows")
    assert len(whole.units) == 1


def test_windows_average_equal_pieces(bert: Any) -> None:
    subject = bert.subject(LONG, long="windows")
    parts = subject.encode(subject.whole)
    assert len(parts) == -(-TOKENS // 62)
    assert sum(weight for _, weight in parts) == pytest.approx(1)
    assert max(question.length for question, _ in parts) <= 64
    tokens = np.concatenate([question.payload[0][1:-1] for question, _ in parts])
    assert tokens.tolist() == bert.tokenizer(LONG, verbose=False)["input_ids"][1:-1]
    with bert.session():
        rows = [bert.answer([question])[0] * weight for question, weight in parts]
    np.testing.assert_allclose(subject.ask([subject.whole])[0], np.sum(rows, axis=0), atol=1e-5)
    # What fits is asked as it is.
    assert len(subject.encode(range(20))) == 1


def test_pairs_are_cut_into_windows_that_keep_their_frame(bert: Any) -> None:
    subject = bert.subject((LONG, LONG), long="windows")
    for question, _ in subject.encode(subject.whole):
        assert (question.payload[0] == 3).sum() == 2
        assert question.length <= 64


def test_short_questions_work_at_any_length(bert: Any) -> None:
    text = "good film , bad start . " * 9000  # more than 50,000 tokens
    explanation = piste.explain(bert, text, sampler="short", samples=100)
    assert len(explanation.units) == 54_000
    assert explanation.settings["input"]["long"] == "windows"
    assert explanation.scores["shapley"].shape == (54_000,)


@pytest.mark.slow
def test_a_document_of_many_different_words_is_still_explained() -> None:
    text = " ".join(f"word{k}" for k in range(3000))
    explanation = piste.explain(
        lambda texts: [len(t) / 100 for t in texts], text, sampler="short", samples=200
    )
    assert explanation.settings["never_asked"] > 0
    assert np.isinf(explanation.errors["value"]).sum() == explanation.settings["never_asked"]
