"""Two explanations side by side: which units are the same, and what differs."""

from __future__ import annotations

import re

import numpy as np
import pytest

import piste
from piste.errors import PisteError
from piste.show.difference import Difference
from piste.show.html import difference_html
from piste.zoo.clothes import draw_clothes

TEXT = "A slow start, but a wonderful ending."


@pytest.fixture(scope="module")
def classifier():
    return piste.load("piste:reviews")


@pytest.fixture(scope="module")
def before(classifier):
    return piste.explain(classifier, TEXT, target="positive")


def now(classifier, text):
    return piste.explain(classifier, text, target="positive")


def names(found):
    return [found.name(row) for row in found.rows]


def test_an_edited_word_stands_beside_the_one_before(classifier, before):
    found = Difference.of(before, now(classifier, TEXT.replace("wonderful", "dreadful")))
    assert "wonderful → dreadful" in names(found)
    assert len(found.rows) == len(before)
    assert names(found)[found.order[0]] == "wonderful → dreadful"
    first, second, change = found.numbers
    np.testing.assert_allclose(change, second - first)
    told = " ".join(found.told())
    assert re.search(r"Log-odds of 'positive': \+\d\.\d\d → −\d\.\d\d\.", told)
    assert "wonderful → dreadful (−" in told
    assert found.removed is None


def test_removed_words_were_predicted_by_the_first_explanation(classifier, before):
    found = Difference.of(before, now(classifier, "A slow start, but a ending."))
    assert [before.units[unit].text for unit in found.removed] == ["wonderful"]
    kept = [unit for unit in range(len(before)) if unit not in found.removed]
    assert found.expected == pytest.approx(before.predict(kept))
    assert "The first explanation predicted" in found.told()[1]
    first, second, change = found.numbers
    gone = found.removed[0]
    assert np.isnan(second[gone])
    assert change[gone] == -first[gone]


def test_words_that_moved_are_the_same(classifier, before):
    found = Difference.of(before, now(classifier, "Wonderful ending, but what a very slow start."))
    both = [
        name
        for name, row in zip(names(found), found.rows, strict=True)
        if None not in (row.before, row.now)
    ]
    assert {"Wonderful", "slow", "start", "ending"} <= {*both}
    assert [
        name for name, row in zip(names(found), found.rows, strict=True) if row.before is None
    ] == ["what", "very"]


def test_two_models_and_one_text(before):
    found = Difference.of(before, now(piste.load("piste:reviews-gpt"), TEXT))
    assert all(None not in (row.before, row.now) for row in found.rows)
    page = difference_html.view(found.before, found.now)
    assert "piste:reviews and piste:reviews-gpt, one text" in page.body
    assert page.body.count('class="piste-marked"') == 2


def test_different_numbers_are_not_subtracted(classifier, before):
    found = Difference.of(before, piste.explain(classifier, TEXT, target="negative"))
    assert "different numbers" in found.told()[0]
    assert "difference" not in [
        column["name"] for column in difference_html._data(found)["columns"]
    ]


def test_nothing_changed_is_said_plainly(before):
    assert Difference.of(before, before).told() == [
        f"Log-odds of 'positive': +{before.output.value:.2f} → +{before.output.value:.2f}."
    ]


def test_texts_are_escaped_and_kinds_are_rows(classifier, before):
    page = difference_html.view(before, now(classifier, "A <b>slow</b> start."))
    assert "<b>slow" not in page.body
    rows = {int(one) for one in re.findall(r'<tr data-k="(\d+)"', page.body)}
    assert {int(one) for one in re.findall(r'piste-unit" data-k="(\d+)"', page.body)} <= rows
    assert rows == {*range(len(page.data["names"]))}


def test_images_do_not_stand_there(before):
    image = piste.explain(piste.load("piste:fashion"), draw_clothes("boot"), samples=40)
    with pytest.raises(PisteError, match="one of these is of an image"):
        Difference.of(before, image)
