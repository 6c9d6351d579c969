"""Single removals, marks of people, naive Bayes: by hand, and against scikit-learn and scipy."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.naive_bayes import MultinomialNB

import piste
from piste import PisteError
from piste.evaluation.metrics import make
from piste.evaluation.metrics.agreement import (
    NaiveBayes,
    Rationale,
    SingleRemoval,
    naive_bayes_table,
    rationale_units,
)
from piste.evaluation.metrics.ranking import area_under_roc, average_precision, spearman, top_f1
from tests.evaluation.cases import adding, case_of, explained, measure, yes_or_no

# -- orders ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", [False, True])
def test_orders_against_the_libraries(ties: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(3, 40))
        scores, other = rng.normal(size=(2, n))
        if ties:
            scores, other = scores.round(), other.round()
        marked = rng.random(n) < 0.4
        marked[:2] = True, False
        assert area_under_roc(scores, marked) == pytest.approx(roc_auc_score(marked, scores))
        assert average_precision(scores, marked) == pytest.approx(
            average_precision_score(marked, scores)
        )
        if np.ptp(scores) and np.ptp(other):
            assert spearman(scores, other) == pytest.approx(spearmanr(scores, other).statistic)
        if not ties:
            top = np.isin(np.arange(n), np.argsort(-scores)[: marked.sum()])
            assert top_f1(scores, marked) == pytest.approx(f1_score(marked, top))


def test_ties_at_the_border_are_broken_in_expectation() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        scores, marked = rng.integers(0, 3, 5).astype(float), rng.permutation([1, 1, 0, 0, 0]) > 0
        hits = [
            marked[np.array(order)[np.argsort(-scores[list(order)], kind="stable")[:2]]].mean()
            for order in permutations(range(5))
        ]
        assert top_f1(scores, marked) == pytest.approx(np.mean(hits))


def test_orders_that_are_none() -> None:
    some, every = np.array([1.0, 2.0]), np.array([True, True])
    for marked in (every, ~every):
        for measured in (area_under_roc, average_precision, top_f1):
            assert math.isnan(measured(some, marked))
    assert math.isnan(spearman(some, np.ones(2)))
    assert math.isnan(spearman(some[:1], some[:1]))


# -- single removals ---------------------------------------------------------------------------


def test_single_removals_by_hand() -> None:
    weights = {"a": 2.0, "b": 1.0, "c": 0.5, "d": -1.0}
    clf = yes_or_no(adding(weights))
    for scores in ([9, 3, 1, 0], [1, 2, 3, 4], [2, 2, 1, 0]):
        found = measure(SingleRemoval(), case_of(clf, explained(clf, "a b c d", scores)))
        expected = spearmanr(scores, list(weights.values())).statistic
        assert found.figures["spearman_single"] == pytest.approx(expected)


def test_of_many_units_some_are_asked() -> None:
    words = [f"w{k}" for k in range(300)]
    clf = yes_or_no(adding({word: float(k) for k, word in enumerate(words)}))
    case = case_of(clf, explained(clf, " ".join(words), range(300)))
    assert len(SingleRemoval().plan(case)) == 201
    assert measure(SingleRemoval(), case).figures["spearman_single"] == pytest.approx(1.0)
    assert len(SingleRemoval(most=10).plan(case)) == 11


def test_a_single_unit_has_no_order(reviews: Any) -> None:
    for clf in (reviews, yes_or_no(adding({}))):
        case = case_of(clf, explained(clf, "good", [1.0]))
        assert math.isnan(measure(SingleRemoval(), case).figures["spearman_single"])


# -- marks of people ---------------------------------------------------------------------------


def test_rationale_is_about_absolute_scores_unless_signed() -> None:
    clf = yes_or_no(adding({}))
    marked = np.array([True, False, True, False])
    case = case_of(clf, explained(clf, "a b c d", [-3, 1, 2, 0]), rationale=marked)
    assert measure(Rationale(), case).figures == {"auroc": 1.0, "auprc": 1.0, "token_f1": 1.0}
    signed = measure(Rationale(signed=True), case).figures
    assert signed["auroc"] == 0.5
    assert signed["token_f1"] == 0.5
    assert signed["auprc"] == pytest.approx(0.5 * 1 + 0.5 * 2 / 4)


def test_no_marks_no_figures() -> None:
    clf = yes_or_no(adding({}))
    e = explained(clf, "a b", [1, 2])
    for marked in (None, np.zeros(2, bool), np.ones(2, bool)):
        found = measure(Rationale(), case_of(clf, e, rationale=marked)).figures
        assert set(found) == {"auroc", "auprc", "token_f1"}
        assert all(map(math.isnan, found.values()))


LINE = "It wasn't  good, not at all:\na bad-ish film."


def named(subject: Any, words: Any, marks: Any = None) -> list[str]:
    marked = rationale_units(subject, words, marks)
    return [unit.text for unit, mark in zip(subject.units, marked, strict=True) if mark]


def test_marks_reach_units_by_character(reviews: Any) -> None:
    for clf in (reviews, piste.load(len_of)):
        subject = clf.subject(LINE)
        words = LINE.split()
        marks = [word in ("good,", "bad-ish") for word in words]
        expected = [
            u.text for u in subject.units if u.text in ("good", ",", "bad-ish", "bad", "-", "ish")
        ]
        assert named(subject, words, marks) == expected
        assert named(subject, None, marks) == expected
        assert named(subject, LINE, marks) == expected
        assert rationale_units(subject.units, words, marks).tolist() == (
            rationale_units(subject, words, marks).tolist()
        )
        start = LINE.index("bad")
        assert "bad" in named(subject, [(start, start + 3)])[0]
        assert named(subject, []) == []
        assert named(subject, [(0, 2), (start, start + 3)], [1, 0]) == ["It"]


def len_of(texts: list[str]) -> list[float]:
    return [float(len(text)) for text in texts]


def test_tokens_of_a_marked_word_are_all_marked(bert: Any) -> None:
    subject = bert.subject("an unwatchable film", units="tokens")
    marked = rationale_units(subject, None, [0, 1, 0])
    inside = [unit.start >= 3 and unit.end <= 14 for unit in subject.units]
    assert len(subject) > 3
    assert marked.tolist() == inside


def test_words_that_leave_something_out_are_found_as_words() -> None:
    subject = piste.load(len_of).subject("I had a bad day at a zoo")
    # "a" without what stands before it is not the a of "had"
    assert rationale_units(subject, ["I", "a", "zoo"], [0, 1, 0]).tolist() == [
        unit.start == 6 for unit in subject.units
    ]


def test_pieces_of_words_are_found_where_they_stand() -> None:
    subject = piste.load(len_of).subject("don't do it")
    assert named(subject, ["do", "n't", "do", "it"], [0, 1, 0, 0]) == ["don't"]
    assert named(subject, ["do", "n't", "do", "it"], [0, 0, 1, 0]) == ["do"]


def test_the_same_word_twice_keeps_its_place() -> None:
    subject = piste.load(len_of).subject("good not good")
    assert rationale_units(subject, ["good", "not", "good"], [0, 0, 1]).tolist() == [
        False,
        False,
        True,
    ]


def test_pairs_of_texts(bert: Any) -> None:
    subject = bert.subject(("good start", "good ending"))
    words, marks = ["good", "start", "good", "ending"], [0, 0, 1, 0]
    expected = [u.segment == 1 and u.text == "good" for u in subject.units]
    assert any(expected)
    assert rationale_units(subject, words, marks).tolist() == expected
    assert rationale_units(subject.units, words, marks).tolist() == expected
    with pytest.raises(PisteError, match="pair"):
        rationale_units(subject, [(0, 4)])


@pytest.mark.parametrize(
    ("words", "marks", "message"),
    [
        (["good", "bad"], [1, 0], "'bad'"),
        (["film", "good"], [1, 0], "in their order"),
        (["good", "film"], [1], "one per word"),
        (["good", "film"], None, "one per word"),
        (["good", "film"], [1, 3], "0 or 1"),
        ([(0, 99)], None, "outside"),
        ([3, 4], None, "spans"),
        (["good", 4], [1, 0], "not found"),
    ],
)
def test_marks_that_do_not_fit(words: Any, marks: Any, message: str) -> None:
    subject = piste.load(len_of).subject("good film")
    with pytest.raises(PisteError, match=message):
        rationale_units(subject, words, marks)


# -- naive Bayes -------------------------------------------------------------------------------

TEXTS = [
    "A good, good film",
    "a bad film",
    "The plot is bad",
    "the plot is good",
    "bad bad Bad!",
    "so so",
]
LABELS = [1, 0, 0, 1, 0, 2]


@pytest.mark.parametrize("alpha", [20.0, 0.5])
def test_the_table_is_scikit_learns(alpha: float) -> None:
    texts, labels = TEXTS[:5], LABELS[:5]
    counter = CountVectorizer(token_pattern=r"\w+|[^\w\s]+")
    model = MultinomialNB(alpha=alpha).fit(counter.fit_transform(texts), labels)
    evidence = model.feature_log_prob_[1] - model.feature_log_prob_[0]
    table = naive_bayes_table(texts, labels, alpha)
    assert set(table) == set(counter.vocabulary_)
    for word, column in counter.vocabulary_.items():
        assert table[word] == pytest.approx(evidence[column])
    assert naive_bayes_table(texts, labels) == naive_bayes_table(texts, labels, 20.0)


def test_the_table_of_more_classes_is_one_against_the_rest() -> None:
    table = naive_bayes_table(TEXTS, LABELS, classes=3)
    for own in range(3):
        against = naive_bayes_table(TEXTS, [int(label == own) for label in LABELS])
        for word, evidence in against.items():
            assert table[word][own] == pytest.approx(evidence)


def test_naive_bayes_by_hand() -> None:
    table = {"good": 2.0, "film": 0.1, "bad": -3.0}
    text, scores = "Good unknown film bad", [3.0, 9.0, 1.0, 2.0]
    expected = spearmanr([3, 1, 2], [2.0, 0.1, -3.0]).statistic
    clf = yes_or_no(adding({"Good": 1.0}))
    for target, sign in (
        ("yes", 1),
        ("no", -1),
        (("yes", "no"), 1),
        (("no", "yes"), -1),
        ("all", 1),
    ):
        e = explained(clf, text, scores, target=target)
        found = measure(NaiveBayes(table), case_of(clf, e)).figures["spearman_nb"]
        assert found == pytest.approx(sign * expected)
    number = piste.load(len_of)
    found = measure(NaiveBayes(table), case_of(number, explained(number, text, scores)))
    assert found.figures["spearman_nb"] == pytest.approx(expected)


def test_naive_bayes_of_many_classes() -> None:
    clf = piste.load(lambda texts: [[5.0, 0.0, -5.0]] * len(texts), outputs="logits")
    table = {"a": (0.0, 1.0, 3.0), "b": (1.0, 2.0, 1.0), "c": (2.0, 0.0, 2.0)}
    for own in range(3):
        e = explained(clf, "a b c", [1, 2, 3], target=own)
        found = measure(NaiveBayes(table), case_of(clf, e)).figures["spearman_nb"]
        expected = spearmanr([1, 2, 3], [row[own] for row in table.values()]).statistic
        assert found == pytest.approx(expected)
    margin = explained(clf, "a b c", [1, 2, 3], target=(0, 1))
    assert math.isnan(measure(NaiveBayes(table), case_of(clf, margin)).figures["spearman_nb"])
    third = case_of(clf, explained(clf, "a b c", [1, 2, 3], target=2))
    for wrong in ({"a": 1.0}, {"a": (1.0, 2.0)}):
        with pytest.raises(PisteError, match="Class 2"):
            measure(NaiveBayes(wrong), third)


def test_naive_bayes_needs_words_it_knows() -> None:
    clf = yes_or_no(adding({}))
    case = case_of(clf, explained(clf, "a b", [1, 2]))
    assert math.isnan(measure(NaiveBayes({"z": 1.0}), case).figures["spearman_nb"])
    with pytest.raises(PisteError, match="table of words"):
        make(["naive_bayes"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [1]}, "labels"),
        ({"labels": [0, 2]}, "0 to 1"),
        ({"labels": [0, "1"]}, "0 to 1"),
        ({"alpha": 0.0}, "alpha"),
        ({"classes": 1}, "classes"),
    ],
)
def test_wrong_tables(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PisteError, match=message):
        naive_bayes_table(**({"texts": ["a", "b"], "labels": [0, 1]} | options))


# -- the list ----------------------------------------------------------------------------------


def test_unknown_and_repeated_metrics_are_refused() -> None:
    with pytest.raises(PisteError, match="deletion, insertion, eraser"):
        make(["deletion", "magic"])
    with pytest.raises(PisteError, match="Unknown metric"):
        make([7])  # type: ignore[list-item]
    with pytest.raises(PisteError, match="'auroc'"):
        make([Rationale(), Rationale(signed=True)])
    assert [metric.name for metric in make("single")] == ["single"]
