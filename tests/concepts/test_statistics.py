"""Statistics against scipy and against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from piste.concepts.statistics import (
    against_half,
    as_random,
    corrected,
    range_of,
    two_way_interval,
    welch,
)


def test_they_are_scipys() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.uniform(size=20), rng.uniform(0.2, 1, size=50)
    assert welch(one, other) == pytest.approx(stats.ttest_ind(one, other, equal_var=False).pvalue)
    assert against_half(one) == pytest.approx(stats.ttest_1samp(one, 0.5).pvalue)
    chances = rng.uniform(size=12) ** 3
    assert corrected(chances, "bh") == pytest.approx(stats.false_discovery_control(chances))


def test_holm() -> None:
    """The example of Holm's procedure by hand: 4 · 0.01, 3 · 0.02, 2 · 0.03, 0.04, never less."""
    found = corrected([0.04, 0.01, 0.03, 0.02], "holm")
    assert found == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert corrected([0.9, 0.8], "holm").tolist() == [1.0, 1.0]
    assert corrected([], "holm").size == 0
    rng = np.random.default_rng(1)
    chances = rng.uniform(size=30)
    assert (corrected(chances, "holm") >= corrected(chances, "bh") - 1e-12).all()
    assert (corrected(chances, "bh") >= chances - 1e-12).all()


def test_scores_that_are_all_the_same() -> None:
    ones, halves = np.ones(9), np.full(9, 0.5)
    assert against_half(ones) == 0
    assert against_half(halves) == 1
    assert welch(ones, halves) == 0
    assert welch(ones, ones) == 1
    assert welch(ones, [0.2, 0.4, 0.9]) < 0.2
    assert as_random(1.0, ones) == 1
    assert as_random(2.0, ones) == 0
    assert as_random(0.0, ones, above=True) == 1


def test_one_more_draw_is_unremarkable_as_often_as_it_says() -> None:
    draws = np.random.default_rng(0).normal(3, 2, (4000, 21))
    chances = [as_random(float(row[0]), row[1:]) for row in draws]
    assert stats.kstest(chances, "uniform").pvalue > 0.01
    above = [as_random(float(row[0]), row[1:], above=True) for row in draws]
    assert np.mean(np.array(above) < 0.05) == pytest.approx(0.05, abs=0.015)


def test_many_random_values_do_not_make_a_usual_one_remarkable() -> None:
    """A test of means would: this is where it differs."""
    random = np.random.default_rng(0).normal(0, 1, 2000)
    fixed = np.full(2000, 0.3) + np.random.default_rng(1).normal(0, 0.01, 2000)
    assert welch(fixed, random) < 1e-10
    assert as_random(float(fixed.mean()), random) > 0.5


def test_intervals_cover_vectors_and_examples() -> None:
    rng = np.random.default_rng(0)
    chances = rng.uniform(size=(1, 40))
    hits = rng.uniform(size=(30, 40)) < chances  # examples differ, vectors do not
    low, high = two_way_interval(hits)
    assert low < hits.mean() < high
    assert high - low > 2 * 1.96 * hits.mean(axis=0).std() / np.sqrt(40) * 0.8
    assert range_of(np.linspace(0, 1, 101)) == pytest.approx((0.025, 0.975))
