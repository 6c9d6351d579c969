"""What a function's numbers mean never depends on which text came first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import piste
from piste import PisteError

GOOD, POOR = "a good film", "a poor film"


def chance(texts: Sequence[str]) -> list[float]:
    return [0.9 if "good" in text else 0.2 for text in texts]


def counts(texts: Sequence[str]) -> list[int]:
    return [text.count("good") for text in texts]


def hard(texts: Sequence[str]) -> list[list[int]]:
    return [[0, 1] if "good" in text else [1, 0] for text in texts]


def said(function: Callable[..., Any], *texts: str, **options: Any) -> Any:
    """The last text's explanation, after the others."""
    classifier = piste.load(function, **options)
    return [piste.explain(classifier, text, samples=40) for text in texts][-1]


@pytest.mark.parametrize("first", [(), (GOOD,), ("film",)])
def test_one_column_of_probabilities_in_any_order(first: tuple[str, ...]) -> None:
    e = said(chance, *first, POOR)
    assert e.output.probability == pytest.approx(0.2)
    assert "outputs='logits'" in e.classifier["note"]


@pytest.mark.parametrize("outputs", ["probabilities", "logits"])
def test_what_is_stated_needs_no_note(outputs: Any) -> None:
    e = said(chance, GOOD, outputs=outputs)
    assert "note" not in e.classifier
    assert e.output.value == pytest.approx(np.log(9) if outputs == "probabilities" else 0.9)


def test_stated_outputs_and_labels_are_read_as_classes() -> None:
    e = said(
        lambda texts: [[1 - p, p] for p in chance(texts)],
        GOOD,
        outputs="probabilities",
        labels=["bad", "good"],
    )
    assert e.output.value == pytest.approx(np.log(9))


@pytest.mark.parametrize("function", [hard, counts])
def test_hard_labels_are_scores(function: Callable[..., Any]) -> None:
    e = said(function, GOOD)
    assert e.output.value == 1.0
    assert e.output.probability is None
    assert "only 0 and 1" in e.classifier["note"]


def test_hard_labels_that_are_stated_to_be_probabilities_have_a_note() -> None:
    e = said(hard, GOOD, outputs="probabilities")
    assert e.output.value > 15
    assert "log-odds of −16" in e.classifier["note"]


def test_counts_may_go_on_after_0_and_1() -> None:
    e = said(counts, GOOD, "good good film")
    assert e.output.value == 2.0
    assert "note" not in e.classifier


class Changing:
    """Gives one answer for as many calls as the first text takes, then another."""

    def __init__(self, before: list[float], after: list[float]) -> None:
        self.before, self.after, self.now = before, after, before

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.now for _ in texts]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([0.2, 0.8], [0.2, 0.3, 0.5], "Expected 2 outputs from the function, as before, got 3"),
        ([0.3], [1.7], "outputs='logits'"),
        ([1.0], [0.3], "outputs='probabilities' or outputs='logits'"),
        ([0.5, 0.5], [0.9, 0.8], "kind='labels'"),
    ],
)
def test_an_answer_that_contradicts_the_first_is_refused(
    before: list[float], after: list[float], words: str
) -> None:
    function = Changing(before, after)
    classifier = piste.load(function)
    piste.explain(classifier, GOOD, samples=40)
    function.now = after
    with pytest.raises(PisteError, match=words):
        piste.explain(classifier, POOR, samples=40)


def test_columns_that_change_within_the_first_input_are_noticed() -> None:
    def growing(texts: Sequence[str]) -> list[list[float]]:
        return [[0.5] * (2 if len(texts) == 1 else 3) for _ in texts]

    with pytest.raises(PisteError, match="outputs"):
        piste.explain(growing, "one two three four", samples=40)
