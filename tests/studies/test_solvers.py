"""Every solver on a SLALOM that is known."""

from __future__ import annotations

import numpy as np

from studies.recovery import draw_slalom, rule_of
from studies.solvers import SOLVERS, solve_all


def test_exact_answers_are_solved_exactly_but_not_by_sgd() -> None:
    truth = draw_slalom(5, np.random.default_rng(4))
    ask = rule_of(truth, 6).truth
    found = solve_all(ask, ask, truth, words=5, context=6, questions=200, seed=0)
    assert set(found) == set(SOLVERS)
    for solver in ("analytic", "Newton"):
        assert found[solver]["parameters"] < 1e-12
        assert found[solver]["log-odds"] < 1e-12
    assert found["SGD"]["parameters"] > 1e-4


def test_fewer_words_are_the_first_of_the_truth() -> None:
    truth = draw_slalom(8, np.random.default_rng(5))
    ask = rule_of(truth, 6).truth
    found = solve_all(ask, ask, truth, words=3, context=6, questions=100, seed=0)
    assert found["Newton"]["parameters"] < 1e-12


def test_a_fit_is_held_against_the_judge() -> None:
    truth = draw_slalom(4, np.random.default_rng(6))
    ask = rule_of(truth, 5).truth

    def judge(drawn: list[np.ndarray]) -> np.ndarray:
        return ask(drawn) + 2

    found = solve_all(ask, judge, truth, words=4, context=5, questions=100, seed=0)
    np.testing.assert_allclose(found["Newton"]["log-odds"], 4)
