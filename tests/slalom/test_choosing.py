"""Questions that say most: about what is least certain, and never twice about the same."""

from __future__ import annotations

import numpy as np

from piste.slalom import fit
from piste.slalom.choosing import most_uncertain
from tests.slalom.test_fitting import questions, truth


def test_what_was_hardly_asked_about_comes_first() -> None:
    counts = questions(12, 120)
    rare = counts[:, 3] > 0
    counts = counts[~rare]
    counts[-1, 3] = 1  # one question among many others is all there is about the fourth type
    noise = 0.05 * np.random.default_rng(0).normal(size=len(counts))
    found = fit(counts, truth("additive", 12).predict(counts) + noise)
    assert found.posterior is not None
    candidates = questions(12, 100, seed=9)[12:]
    chosen = most_uncertain(found.posterior, candidates, 5)
    assert candidates[chosen[0], 3] == 1
    assert len(set(chosen.tolist())) == 5


def test_an_answer_makes_its_like_less_urgent() -> None:
    counts = questions(10, 60)
    found = fit(counts, truth("additive", 10).predict(counts) + 0.1 * np.cos(np.arange(60)))
    assert found.posterior is not None
    twins = np.repeat(np.eye(10), 2, axis=0)
    first, second = most_uncertain(found.posterior, twins, 2)
    assert first // 2 != second // 2


def test_no_more_than_there_are() -> None:
    counts = questions(5, 30)
    found = fit(counts, truth("softmax", 5).predict(counts))
    assert found.posterior is not None
    assert sorted(most_uncertain(found.posterior, counts[:3], 9)) == [0, 1, 2]
