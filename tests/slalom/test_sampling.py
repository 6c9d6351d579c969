"""Samplers: the right sizes, no repeats, even attention to all units."""

from __future__ import annotations

import numpy as np
import pytest

from piste.slalom.sampling import SAMPLERS, alone, draw


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 60, 400])
def test_questions_are_new_sorted_and_valid(sampler: str, n: int) -> None:
    seen: set[bytes] = set()
    first = draw(sampler, n, 100, np.random.default_rng(0), seen)
    more = draw(sampler, n, 100, np.random.default_rng(1), seen)
    keys = [tuple(question) for question in first + more]
    assert len(set(keys)) == len(keys)
    for question in first:
        assert list(question) == sorted(set(question))
        assert len(question) == 0 or (question.min() >= 0 and question.max() < n)
    if n >= 60:
        assert len(first) == 100


def test_sizes() -> None:
    rng = np.random.default_rng(0)
    sizes = {name: [len(q) for q in draw(name, 100, 400, rng)] for name in SAMPLERS}
    assert max(sizes["short"]) <= 3
    assert min(sizes["deletion"]) >= 95
    assert np.histogram(sizes["subsets"], bins=5, range=(0, 100))[0].min() > 60
    assert min(sizes["mix"]) <= 3 < 50 < max(sizes["mix"])
    assert min(sizes["log"]) == 2
    assert max(sizes["log"]) > 90
    assert np.histogram(np.log(sizes["log"]), bins=4)[0].min() > 70
    short = [len(q) for q in draw("log", 100, 400, rng, largest=0.25)]
    assert (min(short), max(short)) == (2, 25)
    assert np.histogram(np.log(short), bins=3)[0].min() > 90


@pytest.mark.parametrize("sampler", ["short", "subsets", "mix"])
def test_units_come_up_equally_often(sampler: str) -> None:
    counts = np.bincount(np.concatenate(draw(sampler, 50, 400, np.random.default_rng(0))))
    assert counts.min() > 0.75 * counts.mean()


def test_few_units_are_exhausted_not_repeated() -> None:
    assert len(draw("subsets", 4, 1000, np.random.default_rng(0))) == 14


def test_every_type_is_asked_alone_or_a_fair_sample() -> None:
    types = np.array([0, 1, 0, 2, 3])
    rng = np.random.default_rng(0)
    assert [q.tolist() for q in alone(types, 9, rng)] == [[0], [1], [3], [4]]
    drawn = np.concatenate([np.concatenate(alone(np.arange(20), 5, rng)) for _ in range(200)])
    assert np.bincount(drawn, minlength=20).min() > 25
