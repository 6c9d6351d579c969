"""Coarse to fine: what is split, what it costs, and what is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import piste
from piste.errors import PisteError
from piste.levels import split
from piste.subject import Unit

DULL = "The hall was full. We came by bus. It was a Monday."
TEXT = f"{DULL}\n\nThe food was cold. The end is wonderful !\n\n{DULL} And so on."
LEVELS = ["paragraphs", "sentences", "words"]


def counted(word: str) -> tuple[piste.Classifier, list[str]]:
    """A function that counts a word, and the texts it was asked about."""
    asked: list[str] = []

    def count(texts: list[str]) -> list[float]:
        asked.extend(texts)
        return [float(text.count(word)) for text in texts]

    return piste.load(count, outputs="logits", labels=["score"]), asked


def test_only_what_matters_is_split() -> None:
    classifier, asked = counted("wonderful")
    e = piste.explain(classifier, TEXT, units=LEVELS)
    assert [unit.text for unit in e.units] == [
        DULL, "The food was cold.", "The", "end", "is", "wonderful", "!", f"{DULL} And so on."
    ]  # fmt: skip
    assert e.units[int(np.argmax(e.score()))].text == "wonderful"
    assert [len(level) for level in e.levels] == [3, 4]
    assert e.levels[0].settings["input"]["units"] == "paragraphs"
    assert e.settings["levels"] == LEVELS
    assert len(asked) == len(set(asked)) == e.calls  # nothing is paid twice


def test_samples_are_the_total_over_all_levels() -> None:
    classifier, asked = counted("e")
    e = piste.explain(classifier, TEXT, units=LEVELS, samples=120)
    assert e.calls <= 121
    assert len(asked) <= 121
    assert e.seconds >= sum(level.seconds for level in e.levels)


@pytest.mark.parametrize("method", ["slalom", "lime", "occlusion", "gradient"])
def test_every_method_has_levels(method: str, reviews: Any) -> None:
    e = piste.explain(reviews, TEXT, units=LEVELS, method=method, samples=80)
    assert e.levels
    assert len(e) > len(e.levels[0])
    assert (
        "".join(unit.text for unit in e.units).split()
        == "".join(
            unit.text for unit in reviews.subject(TEXT, units=e.settings["input"]["units"]).units
        ).split()
    )
    assert piste.evaluation.judge(reviews, e)


def test_levels_are_stored(reviews: Any, tmp_path: Path) -> None:
    e = piste.explain(reviews, TEXT, units="paragraphs,words", samples=60)
    for suffix in ("json", "csv", "parquet"):
        file = tmp_path / f"e.{suffix}"
        getattr(e, f"to_{suffix}")(file)
        again = piste.read(file)
        assert again.units == e.units
        assert [level.units for level in again.levels] == [level.units for level in e.levels]
        np.testing.assert_array_equal(again.levels[0].score(), e.levels[0].score())
        assert again.levels[0].input == TEXT


def test_the_same_seed_gives_the_same_levels(reviews: Any) -> None:
    one, other = (piste.explain(reviews, [TEXT], units=LEVELS, samples=90)[0] for _ in range(2))
    assert one.units == other.units
    np.testing.assert_array_equal(one.score(), other.score())


def test_a_text_of_one_paragraph_goes_on_with_its_sentences(reviews: Any) -> None:
    e = piste.explain(reviews, DULL, units=LEVELS, samples=60)
    assert len(e.levels) == 1
    assert len(e.levels[0]) == 3


def test_levels_within_spans_leave_the_rest_pinned() -> None:
    classifier, _ = counted("wonderful")
    start = TEXT.index("The food")

    def middle(text: str) -> list[tuple[int, int]]:
        return [(start, start + 18), (start + 19, text.index("\n\n", start))]

    e = piste.explain(classifier, TEXT, units=[middle, "words"], samples=60)
    assert [unit.text for unit in e.units] == [
        "The food was cold.", "The", "end", "is", "wonderful", "!"
    ]  # fmt: skip


def test_a_comparison_has_one_partition(reviews: Any) -> None:
    found = piste.compare(reviews, TEXT, ["slalom", "occlusion"], units=LEVELS, samples=60)
    first, second = found.explanations.values()
    assert first.units == second.units
    assert found.checks


def test_pieces_are_clipped_to_what_is_split() -> None:
    parts = [((0, 0, 3), 0), ((0, 4, 7), 0)]
    finer = [Unit("a", 0, 1), Unit("b c", 2, 5), Unit("d", 6, 7), Unit("d", 6, 7)]
    units: list[list[Unit]] = [[], finer]
    assert split(parts, [1, 0], units) == [
        ((0, 0, 1), 1), ((0, 2, 3), 1), ((0, 4, 5), 1), ((0, 6, 7), 1)
    ]  # fmt: skip
    assert split(parts, [1], units)[0] == parts[0]
    assert split(parts, [1, 0], units, most=1) == [parts[0], ((0, 4, 5), 1), ((0, 6, 7), 1)]


def test_a_unit_goes_down_one_level_at_a_time() -> None:
    sentences, words = [Unit("a b", 0, 3), Unit("c", 4, 5)], [Unit("a", 0, 1), Unit("b", 2, 3)]
    parts = [((0, 0, 5), 0)]
    once = split(parts, [0], [[], sentences, words])
    assert once == [((0, 0, 3), 1), ((0, 4, 5), 1)]
    assert split(once, [1, 0], [[], sentences, words]) == [
        ((0, 0, 1), 2), ((0, 2, 3), 2), ((0, 4, 5), 1)
    ]  # fmt: skip
    assert split([((0, 0, 3), 0)], [0], [[], sentences, words])[0][1] == 2


def test_windows_of_a_long_text_do_not_use_up_the_questions(reviews: Any) -> None:
    long = "\n\n".join([TEXT.replace("\n\n", " ")] * 30)
    e = piste.explain(reviews, long, units=["paragraphs", "words"], samples=80, long="windows")
    assert e.settings["samples"] >= 40


@pytest.mark.parametrize(
    ("units", "said"),
    [
        (["words", "sentences"], "units: expected levels from coarse to fine"),
        ("words,words", "units: expected levels from coarse to fine"),
        (["paragraphs", "lines"], "units: expected one of words, .* got 'lines'"),
        (["paragraphs", 3], "units: expected one of words"),
    ],
)
def test_bad_levels_are_refused(units: Any, said: str, reviews: Any) -> None:
    with pytest.raises(PisteError, match=said):
        piste.explain(reviews, TEXT, units=units)
    with pytest.raises(PisteError):
        reviews.subject(TEXT, units=LEVELS)
