"""Several spans of an answer, explained by one fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import piste
import piste.answer_spans
from piste.answer_spans import explain_spans
from tests.language_models import save_language_model

PROMPT = "the tower stands in paris . it was 1889 . the man walked on the moon"
ANSWER = "the year was 1969 ."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = save_language_model(tmp_path_factory.mktemp("tiny"))
    return piste.load(folder)


@pytest.fixture(scope="module")
def additive(model: Any) -> tuple[piste.Explanation, Any]:
    """An explanation whose tokens' log-probabilities are sums over the words that are there."""
    e = piste.explain(model, PROMPT, answer=ANSWER, samples=120)
    assert e.answer is not None
    rng = np.random.default_rng(0)
    types = e.answer.types
    effects = rng.normal(size=(types.max() + 1, len(e.answer.spans)))[types]
    rows = [effects[list(kept)].sum(axis=0) - 3.0 for kept in e.answer.sequences]
    noise = rng.normal(0, 0.01, (len(rows), effects.shape[1]))
    answer = replace(e.answer, log_probabilities=np.array(rows) + noise)
    return replace(e, answer=answer), effects


def words(e: piste.Explanation) -> list[tuple[int, int]]:
    assert e.answer is not None
    return [*e.answer.words, (0, len(e.answer.text))]


def test_every_span_is_explained_as_on_its_own(additive: Any, monkeypatch: Any) -> None:
    e, effects = additive
    starts = []
    real = piste.answer_spans.fit
    monkeypatch.setattr(
        piste.answer_spans, "fit", lambda *args, **more: starts.append(more) or real(*args, **more)
    )
    found = explain_spans(e, words(e))
    assert [*map(list, starts)] == [["start"]] * len(found)  # no search for a form
    for one, span in zip(found, words(e), strict=True):
        alone, tokens = e.of(span), e.answer.target(span).indices
        truth = effects[:, tokens].sum(axis=1)
        assert np.corrcoef(one.score(), truth)[0, 1] > 0.98  # it may say that answers saturate
        assert np.corrcoef(one.score(), alone.score())[0, 1] > 0.98
        assert one.output.value == pytest.approx(alone.output.value)
        assert one.target == alone.target
        assert one.fidelity.r2 > 0.98
        assert (one.calls, one.method, one.answer) == (e.calls, e.method, e.answer)
        assert "shapley" not in one.scores
        kept = [0, 2, 5]
        expected = effects[kept][:, tokens].sum() - 3.0 * len(tokens)
        assert one.predict(kept) == pytest.approx(expected, abs=0.3)


@pytest.mark.parametrize("how", [{"method": "lime"}, {"form": "additive"}])
def test_other_choices_explain_each_span_on_its_own(model: Any, how: Any) -> None:
    e = piste.explain(model, PROMPT, answer=ANSWER, samples=60, **how)
    spans = words(e)[:2]
    for one, span in zip(explain_spans(e, spans), spans, strict=True):
        np.testing.assert_array_equal(one.score(), e.of(span).score())


def test_spans_of_few_questions_are_explained_from_them(model: Any) -> None:
    e = piste.explain(model, PROMPT, answer=ANSWER, samples=24)
    assert not e.settings["guided"]
    assert e.of("1969").calls == e.calls
    assert len(explain_spans(e, words(e))) == len(words(e))
