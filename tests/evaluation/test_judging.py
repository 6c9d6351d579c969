"""Judging: every kind of classifier, target and unit; each question once; rows in order."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import piste
from piste import PisteError
from piste.evaluation import METRICS, NaiveBayes, Rationale, judge
from piste.evaluation import judging as home
from piste.evaluation.judging import bind
from piste.evaluation.metrics import figures_of, make, model_metrics
from tests.conftest import FAMILIES, TEXT, build
from tests.evaluation.cases import REVIEWS, adding, case_of, measure, yes_or_no

FIGURES = {figure.name for name in model_metrics() for figure in METRICS[name].figures}


class Counting:
    """Log-odds of a bag of words; keeps every text it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        weigh = adding({"good": 2.0, "bad": -2.0, "film": 0.3, "the": 0.1})
        return [[0.0, weigh(text)] for text in texts]


@pytest.mark.parametrize("wave", [1, 1_000_000])
def test_each_question_is_asked_once(wave: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "_WAVE", wave)
    function = Counting()
    clf = piste.load(function, outputs="logits", kind="classes")
    text = "the good film is not a bad film at all although its beginning is rather slow"
    es = [piste.explain(clf, text, method=m) for m in ("occlusion", "linear", "random")]
    function.asked.clear()
    rows = judge(clf, es)
    assert [row.method for row in rows] == ["occlusion", "linear", "random"]
    assert max(Counter(function.asked).values()) == 1
    subject = clf.subject(text)
    keys = {
        subject.encode(question)[0][0].key
        for e in es
        for metric in make(model_metrics())
        for question in metric.plan(case_of(clf, e))
    }
    assert Counter(function.asked) == Counter(keys)
    alone = {
        subject.encode(question)[0][0].key
        for metric in make(model_metrics())
        for question in metric.plan(case_of(clf, es[0]))
    }
    assert len(function.asked) < 1.5 * len(alone)


def test_the_figures_are_those_of_the_metrics_alone(bert: Any) -> None:
    texts = [TEXT, "The film is good and the ending is wonderful."]
    es = [e for m in ("slalom", "random") for e in piste.explain(bert, texts, method=m)]
    rows = judge(bert, es, seed=3)
    assert [(row.example, row.method) for row in rows] == [
        ("0", "slalom"),
        ("1", "slalom"),
        ("0", "random"),
        ("1", "random"),
    ]
    for row, e in zip(rows, es, strict=True):
        assert set(row.figures) == FIGURES | {"seconds", "calls"}
        assert row.figures["calls"] == e.calls
        assert row.figures["seconds"] == e.seconds
        for metric in make(model_metrics()):
            found = measure(metric, case_of(bert, e, seed=3))
            for name, figure in found.figures.items():
                assert row.figures[name] == pytest.approx(figure, abs=1e-4, nan_ok=True)
            for name, curve in found.curves.items():
                np.testing.assert_allclose(row.curves[name], curve, atol=1e-4)
    assert set(figures_of(make(model_metrics()))) == set(rows[0].figures)


def test_waves_change_nothing(bert: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [TEXT, "The film is good.", "A bad start and a worse ending."]
    es = [e for m in ("occlusion", "random") for e in piste.explain(bert, texts, method=m)]
    together = judge(bert, es, ["deletion", "single"])
    monkeypatch.setattr(home, "_WAVE", 1)
    for one, other in zip(together, judge(bert, es, ["deletion", "single"]), strict=True):
        assert (one.example, one.method) == (other.example, other.method)
        assert one.figures == pytest.approx(other.figures, abs=1e-4)


@pytest.mark.parametrize("units", ["words", "tokens", "sentences"])
@pytest.mark.parametrize("removal", ["delete", "mask", "attention"])
def test_inputs_are_bound_as_they_were(bert: Any, units: Any, removal: Any) -> None:
    e = piste.explain(bert, TEXT, method="occlusion", units=units, removal=removal)
    subject = bind(bert, e)
    assert subject.units == e.units
    assert subject.removal == removal
    row = judge(bert, e, ["single", "fidelity"])[0]
    assert row.figures["mse_1"] == pytest.approx(0.0, abs=1e-6)
    assert row.figures["spearman_single"] > 0.99


def test_long_texts_are_bound_as_they_were(bert: Any) -> None:
    text = " ".join(["a slow start and a good film"] * 20)
    for long in ("truncate", "windows"):
        e = piste.explain(bert, text, method="occlusion", long=long, held_out=0)
        row = judge(bert, e, ["deletion", "eraser"])[0]
        assert math.isfinite(row.figures["aopc"])
    short = piste.explain(bert, text, sampler="short", samples=50)  # asked without any choice
    assert math.isfinite(judge(bert, short, ["deletion"])[0].figures["aopc"])


def test_a_classifier_that_cuts_otherwise_is_refused(bert: Any, reviews_gpt: Any) -> None:
    e = piste.explain(bert, TEXT, method="random", units="tokens")
    with pytest.raises(PisteError, match="explain it again"):
        judge(reviews_gpt, e, "deletion")
    masked = piste.explain(bert, "good film", method="random", removal="mask")
    with pytest.raises(PisteError, match="needs a tokenizer"):
        judge(yes_or_no(adding({})), masked, "deletion")
    words = piste.explain(yes_or_no(adding({})), "good film", method="random")
    with pytest.raises(PisteError, match="outputs"):
        judge(bert, words, "deletion")


@pytest.mark.parametrize("method", ["slalom", "occlusion", "random"])
@pytest.mark.parametrize("target", ["all", (0, 2), 1, lambda logits: logits[:, 0] ** 2])
def test_every_target(bert: Any, method: str, target: Any) -> None:
    options = {"samples": 60} if method == "slalom" else {}
    e = piste.explain(bert, TEXT, method=method, target=target, **options)
    row = judge(bert, e, [*model_metrics(), Rationale()], rationales=[np.arange(len(e)) < 3])[0]
    assert all(map(math.isfinite, row.figures.values()))
    if method == "occlusion" and target != "all":  # all classes are explained centred
        assert row.figures["spearman_single"] > 0.99


def test_all_classes_are_judged_by_the_predicted_one(bert: Any) -> None:
    every = piste.explain(bert, TEXT, method="occlusion", target="all")
    one = piste.explain(bert, TEXT, method="occlusion")
    own = int(np.argmax(one.output.logits))
    scores = np.zeros_like(every.scores["attribution"])
    scores[:, own] = one.scores["attribution"]
    alike = replace(every, scores={"attribution": scores})
    expected, found = judge(bert, [one, alike], ["deletion", "insertion", "eraser", "single"])
    for name in ("aopc", "insertion", "comprehensiveness", "sufficiency", "spearman_single"):
        assert found.figures[name] == pytest.approx(expected.figures[name], abs=1e-9)


@pytest.mark.parametrize(
    ("problem", "labels"), [(None, 1), ("multi_label_classification", 4), ("regression", 2)]
)
def test_regressions_and_labels(wordpiece: Any, problem: str | None, labels: int) -> None:
    config = FAMILIES["bert"][1] | {"num_labels": labels, "problem_type": problem}
    clf = piste.load(build("bert", **config), wordpiece)
    row = judge(clf, piste.explain(clf, TEXT, method="occlusion"))[0]
    assert all(map(math.isfinite, row.figures.values()))
    assert row.figures["spearman_single"] > 0.99


def test_one_unit_and_what_can_not_be_empty(reviews: Any, reviews_gpt: Any) -> None:
    assert not reviews_gpt.subject("good").can_be_empty
    for clf in (reviews, reviews_gpt, yes_or_no(adding({"good": 1.0}))):
        for text in ("good", "good film"):
            es = [piste.explain(clf, text, method=m) for m in ("slalom", "occlusion", "zero")]
            for row in judge(clf, es, [*model_metrics(), "rationale", NaiveBayes({"good": 1.0})]):
                assert set(row.figures) > FIGURES
                assert not any(map(math.isinf, row.figures.values()))
                assert len(row.curves["deletion"]) == len(row.curves["insertion"]) == 21
                assert np.isfinite(row.curves["deletion"]).all()
                if text == "good film":
                    assert math.isfinite(row.figures["aopc"])


def test_random_scores_are_at_the_bottom(reviews: Any) -> None:
    es = [
        e
        for method, options in (
            ("slalom", {"samples": 300}),
            ("occlusion", {}),
            ("linear", {"samples": 300}),
            ("random", {}),
        )
        for e in piste.explain(reviews, REVIEWS, method=method, **options)
    ]
    rows = judge(reviews, es)
    better = {figure.name: figure.better for figure in figures_of(make(model_metrics())).values()}
    for name in FIGURES:
        mean = {
            method: np.mean([row.figures[name] for row in rows if row.method == method])
            for method in ("slalom", "linear", "random")
        }
        sign = 1 if better[name] == "higher" else -1
        for method in ("slalom", "linear"):
            assert sign * mean[method] > sign * mean["random"], (name, mean)


def test_scores_by_choice(reviews: Any) -> None:
    slalom = piste.explain(reviews, REVIEWS[0], samples=200)
    other = piste.explain(reviews, REVIEWS[0], method="occlusion")
    rows = judge(reviews, slalom, "deletion", score="value")
    assert [row.method for row in rows] == ["slalom:value"]
    assert judge(reviews, slalom, "deletion", score=slalom.ranking)[0].method == "slalom"
    several = judge(
        reviews,
        [slalom, other],
        ["deletion", "single"],
        score={"slalom": ["value", slalom.ranking, "importance"]},
    )
    assert [row.method for row in several] == [
        "slalom:value",
        "slalom",
        "slalom:importance",
        "occlusion",
    ]
    assert several[0].figures["aopc"] == pytest.approx(rows[0].figures["aopc"], abs=1e-6)
    assert several[1].figures["spearman_single"] != several[2].figures["spearman_single"]
    with pytest.raises(PisteError, match="no score 'value'"):
        judge(reviews, [slalom, other], "deletion", score="value")


def test_rationales_and_names_of_examples(reviews: Any) -> None:
    es = piste.explain(reviews, REVIEWS[:2], method="occlusion")
    mask = np.abs(es[0].scores["attribution"]) >= np.sort(np.abs(es[0].scores["attribution"]))[-3]
    rows = judge(reviews, es, "rationale", rationales=[mask, None], examples=["x.txt", "y.txt"])
    assert [row.example for row in rows] == ["x.txt", "y.txt"]
    assert rows[0].figures["auroc"] == rows[0].figures["token_f1"] == 1.0
    assert math.isnan(rows[1].figures["auroc"])
    for wrong in ([mask], [mask[:-1], None], [mask * 3, None]):
        with pytest.raises(PisteError, match="ationale"):
            judge(reviews, es, "rationale", rationales=wrong)
    with pytest.raises(PisteError, match="expected 2 names"):
        judge(reviews, es, "rationale", examples=["one"])


def test_stored_explanations_and_a_cache(reviews: Any, tmp_path: Any) -> None:
    e = piste.explain(reviews, REVIEWS[1], method="occlusion", units="tokens")
    e.to_json(tmp_path / "e.json")
    again = piste.read(tmp_path / "e.json")
    counted: list[int] = []
    first = judge(
        reviews, e, cache=tmp_path / "answers", progress=lambda done, _: counted.append(done)
    )
    assert counted
    counted.clear()
    second = judge(
        reviews, again, cache=tmp_path / "answers", progress=lambda done, _: counted.append(done)
    )
    assert not counted
    assert first[0].figures == second[0].figures


def test_same_seed_same_rows(reviews: Any) -> None:
    e = piste.explain(reviews, REVIEWS[0], method="zero")
    first, again, other = (judge(reviews, e, seed=seed)[0].figures for seed in (0, 0, 1))
    for name in first:
        assert first[name] == pytest.approx(again[name], nan_ok=True)
    assert first["mse_all"] != other["mse_all"]
    assert first["aopc"] != other["aopc"]  # ties are broken by the seed


def test_nothing_to_judge_and_wrong_names(reviews: Any) -> None:
    assert judge(reviews, []) == []
    e = piste.explain(reviews, "good film", method="zero")
    with pytest.raises(PisteError, match="expected one of deletion"):
        judge(reviews, e, "magic")
    with pytest.raises(PisteError, match="seed"):
        judge(reviews, e, "deletion", seed=-1)
