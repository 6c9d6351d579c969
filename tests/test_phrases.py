"""Words joined into phrases, by hand and where they act together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import piste
from piste.errors import PisteError
from piste.phrases import find_phrases, joined_spans
from tests.cli.commands import run
from tests.slalom.test_pairs import negating

TEXT = "the food was not bad and the room was good"
WEIGHTS = {"fine": 1.0, "bad": -2.0, "not": -1.0, "dull": -1.5}


def turning(texts: list[str]) -> list[float]:
    """Good where "not bad" stands as it is, bad where its words stand apart: no sum of words."""
    found = []
    for text in texts:
        rest = text.replace("not bad", "")
        total = 4.0 * text.count("not bad")
        found.append(total + sum(WEIGHTS.get(word, 0.02 * len(word)) for word in rest.split()))
    return found


def idiom(texts: list[str]) -> list[float]:
    """Four words that say nothing apart: more than terms for pairs can say."""
    weights = {"dull": -1.0, "good": 1.0}
    return [
        4.0 * ("not at all bad" in text)
        + sum(weights.get(word, 0.02 * len(word)) for word in text.split())
        for text in texts
    ]


IDIOM = "the food was not at all bad and the room was dull"


def counted(function: Any) -> tuple[piste.Classifier, list[str]]:
    """A classifier, and the texts it was asked about."""
    asked: list[str] = []

    def ask(texts: list[str]) -> list[float]:
        asked.extend(texts)
        return list(function(texts))

    return piste.load(ask, outputs="logits"), asked


def words(e: piste.Explanation) -> list[str]:
    return [unit.text for unit in e.units]


@pytest.mark.parametrize(
    "phrases",
    [
        ["not bad"],
        "Not  bad",
        [(13, 20)],
        [(14, 18)],
        np.array(["not bad"]),
        np.array([[13, 20]]),
        [np.array([13, 20])],
    ],
)
def test_a_phrase_is_one_unit(phrases: Any) -> None:
    classifier, _ = counted(turning)
    e = piste.explain(classifier, TEXT, phrases=phrases, samples=100)
    assert words(e) == ["the", "food", "was", "not bad", "and", "the", "room", "was", "good"]
    assert e.settings["phrases"] == ["not bad"]
    assert e.scores["contribution"][3] == pytest.approx(4, abs=0.1)
    assert e.fidelity.r2 > 0.99


def test_a_phrase_is_joined_wherever_it_stands(reviews: Any) -> None:
    e = piste.explain(reviews, "Not bad, not bad at all!", phrases=["not bad"], samples=60)
    assert words(e) == ["Not bad", ",", "not bad", "at", "all", "!"]
    subject = reviews.subject(e.input)
    np.testing.assert_array_equal(subject.ask([subject.whole])[0], e.output.logits)


def test_a_pair_of_texts_and_a_list_of_them(reviews: Any) -> None:
    given = ("It is not bad.", "It is not good.")
    e = piste.explain(reviews, given, phrases=["not good", (0, 6, 13)], samples=60)
    assert words(e) == ["It", "is", "not bad", ".", "It", "is", "not good", "."]
    one, other = piste.explain(reviews, ["Not bad.", "A film."], phrases=["not bad"], samples=20)
    assert words(one) == ["Not bad", "."]
    assert (words(other), other.settings["phrases"]) == (["A", "film", "."], [])


def test_auto_joins_what_acts_together() -> None:
    classifier, asked = counted(idiom)
    plain = piste.explain(classifier, IDIOM)
    assert plain.pairs
    asked.clear()
    e = piste.explain(classifier, IDIOM, phrases="auto")
    assert e.settings["phrases"] == ["not at all bad"]
    assert e.settings["phrases_r2"] == {
        "words": round(plain.fidelity.r2, 4),
        "phrases": round(e.fidelity.r2, 4),
    }
    assert words(e) == ["the", "food", "was", "not at all bad", "and", "the", "room", "was", "dull"]
    assert e.fidelity.r2 > 0.99 > plain.fidelity.r2
    assert len(asked) == len(set(asked)) == e.calls  # nothing is asked twice
    again = piste.explain(classifier, IDIOM, phrases="auto")
    np.testing.assert_array_equal(e.score(), again.score())


def test_auto_keeps_the_words_where_that_is_better_or_nothing_is_found() -> None:
    pair, _ = counted(negating)  # it has both words, wherever they stand: a term of the surrogate
    e = piste.explain(pair, TEXT, phrases="auto", samples=400)
    assert words(e) == TEXT.split()
    assert e.settings["phrases"] == []
    assert e.settings["phrases_tried"] == ["not bad"]
    adding, _ = counted(lambda texts: [float(len(text)) for text in texts])
    plain = piste.explain(adding, TEXT, samples=100)
    auto = piste.explain(adding, TEXT, phrases="auto", samples=100)
    np.testing.assert_array_equal(plain.score(), auto.score())
    assert (auto.calls, auto.settings["phrases"]) == (plain.calls, [])


def test_others_explain_the_phrases_of_the_first() -> None:
    classifier, _ = counted(idiom)
    found = piste.compare(classifier, IDIOM, ["slalom", "occlusion"], phrases="auto")
    first, second = found.explanations.values()
    assert first.units == second.units
    assert "not at all bad" in words(first)
    by_hand = piste.compare(classifier, TEXT, ["occlusion", "slalom"], phrases=["not bad"])
    assert {len(e) for e in by_hand.explanations.values()} == {9}


def test_units_keep_their_text() -> None:
    subject = piste.load(lambda texts: [0.0 for _ in texts]).subject("a b c d e")
    ranges = find_phrases(subject, ["D e", (0, 3)], strict=True)
    assert ranges == [(0, 1), (3, 4)]
    assert joined_spans(subject, ranges) == [(0, 3), (4, 5), (6, 9)]


@pytest.mark.parametrize(
    ("phrases", "said"),
    [
        (["not good"], "'not good' does not stand in the text"),
        (["ot bad"], "'ot bad' does not stand in the text as whole words"),
        (["not bad", "bad and"], "that do not overlap, got 'not bad' and 'bad and'"),
        ([(13, 99)], "0 ≤ start < end ≤ 42"),
        ([(3, 4)], r"\(3, 4\) does not stand in the text"),
        ([], "expected 'auto', or a list"),
        ([" "], "expected 'auto', or a list"),
        ((13, 20), "expected 'auto', or a list"),
        (7, "expected 'auto', or a list"),
        ([(1.5, 2)], "expected 'auto', or a list"),
    ],
)
def test_bad_phrases_are_refused(phrases: Any, said: str) -> None:
    classifier, _ = counted(turning)
    with pytest.raises(PisteError, match=said):
        piste.explain(classifier, TEXT, phrases=phrases)


def test_phrases_are_of_words(reviews: Any) -> None:
    for units in ("tokens", "sentences", ["paragraphs", "words"], [(0, 3)]):
        with pytest.raises(PisteError, match="phrases join words: leave units out"):
            piste.explain(reviews, TEXT, units=units, phrases=["not bad"])
    with pytest.raises(PisteError, match="needs a method that finds pairs of words, slalom"):
        piste.explain(reviews, TEXT, method="occlusion", phrases="auto")
    with pytest.raises(PisteError, match="got an image, which has no words"):
        piste.explain("piste:fashion", np.zeros((28, 28, 3)), phrases="auto")
    with pytest.raises(PisteError, match="leave phrases out"):
        piste.evaluation.evaluate(reviews, [TEXT], phrases=["not bad"])


def test_the_command_line_joins_phrases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "e.json"
    code, out, _ = run(
        monkeypatch, capsys, "explain", TEXT, "--phrases", "not bad", "--phrases", "the room",
        "--samples", "60", "-o", file,
    )  # fmt: skip
    assert code == 0
    assert "joined: “not bad”, “the room”" in out
    units = [unit["text"] for unit in json.loads(file.read_text())["units"]]
    assert units == ["the", "food", "was", "not bad", "and", "the room", "was", "good"]
    assert words(piste.read(file)) == units
