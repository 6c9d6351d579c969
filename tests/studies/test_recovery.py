"""The rule is a SLALOM, and parameters are compared as they are defined: up to a shift."""

from __future__ import annotations

import numpy as np
import pytest

from piste.slalom import Slalom
from studies.recovery import draw_slalom, lesson, off, rule_of
from studies.synthetic import draw_texts


def test_the_rule_is_the_slalom_of_its_words() -> None:
    truth = draw_slalom(7, np.random.default_rng(1))
    rule = rule_of(truth, 9)
    drawn, texts = draw_texts(300, np.random.default_rng(2), rule)
    np.testing.assert_allclose(rule.truth(drawn), truth.predict(rule.counts(drawn)))
    assert {len(text.split()) for text in texts} == set(range(1, 10))
    batch = np.random.default_rng(3).integers(0, 7, (5, 4))
    np.testing.assert_allclose(rule.log_odds(batch), rule.truth(list(batch)))


def test_importances_go_with_the_size_of_values() -> None:
    truth = draw_slalom(2000, np.random.default_rng(0))
    assert np.corrcoef(np.abs(truth.values), truth.importances)[0, 1] > 0.8
    assert abs(np.corrcoef(truth.values, truth.importances)[0, 1]) < 0.1


def test_a_shift_of_importances_is_no_error_but_other_changes_are() -> None:
    truth = Slalom(np.array([1.0, -1.0, 0.5]), np.array([0.5, -1.0, 0.5]))
    values, importances = off(truth.values, truth.importances + 3, truth)
    np.testing.assert_allclose([values, importances], 0, atol=1e-30)
    values, importances = off(truth.values + 2, truth.importances + np.array([3, 0, 0]), truth)
    np.testing.assert_allclose(values, 4)
    np.testing.assert_allclose(importances, [4, 1, 1])


@pytest.mark.parametrize("quick", [True, False])
def test_everyone_learns_the_same(quick: bool) -> None:
    (first, rule), (second, again) = lesson(quick), lesson(quick)
    np.testing.assert_array_equal(first.values, second.values)
    assert rule.name == again.name
