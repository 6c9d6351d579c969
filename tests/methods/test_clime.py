"""C-LIME: removals of at most two units, every number of them with the same weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import piste
from piste import PisteError
from piste.methods import make
from piste.methods.clime import few_removed


@pytest.mark.parametrize(("units", "most", "count"), [(30, 2, 300), (5, 2, 50), (12, 3, 60)])
def test_sizes_weigh_the_same_and_come_in_equal_numbers(units: int, most: int, count: int) -> None:
    gone, weights = few_removed(units, most, count, np.random.default_rng(0))
    sizes = gone.sum(axis=1)
    assert len(np.unique(gone, axis=0)) == len(gone) <= count + 1
    assert sizes.max() <= most
    for size in range(most + 1):
        assert weights[sizes == size].sum() == pytest.approx(1.0)


def test_no_more_units_are_removed_than_said() -> None:
    shortest: list[int] = []

    def answer(texts: list[str]) -> Any:
        shortest.extend(len(text.split()) for text in texts)
        return [5.0 * text.count("x") for text in texts]

    text = " ".join(["x", *(f"w{k}" for k in range(19))])
    e = piste.explain(answer, text, method="clime", most_removed=1)
    assert e.score()[0] == pytest.approx(5.0)
    np.testing.assert_allclose(e.score()[1:], 0.0, atol=1e-9)
    # One for every unit, the empty text, and those held out, which are of all sizes.
    assert shortest.count(19) >= 20
    assert e.calls <= 20 + 2 + 25


def test_the_number_of_questions_grows_with_the_units() -> None:
    for units in (10, 40):
        text = " ".join(f"w{k}" for k in range(units))
        e = piste.explain(lambda texts: [len(t) for t in texts], text, method="clime")
        most = 10 * units
        assert min(most, units + units * (units - 1) // 2) <= e.calls <= most * 9 // 8 + 12


def test_at_least_one_unit_must_be_removable() -> None:
    with pytest.raises(PisteError, match="most_removed"):
        make("clime", {"most_removed": 0})
