"""Intervals: against scipy, paired, deterministic, honest about one example."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import bootstrap

from piste import PisteError
from piste.evaluation import Figure, Results, Row, differences, interval, summary
from piste.evaluation import bootstrap as home
from piste.evaluation.bootstrap import difference


def test_against_scipy() -> None:
    values = np.random.default_rng(3).exponential(size=40)
    found = interval(values, draws=20_000)
    expected = bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", random_state=5
    ).confidence_interval
    assert found.centre == pytest.approx(values.mean())
    assert found.examples == 40
    assert found.low == pytest.approx(expected.low, abs=0.01)
    assert found.high == pytest.approx(expected.high, abs=0.01)
    narrow = interval(values, level=0.5)
    assert found.low < narrow.low < narrow.centre < narrow.high < found.high


def test_it_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    found = [interval(rng.normal(size=50), draws=400, seed=k) for k in range(300)]
    assert 0.9 <= np.mean([one.low <= 0 <= one.high for one in found]) <= 0.98


def test_same_seed_same_interval_in_any_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).normal(size=30)
    first = interval(values)
    assert interval(values) == first
    assert interval(values, seed=1) != first
    monkeypatch.setattr(home, "_CHUNK", 100)
    assert interval(values) == first


def test_one_example_and_none() -> None:
    one = interval([0.5])
    assert (one.centre, one.examples) == (0.5, 1)
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    none = interval([])
    assert none.examples == 0
    assert math.isnan(none.centre)
    assert interval([1.0, math.nan, 3.0]).centre == 2.0


@pytest.mark.parametrize("options", [{"level": 1.0}, {"level": 0.0}, {"draws": 0}])
def test_wrong_options(options: dict[str, Any]) -> None:
    with pytest.raises(PisteError):
        interval([1.0, 2.0], **options)


def made_results() -> Results:
    rng = np.random.default_rng(2)
    ease = rng.normal(scale=10, size=20)  # examples differ far more than methods do
    rows = []
    for number in range(20):
        for method, better in (("good", 1.0), ("base", 0.0), ("same", 0.0)):
            noise = rng.normal(scale=0.3)
            missing = method == "good" and number == 7
            figure = math.nan if missing else ease[number] + better + noise
            rows.append(Row(str(number), method, {"aopc": figure, "empty": math.nan}))
    rows.append(Row("20", "good", {}, problem="refused"))
    figures = {name: Figure(name, "higher", name, "", "") for name in ("aopc", "empty")}
    return Results(tuple(rows), figures, ("good", "base", "same"), {})


def test_differences_are_paired() -> None:
    results = made_results()
    found = {one.method: one for one in differences(results, "aopc", "base")}
    assert set(found) == {"good", "same"}
    good, base = results.values("good", "aopc"), results.values("base", "aopc")
    common = [good[example] - base[example] for example in good]
    assert found["good"].interval.examples == 19
    assert found["good"].interval.centre == pytest.approx(np.mean(common))
    assert found["good"].other == "base"
    assert found["good"].clear
    assert not found["same"].clear
    # unpaired, the same difference would drown
    wide = summary(results)["good", "aopc"]
    assert wide.high - wide.low > 10 * (found["good"].interval.high - found["good"].interval.low)


def test_difference_of_no_common_examples() -> None:
    assert difference({"a": 1.0}, {"b": 2.0}).examples == 0


def test_summary_leaves_out_what_has_no_number() -> None:
    found = summary(made_results())
    assert set(found) == {("good", "aopc"), ("base", "aopc"), ("same", "aopc")}
    assert found["base", "aopc"].examples == 20


def test_unknown_names() -> None:
    with pytest.raises(PisteError, match="aopc, empty"):
        differences(made_results(), "auc", "base")
    with pytest.raises(PisteError, match="good, base"):
        differences(made_results(), "aopc", "lime")
