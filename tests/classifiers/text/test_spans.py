"""Spans of the user's own, and the text outside them."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import piste
from piste.errors import PisteError
from piste.verification import check
from tests.conftest import TEXT


def spans_of(subject: piste.Subject) -> list[tuple[int, int]]:
    return [(unit.start, unit.end) for unit in subject.units]


def texts_of(subject: piste.Subject, *sequences: list[int]) -> list[str]:
    return [str(subject.encode(sequence)[0][0].payload) for sequence in sequences]


@pytest.fixture
def reader() -> piste.Classifier:
    return piste.load(lambda texts: [float(len(text)) for text in texts])


@pytest.mark.parametrize("name", ["bert", "reviews_gpt"])
@pytest.mark.parametrize("removal", ["delete", "attention"])
def test_the_words_own_spans_are_words(name: str, removal: Any, request: Any) -> None:
    classifier = request.getfixturevalue(name)
    text = f"  {TEXT} \n\n ok"
    plain = piste.explain(classifier, text, samples=60, removal=removal)
    spans = [(unit.start, unit.end) for unit in plain.units]
    same = piste.explain(classifier, text, samples=60, removal=removal, units=spans[::-1])
    assert same.units == plain.units
    for score, values in plain.scores.items():
        np.testing.assert_array_equal(same.scores[score], values)
    assert same.settings["input"]["units"] == spans


def test_the_words_own_spans_are_words_for_a_function(reader: piste.Classifier) -> None:
    plain = reader.subject(TEXT)
    same = reader.subject(TEXT, units=spans_of(plain))
    assert same.units == plain.units
    for sequence in ([0, 2, 5], [3, 1, 1], [0]):
        assert texts_of(same, sequence) == texts_of(plain, sequence)


@pytest.mark.parametrize("removal", ["delete", "attention"])
@pytest.mark.parametrize("name", ["bert", "reviews_gpt"])
def test_all_units_are_the_input_and_pinned_text_stays(
    name: str, removal: Any, request: Any
) -> None:
    classifier = request.getfixturevalue(name)
    whole = classifier.subject(TEXT, removal=removal)
    words = spans_of(whole)
    pinned = classifier.subject(TEXT, units=[words[2], words[5]], removal=removal)
    np.testing.assert_array_equal(pinned.ask([[0, 1]]), whole.ask([whole.whole]))
    kept = [unit for unit in range(len(whole)) if unit != 5]
    np.testing.assert_allclose(pinned.ask([[0]]), whole.ask([kept]), atol=1e-5)
    rest = [unit for unit in range(len(whole)) if unit not in (2, 5)]
    np.testing.assert_allclose(pinned.ask([[]]), whole.ask([rest]), atol=1e-5)
    assert pinned.notes["pinned_tokens"] == sum(whole.units[unit].tokens for unit in rest)


def test_pinned_text_of_a_function_stays_in_its_place(reader: piste.Classifier) -> None:
    text = " One two, three four. "
    subject = reader.subject(text, units=[(1, 4), (5, 8), (16, 20)])
    assert [unit.text for unit in subject.units] == ["One", "two", "four"]
    assert texts_of(subject, [0, 1, 2], [0, 2], [1], [2, 1, 0], []) == [
        text, " One, three four. ", "two, three. ", "two One, three four. ", ", three. "
    ]  # fmt: skip
    assert subject.can_be_empty
    assert not reader.subject(text).can_be_empty


def test_pairs_of_texts(bert: Any) -> None:
    pair = ("a slow start", "a good ending")
    subject = bert.subject(pair, units=[(1, 2, 6), (0, 2, 6)])
    assert [(unit.segment, unit.text) for unit in subject.units] == [(0, "slow"), (1, "good")]
    whole = bert.subject(pair)
    np.testing.assert_array_equal(subject.ask([[0, 1]]), whole.ask([whole.whole]))
    cut = bert.subject(pair, units=lambda text: [m.span() for m in re.finditer(r"\w+", text)])
    assert cut.units == whole.units
    with pytest.raises(PisteError, match=r"expected \(segment, start, end\) for a pair"):
        bert.subject(pair, units=[(2, 6)])


def test_a_token_goes_to_the_span_that_holds_most_of_it(reviews_gpt: Any) -> None:
    tokens = reviews_gpt.subject(TEXT, units="tokens").units
    long = max(tokens, key=lambda unit: len(unit.text))
    subject = reviews_gpt.subject(TEXT, units=[(0, long.start + 1), (long.start + 1, len(TEXT))])
    assert subject.units[0].end <= long.start
    assert subject.units[1].start == long.start


def test_widened_spans_are_told(reviews_gpt: Any) -> None:
    long = max(reviews_gpt.subject(TEXT, units="tokens").units, key=lambda unit: len(unit.text))
    span = (long.start, long.end - 1)
    e = piste.explain(reviews_gpt, TEXT, units=[span], samples=10)
    assert e.settings["input"]["widened_spans"] == [span]
    assert (e.units[0].start, e.units[0].end) == (long.start, long.end)


@pytest.mark.parametrize(
    ("units", "said"),
    [
        ([(0, 3), (2, 5)], r"do not overlap, got \(0, 3\) and \(2, 5\)"),
        ([(0, 1000)], r"0 ≤ start < end ≤ \d+"),
        ([(3, 3)], r"0 ≤ start < end"),
        ([(-2, 3)], r"0 ≤ start < end"),
        ([(1, 2)], r"all blank"),
        ([], r"units: expected one of words, .* got \[\]"),
        ([(1, 2, 3, 4)], r"units: expected one of words"),
        ([(0.5, 2)], r"units: expected one of words"),
        ((0, 5), r"units: expected one of words"),
        (5, r"units: expected one of words, .* got 5"),
        ("0-3,words", r"units: expected one of words, .* got '0-3,words'"),
        ("lines", r"units: expected one of words, .* got 'lines'"),
        (lambda text: [], r"units: expected one of words"),
        (lambda text: None, r"units: expected"),
    ],
)
def test_bad_spans_are_refused(units: Any, said: str, bert: Any, reader: piste.Classifier) -> None:
    for classifier in (bert, reader):
        with pytest.raises(PisteError, match=said):
            classifier.subject("A slow start", units=units)


def test_a_span_without_a_token_is_refused(reviews_gpt: Any) -> None:
    long = max(reviews_gpt.subject(TEXT, units="tokens").units, key=lambda unit: len(unit.text))
    spans = [(long.start, long.end - 1), (long.end - 1, long.end)]
    with pytest.raises(PisteError, match="cover a token each"):
        reviews_gpt.subject(TEXT, units=spans)


def test_spans_are_stored_and_asked_again(bert: Any, tmp_path: Any) -> None:
    def cut(text: str) -> list[tuple[int, int]]:
        return [m.span() for m in re.finditer(r"\w{4,}", text)]

    e = piste.explain(bert, TEXT, units=cut, samples=40)
    e.to_json(tmp_path / "e.json")
    again = piste.read(tmp_path / "e.json")
    assert again.units == e.units
    assert json.loads(json.dumps(again.settings["input"]["units"])) == [list(s) for s in cut(TEXT)]
    [one] = check(bert, again, [[0]])
    [other] = check(bert, e, [[0]])
    assert one.answer == other.answer


@pytest.mark.parametrize("method", ["slalom", "lime", "occlusion", "gradient", "kernel_shap"])
def test_methods_explain_with_pinned_text(method: str, bert: Any) -> None:
    words = spans_of(bert.subject(TEXT))
    e = piste.explain(bert, TEXT, units=words[1:4] + words[5:7], method=method, samples=40)
    assert len(e) == 5
    assert piste.evaluation.judge(bert, e)
