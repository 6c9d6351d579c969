"""The method: recovery from load to result, options, targets, budgets, hard inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import piste
from piste import PisteError
from piste.explanation import r_squared
from piste.methods import METHODS, SlalomMethod, Task
from piste.target import resolve
from tests.conftest import TEXT, ExactSlalom


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"form": "paper"},
        {"sampler": "short"},
        {"sampler": "subsets"},
        {"solver": "analytic"},
        {"share": "occurrence"},
        {"samples": "auto"},
        {"samples": 300},
    ],
)
def test_an_exact_slalom_is_recovered(options: dict[str, Any]) -> None:
    truth = ExactSlalom()
    e = piste.explain(piste.load(truth), truth.text, method="slalom", **options)
    np.testing.assert_allclose(e.scores["value"], truth.values[:, 0], atol=1e-4)
    np.testing.assert_allclose(e.scores["importance"], truth.importances, atol=1e-4)
    assert e.fidelity.r2 > 1 - 1e-7
    assert e.predict([3, 1, 3]) == pytest.approx(truth.answer([3, 1, 3])[0], abs=1e-4)
    assert e.mixing is not None
    assert e.mixing.value == 1.0
    assert e.mixing.told


def test_four_classes_share_importances() -> None:
    truth = ExactSlalom(classes=4)
    e = piste.explain(truth, truth.text, target="all")
    np.testing.assert_allclose(e.scores["value"], truth.values, atol=1e-4)
    np.testing.assert_allclose(e.scores["importance"], truth.importances, atol=1e-4)
    np.testing.assert_allclose(e.predict([0, 5]), truth.answer([0, 5]), atol=1e-4)
    assert e.scores["shapley"].shape == e.errors["shapley"].shape == (50, 4)


def test_noise_is_covered_by_the_intervals() -> None:
    inside = []
    for seed in range(4):
        truth = ExactSlalom(noise=0.1, seed=seed)
        e = piste.explain(truth, truth.text, samples=600)
        inside.append(np.abs(e.scores["value"] - truth.values[:, 0]) < 1.96 * e.errors["value"])
        difference = np.abs(e.scores["importance"] - truth.importances)
        inside.append(difference < 1.96 * e.errors["importance"])
    assert 0.91 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize("form", ["auto", "paper", "additive", "mixed", "softmax"])
def test_scores_fit_together(bert: Any, form: str) -> None:
    e = piste.explain(bert, TEXT, samples=300, form=form)
    n = len(e)
    np.testing.assert_allclose(e.scores["value"], [e.predict([k]) for k in range(n)], atol=1e-9)
    whole = e.predict(range(n))
    without = [whole - e.predict(np.delete(np.arange(n), k)) for k in range(n)]
    np.testing.assert_allclose(e.scores["removal"], without, atol=1e-9)
    assert e.scores["shapley"].sum() == pytest.approx(whole - e.predict([]), abs=1e-8)
    evidence = e.surrogate.slalom(e.scores).total_evidence(np.ones((1, n)))[0]
    assert e.scores["contribution"].sum() + e.surrogate.base == pytest.approx(evidence)
    masks = np.eye(n, dtype=bool)
    np.testing.assert_allclose(e.predict(masks[0]), e.predict([0]))
    pairs = e.interactions()
    assert pairs.shape == (n, n)
    np.testing.assert_allclose(pairs, pairs.T, atol=1e-12)
    assert ("linear" in e.scores) == (form == "paper")
    assert e.ranking == ("linear" if form == "paper" else "contribution")
    for name in e.scores:
        assert e.scores[name].dtype == np.float64
        # An additive form has no weights, so nothing is known of importances.
        none = name == "importance" and e.mixing is not None and e.mixing.value == 0.0
        assert np.isinf(e.errors[name]).all() if none else np.isfinite(e.errors[name]).all()


def test_values_are_on_the_scale_of_the_answers(bert: Any) -> None:
    e = piste.explain(bert, TEXT)
    subject = bert.subject(TEXT)
    answers = e.target(subject.ask([[k] for k in range(len(e))]))
    assert np.abs(e.scores["value"] - answers).max() < 0.3 * max(np.ptp(answers), 0.1)


def test_words_that_add_up_are_said_to() -> None:
    weights = {"good": 2.0, "bad": -1.5, "film": 0.1, "great": 1.0, "dull": -0.7}

    def adds(texts: list[str]) -> list[float]:
        return [sum(weights.get(word, 0.0) for word in text.split()) for text in texts]

    e = piste.explain(adds, "a good film and a bad film with great dull parts")
    assert e.mixing is not None
    assert (e.mixing.value, e.mixing.told) == (0.0, False)
    assert e.settings["form"] == "additive"
    expected = [weights.get(unit.text, 0.0) for unit in e.units]
    np.testing.assert_allclose(e.scores["value"], expected, atol=1e-4)
    np.testing.assert_allclose(e.scores["contribution"], expected, atol=1e-4)


def test_the_cost_is_counted_in_passes(bert: Any) -> None:
    e = piste.explain(bert, TEXT, samples=100)
    assert 0 < e.cost < e.calls
    assert piste.explain(bert, TEXT, samples=100, sampler="deletion").cost > e.cost


def test_fidelity_is_told_apart_by_size() -> None:
    truth = ExactSlalom(noise=0.05)
    e = piste.explain(truth, truth.text)
    for name in ("single", "few", "many"):
        assert 0.5 < getattr(e.fidelity, name) <= 1


def test_types_share_and_occurrences_do_not() -> None:
    text = "good film good film bad"
    shared = piste.explain(lambda texts: [t.count("good") - t.count("bad") for t in texts], text)
    assert shared.scores["value"][0] == shared.scores["value"][2]

    def first_counts(texts: list[str]) -> list[float]:
        return [2.0 * t.startswith("good") + 0.1 * t.count("film") for t in texts]

    apart = piste.explain(first_counts, text, share="occurrence")
    assert apart.scores["contribution"][0] != apart.scores["contribution"][2]


def test_the_budget_is_kept_and_fidelity_is_from_other_questions(bert: Any) -> None:
    for samples in (20, 100, 250):
        for sampler in ("log", "short", "deletion", "subsets", "mix"):
            e = piste.explain(bert, TEXT, samples=samples, sampler=sampler)
            assert e.calls <= samples
            assert e.fidelity.questions > 0
    capped = piste.explain(bert, TEXT, samples="auto", max_samples=150)
    assert capped.calls <= 150
    assert capped.settings["stopped"]


@pytest.mark.parametrize("sampler", ["log", "short", "deletion", "subsets", "mix"])
def test_held_out_questions_are_not_in_the_fit(bert: Any, sampler: str) -> None:
    subject = bert.subject(TEXT)
    logits = subject.ask([subject.whole])[0]
    target = piste.Target("class", "first", (0,))
    task = Task(subject, target, logits, np.random.default_rng(0))
    method = SlalomMethod(samples=200, sampler=sampler)
    plan = [tuple(map(int, question)) for question in method.plan(task)]
    count = task.held_out
    held_out, fitted = set(plan[:count]), set(plan[count:])
    assert len(held_out) == 25
    assert not held_out & fitted


def test_held_out_answers_count_in_the_last_fit(bert: Any) -> None:
    """Fidelity is of a fit without them; the surrogate that is handed out has seen them."""
    subject = bert.subject("a slow film with a good ending and the cast is fine but it is too long")
    logits = bert.subject(subject.input).ask([subject.whole])
    target = resolve(None, logits[0], bert.labels, bert.kind)
    task, method = Task(subject, target, logits[0], np.random.default_rng(0)), SlalomMethod()
    plan = method.plan(task)
    task.learn(plan, np.random.default_rng(1).normal(size=(len(plan), logits.shape[1])))
    held, numbers = task.held_out or 0, task.numbers()
    before = method.found(task).predict(task.counts(subject.types))[:held]
    solution = method.solve(task)
    assert solution.surrogate is not None
    masks = task.counts(np.arange(len(subject))).toarray()[:held] > 0
    after = solution.surrogate.predict(solution.scores, masks.astype(float))
    assert solution.fidelity is not None
    assert solution.fidelity.r2 == pytest.approx(r_squared(before, numbers[:held]))
    assert ((after - numbers[:held]) ** 2).mean() < ((before - numbers[:held]) ** 2).mean()


@pytest.mark.parametrize("text", ["good", "good film", "good good good", "a b c"])
def test_very_short_texts_get_a_right_answer(bert: Any, byte_pairs: Any, text: str) -> None:
    for classifier in (bert, piste.load(bert.model, byte_pairs)):
        for options in ({}, {"solver": "analytic"}, {"sampler": "short"}, {"samples": "auto"}):
            e = piste.explain(classifier, text, **options)
            for scores in e.scores.values():
                assert np.isfinite(scores).all()
            if not options:
                # Repeating a word may move the answer faster and faster, which no SLALOM can.
                subject = classifier.subject(text)
                answers = e.target(subject.ask([range(k + 1) for k in range(len(e))]))
                near = 0.3 * max(1.0, float(np.ptp(answers)))
                assert e.predict(range(len(e))) == pytest.approx(e.output.value, abs=near)


def test_a_planted_word_comes_out_on_top() -> None:
    def planted(texts: list[str]) -> list[float]:
        return [5.0 if "secret" in t.split() else 0.1 * (len(t) % 3) for t in texts]

    e = piste.explain(planted, "nothing here but one secret word among several others")
    for name in ("contribution", "removal", "shapley"):
        assert e.units[int(np.argmax(e.scores[name]))].text == "secret"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "magic"}, "slalom"),
        ({"sampler": "all"}, "short"),
        ({"solver": "adam"}, "newton"),
        ({"form": "best"}, "additive"),
        ({"form": "mixed", "solver": "sgd"}, "paper's form only"),
        ({"share": "none"}, "type"),
        ({"samples": 0}, "of at least 1"),
        ({"samples": "many"}, "of at least 1"),
        ({"colour": "red"}, "has no option"),
        ({"units": "letters"}, "words"),
        ({"long": "ignore"}, "truncate"),
        ({"target": "maybe"}, "There is no class"),
        ({"target": 7}, "There is no class"),
        ({"target": (0, 0)}, "two different"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_options_are_named(bert: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PisteError, match=words):
        piste.explain(bert, TEXT, **options)


@pytest.mark.parametrize(
    "text", ["", "   \n", "[CLS] [SEP]", 7, None, b"bytes", ("a", "b", "c"), ("a", 1)]
)
def test_bad_inputs(bert: Any, text: Any) -> None:
    with pytest.raises(PisteError):
        piste.explain(bert, text)
    with pytest.raises(PisteError, match="Input 1"):
        piste.explain(bert, [TEXT, text])


def test_an_empty_list_is_an_empty_list(bert: Any) -> None:
    assert piste.explain(bert, []) == []


def test_every_method_is_listed_and_complete() -> None:
    for name, method in METHODS.items():
        assert method.name == name
        assert method.about
        assert method.needs
        assert callable(method.plan)
        assert callable(method.solve)


def test_repeated_words_do_not_leak_into_the_held_out_questions(bert: Any) -> None:
    subject = bert.subject("good good good good bad bad bad film good")
    target = piste.Target("class", "first", (0,))
    task = Task(subject, target, subject.ask([subject.whole])[0], np.random.default_rng(0))
    plan = SlalomMethod(samples=100).plan(task)
    keys = [subject.encode(question)[0][0].key for question in plan]
    held_out = task.held_out
    assert held_out > 2
    assert not set(keys[:held_out]) & set(keys[held_out:])


def test_shapley_errors_stay_small() -> None:
    truth = ExactSlalom(noise=0.05)
    e = piste.explain(truth, truth.text, samples=600)
    assert e.surrogate.background is None
    assert np.median(e.errors["shapley"]) < np.std(e.scores["shapley"])


def test_a_constant_function_is_soon_settled() -> None:
    e = piste.explain(
        lambda texts: [0.0] * len(texts), "one two three four five six", samples="auto"
    )
    assert e.calls < 200
    assert np.allclose(e.scores["shapley"], 0)
