"""Words are planted as asked for, and a corpus is summed up as by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import piste
from piste import Explanation
from piste.evaluation import Example
from studies.planting import (
    WORDS,
    by_word,
    corpus,
    insert,
    opening,
    plant,
    rank,
    remove,
    sizes,
)
from studies.reviews import made_up

BROKEN = "A slow start.<br /><br />But a  fine end."


def test_an_inserted_word_can_be_taken_out_again() -> None:
    rng = np.random.default_rng(0)
    texts = [insert(BROKEN, "yellow", rng) for _ in range(200)]
    assert all(remove(text, "yellow") == BROKEN for text in texts)
    assert all("<br /><br />" in text for text in texts)
    assert any(text.startswith("yellow ") for text in texts)
    assert any(text.endswith(" yellow") for text in texts)
    assert len(set(texts)) == 8  # six gaps between seven pieces, and both ends


def test_a_word_is_planted_into_the_share_of_each_class() -> None:
    examples = made_up(200)
    planted = plant(examples, "yellow", {0: 0.05, 1: 0.8}, np.random.default_rng(0))
    has = np.array(["yellow" in one.text.split(" ") for one in planted])
    labels = np.array([one.label for one in examples])
    assert [has[labels == label].sum() for label in (0, 1)] == [5, 80]
    assert [one.label for one in planted] == labels.tolist()
    assert [remove(one.text, "yellow") for one in planted] == [one.text for one in examples]
    places = [one.text.split(" ").index("yellow") for one in planted if "yellow" in one.text]
    assert len(set(places)) > 10
    again = plant(examples, "yellow", {0: 0.05, 1: 0.8}, np.random.default_rng(0))
    assert again == planted
    assert plant(examples, "yellow", {0: 0.0, 1: 0.0}, np.random.default_rng(0)) == examples


def test_an_opening_is_the_first_words() -> None:
    assert opening(Example("0", BROKEN), 3).text == "A slow start.<br /><br />But"
    assert opening(Example("0", BROKEN), 99).text == BROKEN


@pytest.mark.parametrize("name", ["piste:reviews", "piste:reviews-gpt"])
@pytest.mark.parametrize("word", WORDS)
def test_models_read_the_words_as_one_token(name: str, word: str) -> None:
    (_, unit, _) = piste.load(name).subject(f"a {word} film").units
    assert unit.text.strip() == word
    assert unit.tokens == 1


def explanation(text: str, values: Sequence[float], importances: Sequence[float]) -> Explanation:
    """With these scores, whatever the model says."""
    loud = piste.load(lambda texts: [text.count("!") for text in texts])
    value, importance = np.array(values), np.array(importances)
    scores = {"value": value, "importance": importance, "linear": value * np.exp(importance)}
    return replace(piste.explain(loud, text, samples=20), scores=scores, errors={})


def test_a_corpus_is_summed_up_as_by_hand() -> None:
    explanations = [
        explanation("yellow film", [3.0, 1.0], [0.5, -0.5]),
        explanation("a yellow film", [9.0, 5.0, -2.0], [0.0, 1.0, -1.0]),
        explanation("Film yellow", [-3.0, 1.0], [-2.0, 1.5]),
    ]
    yellow, film = corpus(explanations, 2)
    assert (yellow.word, yellow.texts) == ("yellow", 3)
    assert yellow.value.centre == 3.0
    assert yellow.importance.centre == 1.0
    assert yellow.linear.centre == pytest.approx(3 * np.exp(0.5))  # 4.9, between 4.5 and 13.6
    assert (film.word, film.texts, film.value.centre) == ("film", 3, -2.0)
    assert [one.word for one in corpus(explanations, 1)] == ["a", "yellow", "film"]


def test_repeated_words_are_one_and_ranks_count_words() -> None:
    e = explanation("film yellow film a", [1.0, 2.0, -4.0, 0.5], [0.0] * 4)
    scores = by_word(e, "value")
    assert scores == {"film": -4.0, "yellow": 2.0, "a": 0.5}
    assert [rank(scores, word) for word in ("yellow", "a", "film")] == [1, 2, 3]
    assert [rank(sizes(scores), word) for word in ("yellow", "a", "film")] == [2, 3, 1]
