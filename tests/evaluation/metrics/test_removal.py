"""Deletion, insertion, comprehensiveness, sufficiency: by hand, and what must hold of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import piste
from piste import PisteError
from piste.evaluation.metrics import Case, make
from piste.evaluation.metrics.removal import GRID, Alone, Deletion, Eraser, Insertion
from tests.evaluation.cases import adding, case_of, explained, measure, yes_or_no

WEIGHTS = {"a": 2.0, "b": 1.0, "c": 0.0, "d": -1.0}
YES = yes_or_no(adding(WEIGHTS))
TEXT = "c a d b"
SCORES = [WEIGHTS[word] for word in TEXT.split()]


def test_deletion_by_hand() -> None:
    found = measure(Deletion(), case_of(YES, explained(YES, TEXT, SCORES)))
    # all: 2; without a: 0; without a, b: −1; only d is left: −1 (nothing can't be asked)
    chances = expit([2.0, 0.0, -1.0, -1.0])
    assert found.figures["aopc"] == pytest.approx(np.mean(chances[0] - chances[1:]))
    expected = np.interp(GRID, [0, 0.25, 0.5, 0.75, 1], [*chances, chances[-1]])
    np.testing.assert_allclose(found.curves["deletion"], expected)


def test_insertion_by_hand() -> None:
    found = measure(Insertion(), case_of(YES, explained(YES, TEXT, SCORES)))
    # a: 2; a, b: 3; a, b, c: 3; all: 2
    chances = expit([2.0, 3.0, 3.0])
    assert found.figures["insertion"] == pytest.approx(np.mean(expit(2.0) - chances))
    points = [expit(2.0), *chances, expit(2.0)]
    expected = np.interp(GRID, [0, 0.25, 0.5, 0.75, 1], points)
    np.testing.assert_allclose(found.curves["insertion"], expected)


def test_where_nothing_can_be_asked_it_is(reviews: Any) -> None:
    e = piste.explain(reviews, "good film", method="occlusion")
    subject = reviews.subject("good film")
    case = Case(e, subject)
    chance = expit(e.target(subject.ask([[0, 1], [int(case.order[1])], []])))
    found = measure(Deletion(), case)
    assert found.figures["aopc"] == pytest.approx(chance[0] - chance[1:].mean())
    assert found.curves["deletion"][-1] == pytest.approx(chance[2])
    kept = expit(e.target(subject.ask([[int(case.order[0])], []])))
    assert measure(Insertion(), case).figures["insertion"] == pytest.approx(chance[0] - kept.mean())


@pytest.mark.parametrize("n", [3, 21, 37])
@pytest.mark.parametrize("steps", [1, 5, 20])
def test_insertion_is_the_deletion_of_the_ranking_turned_round(n: int, steps: int) -> None:
    rng = np.random.default_rng(n)
    words = [f"w{k}" for k in range(n)]
    clf = yes_or_no(adding(dict(zip(words, rng.normal(size=n), strict=True))))
    scores = rng.normal(size=n)
    up, down = (case_of(clf, explained(clf, " ".join(words), sign * scores)) for sign in (1, -1))
    kept, removed = measure(Insertion(steps), up), measure(Deletion(steps), down)
    assert kept.figures["insertion"] == pytest.approx(removed.figures["aopc"], abs=1e-12)
    np.testing.assert_allclose(
        kept.curves["insertion"], removed.curves["deletion"][::-1], atol=1e-12
    )


def test_long_texts_are_asked_at_evenly_spaced_points() -> None:
    words = [f"w{k}" for k in range(101)]
    clf = yes_or_no(adding({"w0": 1.0}))
    case = case_of(clf, explained(clf, " ".join(words), list(range(101, 0, -1))))
    plan = Deletion(steps=20).plan(case)
    assert [len(kept) for kept in plan] == list(range(101, 0, -5))
    assert list(plan[1]) == list(range(5, 101))
    assert len(Insertion(steps=7).plan(case)) == 8


def test_eraser_by_hand() -> None:
    words = [f"w{k}" for k in range(10)]
    weights = dict(zip(words, np.linspace(2, -1, 10), strict=True))
    clf = yes_or_no(adding(weights))
    case = case_of(clf, explained(clf, " ".join(words), list(weights.values())))
    values = np.array(list(weights.values()))
    whole, tops = expit(values.sum()), [1, 1, 1, 2, 5]  # 1, 5, 10, 20 and 50 % of ten, rounded up
    without = [expit(values[top:].sum()) for top in tops]
    alone = [expit(values[:top].sum()) for top in tops]
    found = measure(Eraser(), case).figures
    assert found["comprehensiveness"] == pytest.approx(whole - np.mean(without))
    assert found["sufficiency"] == pytest.approx(whole - np.mean(alone))

    found = measure(Eraser(bins="eggen"), case).figures
    # 0, 10, 20, 50 %; nothing can't be asked of a function, so the top unit stays at 0 %
    without = [expit(values[top:].sum()) for top in (0, 1, 2, 5)]
    alone = [expit(values[:top].sum()) for top in (1, 1, 2, 5)]
    assert found["comprehensiveness"] == pytest.approx(sum(whole - p for p in without) / 5)
    assert found["sufficiency"] == pytest.approx(sum(whole - p for p in alone) / 5)

    found = measure(Eraser(bins=(0.3,)), case).figures
    assert found["comprehensiveness"] == pytest.approx(whole - expit(values[3:].sum()))


def test_eggens_nothing_is_asked_where_it_can_be(reviews: Any) -> None:
    e = piste.explain(reviews, "A wonderful film", method="occlusion")
    case = Case(e, reviews.subject(e.input))
    plan = Eraser(bins="eggen").plan(case)
    assert [len(kept) for kept in plan] == [3, 3, 2, 2, 1, 0, 1, 1, 2]


def test_whole_numbers_of_units_are_not_rounded_up() -> None:
    for n in range(1, 400):
        tops = Eraser()._tops(n)
        assert tops == [-(-n * percent // 100) for percent in (1, 5, 10, 20, 50)]
    assert Eraser(bins=(0.07, 0.14))._tops(100) == [7, 14]  # 0.07 · 100 is a little more than 7


def test_the_best_ranking_beats_all_others() -> None:
    clf = yes_or_no(adding(WEIGHTS))
    figures = []
    for scores in (SCORES, SCORES[::-1], [-score for score in SCORES]):
        case = case_of(clf, explained(clf, TEXT, scores))
        figures.append({})
        for metric in (Deletion(), Insertion(), Eraser()):
            figures[-1] |= measure(metric, case).figures
    for worse in figures[1:]:
        assert figures[0]["aopc"] > worse["aopc"]
        assert figures[0]["insertion"] < worse["insertion"]
        assert figures[0]["comprehensiveness"] > worse["comprehensiveness"]
        assert figures[0]["sufficiency"] < worse["sufficiency"]


def test_one_unit() -> None:
    case = case_of(YES, explained(YES, "a", [1.0]))
    assert math.isnan(measure(Deletion(), case).figures["aopc"])
    assert math.isnan(measure(Insertion(), case).figures["insertion"])
    found = measure(Eraser(), case).figures
    assert math.isnan(found["comprehensiveness"])
    assert found["sufficiency"] == 0.0
    assert measure(Deletion(), case).curves["deletion"] == [pytest.approx(expit(2.0))] * 21


def test_one_unit_against_nothing(reviews: Any) -> None:
    case = case_of(reviews, piste.explain(reviews, "wonderful", method="occlusion"))
    whole, empty = expit(case.explanation.target(case.subject.ask([[0], []])))
    assert measure(Deletion(), case).figures["aopc"] == pytest.approx(whole - empty)
    assert measure(Eraser(), case).figures["comprehensiveness"] == pytest.approx(whole - empty)


def test_a_regression_is_measured_in_its_own_numbers() -> None:
    clf = piste.load(lambda texts: [10.0 * len(text.split()) for text in texts])
    case = case_of(clf, explained(clf, "a b c", [1, 2, 3]))
    assert measure(Deletion(), case).figures["aopc"] == pytest.approx(15.0)
    assert measure(Insertion(), case).figures["insertion"] == pytest.approx(15.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Deletion(steps=0), "steps"),
        (lambda: Insertion(steps=1.5), "steps"),
        (lambda: Eraser(bins="thirds"), "eggen"),
        (lambda: Eraser(bins=(0.5, 1.5)), "fractions"),
        (lambda: Eraser(bins=()), "fractions"),
    ],
)
def test_wrong_options(make: Any, words: str) -> None:
    with pytest.raises(PisteError, match=words):
        make()


def test_the_top_units_alone() -> None:
    clf = yes_or_no(adding({"a": 3.0, "b": -2.0, "c": -2.0, "d": 0.5}))
    text = "a b c d"  # −0.5: no
    for_no = explained(clf, text, [-3.0, 2.0, 2.0, -0.5])
    found = measure(Alone(share=0.5), case_of(clf, for_no))
    assert found.figures["same_class"] == 1.0
    assert found.curves["classes"] == [0.0, 0.0]
    misled = explained(clf, text, [3.0, 0.0, 0.0, 0.5])
    found = measure(Alone(share=0.2), case_of(clf, misled))
    assert found.figures["same_class"] == 0.0
    assert found.curves["classes"] == [1.0, 0.0]
    for wrong in (0, 1.5, "all"):
        with pytest.raises(PisteError, match="share"):
            Alone(share=wrong)  # type: ignore[arg-type]


def test_metrics_take_options_in_brackets() -> None:
    eraser, deletion = make(["eraser[bins=eggen]", "deletion[steps=7]"])
    assert eraser == Eraser(bins="eggen")
    assert deletion == Deletion(steps=7)
    with pytest.raises(PisteError, match="has no option 'size': it has steps"):
        make("deletion[size=3]")
    with pytest.raises(PisteError, match="option=value"):
        make("deletion[steps]")
    with pytest.raises(PisteError, match="Unknown metric"):
        make("deletion[steps=3")
