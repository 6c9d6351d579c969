import math
from typing import Any

import numpy as np
import pytest

import piste
from benchmarks.frontier.__main__ import _expected, timed
from benchmarks.frontier.contenders import OURS, Contender, Input, contenders
from benchmarks.frontier.curves import Point, complete, frontier, leads, points, ratio, seconds
from benchmarks.frontier.libraries import Libraries
from benchmarks.frontier.page import METRICS, write
from benchmarks.panel.judging import Trial
from benchmarks.panel.results import Results

TEXT = "A slow start, but a wonderful ending."


def point(family: str, spent: float, r2: float, budget: int | None = 1) -> Point:
    return Point(family, "engine", budget, spent, {"r2 all": r2})


CURVES = [
    point("LIME", 0.1, 0.3),
    point(OURS, 0.2, 0.7),
    point("LIME", 0.5, 0.6),
    point(OURS, 1.0, 0.9),
    point("SPEX", 2.0, 0.8),
    point("bad", 0.01, -3.0),
]


@pytest.fixture(scope="module")
def given() -> Input:
    classifier = piste.load("piste:reviews")
    return Input(classifier, TEXT, Trial.of(classifier.subject(TEXT)))


def row(method: str, number: int, **more: Any) -> dict[str, Any]:
    family, way, budget = method.split(", ")
    made = {"model": "m", "group": "short", "input": number, "method": method, "units": 9}
    made |= {"family": family, "way": way, "budget": int(budget), "clock": 1.0, "processor": 1.0}
    return made | dict.fromkeys(METRICS, 0.5) | more


def test_the_frontier_holds_who_nobody_quicker_equals():
    assert [one.seconds for one in frontier(CURVES, "r2 all")] == [0.01, 0.1, 0.2, 1.0]


def test_a_peer_leads_only_before_piste_begins_here():
    (lead,) = leads(CURVES, "r2 all")
    assert (lead.family, lead.start, lead.end) == ("LIME", 0.1, 0.2)
    assert lead.first == pytest.approx(0.3)  # a constant is as good as Piste that is not there yet


def test_a_peer_that_is_better_in_the_end_leads_from_there_on():
    (*_, last) = leads([*CURVES, point("SPEX", 3.0, 0.95)], "r2 all")
    assert (last.family, last.start, last.end) == ("SPEX", 3.0, math.inf)


def test_the_ratio_is_of_the_quickest_that_are_as_good_as_any_peer():
    best = ratio([*CURVES, point("LIME", 1.5, 0.79), point("SPEX", 2.5, 0.80)], "r2 all")
    assert best is not None
    assert (best.peer.family, best.reached, best.times) == ("LIME", 0.8, 1.5)


def test_what_piste_does_not_reach_has_no_ratio():
    best = ratio([*CURVES, point("SPEX", 3.0, 0.95)], "r2 all")
    assert best is not None
    assert math.isinf(best.ours)
    assert ratio([point(OURS, 1.0, 0.5), point("LIME", 1.0, -0.5)], "r2 all") is None


def test_only_those_measured_on_all_inputs_are_compared():
    rows = [row("LIME, engine, 60", 0, clock=1.0), row("LIME, engine, 60", 1, clock=1.1)]
    rows += [row("SPEX, engine, 60", 0), row("SPEX, engine, 60", 1, refused="no")]
    found = points(rows, METRICS)
    assert {(one.family, one.inputs) for one in found} == {("LIME", 2), ("SPEX", 1)}
    (whole,) = complete(found)
    assert (whole.family, whole.seconds) == ("LIME", pytest.approx(1.05))


def test_the_processor_counts_where_something_else_ran():
    assert seconds({"clock": 1.0, "processor": 0.85}) == 1.0
    assert seconds({"clock": 1.0, "processor": 0.5}) == 0.5
    assert seconds({"clock": 1.0, "processor": 1.5}) == 1.5


@pytest.mark.parametrize("name", ["Piste, engine, 30", "AttnLRP, engine, default"])
def test_a_contender_is_timed_and_judged(given, name):
    (one,) = [one for one in contenders(given.classifier) if one.name == name]
    found = timed(one, given)
    assert set(METRICS) < set(found)
    assert found["clock"] > 0
    assert found["deletion p"] > 0.05


def test_names_of_contenders_are_their_own(given):
    names = [one.name for one in contenders(given.classifier)]
    assert len(names) == len(set(names))
    black_box = [one.way for one in contenders(piste.load(lambda texts: [0.0] * len(texts)))]
    assert set(black_box) == {"engine"}


@pytest.mark.parametrize("method", ["lime", "kernel_shap"])
def test_libraries_predict_the_whole_text_and_rank(given, method):
    answer = getattr(given.libraries, method)(120)
    whole = np.ones((1, len(given.trial.subject)), dtype=bool)
    assert answer.predict(whole)[0] == pytest.approx(given.trial.whole, abs=0.3)
    assert given.trial.subject.units[int(answer.ranking.argmax())].text == "wonderful"
    assert answer.calls > 20


@pytest.mark.parametrize("kind", ["KernelShap", "IntegratedGradients", "GradientXActivation"])
def test_captum_gives_every_unit_a_score(given, kind):
    answer = given.libraries.captum(50, kind)
    assert answer.ranking.shape == (len(given.trial.subject),)
    assert given.trial.subject.units[int(answer.ranking.argmax())].text == "wonderful"


def test_scores_of_pieces_go_to_the_units_they_cover(given):
    own = given.libraries
    found = own.by_place(
        ["[CLS]", "a slow ", "START", "wonder", "ful"], np.array([9.0, 2, 3, 4, 5])
    )
    by_text = {unit.text: score for unit, score in zip(own.subject.units, found, strict=True)}
    assert by_text["A"] == by_text["slow"] == 1.0
    assert (by_text["start"], by_text["wonderful"], by_text["ending"]) == (3.0, 9.0, 0.0)


def test_odds_of_every_class_are_those_of_the_target(given):
    import torch

    logits = torch.tensor([[0.1, 1.0, -2.0]])
    odds = Libraries._odds_of_every_class(logits)
    assert odds[0, 1] == pytest.approx(1.0 - float(np.log(np.exp(0.1) + np.exp(-2.0))))


def test_a_larger_budget_is_expected_to_take_longer():
    everyone = [Contender("LIME", "engine", size, lambda _: None) for size in (60, 250)]
    rows = {"LIME, engine, 60": {"clock": 9.0, "processor": 6.0}}
    assert _expected(everyone[1], everyone, rows) == pytest.approx(25.0)
    assert _expected(everyone[0], everyone, rows) == 0.0


def test_a_failure_is_a_row(given):
    def fail(_: Input) -> Any:
        raise ValueError("no such thing")

    found = timed(Contender("LIME", "engine", 60, fail), given)
    assert found == {"refused": "ValueError: no such thing"}


def test_page_and_figures(tmp_path):
    rows = [
        row(f"{family}, engine, {budget}", 0, clock=spent, processor=spent, **{"r2 all": r2})
        for family, budget, spent, r2 in [("Piste", 60, 0.5, 0.7), ("LIME", 60, 2.0, 0.6)]
    ]
    text = write(rows, ["m", "absent"], tmp_path)
    assert "| m | 1 | 9 | LIME (60) | 0.60 | 2 | 0.5 | 4.0 | 0.70 | 0.5 | nowhere |" in text
    assert (tmp_path / "frontier.md").read_text(encoding="utf-8") == text
    assert {path.name for path in tmp_path.glob("*.png")} == {"frontier.png", "frontier-m.png"}


def test_results_go_on_where_they_stopped(tmp_path):
    file = tmp_path / "rows.jsonl"
    Results(file).add(row("LIME, engine, 60", 3))
    again = Results(file)
    assert again.has(model="m", group="short", input=3, method="LIME, engine, 60")
    assert not again.has(model="m", group="short", input=4, method="LIME, engine, 60")
