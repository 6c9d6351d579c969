"""What each copy of a word gets, of functions whose Shapley values are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studies.base import Work
from studies.shapley_failure import STUDY, attributions, by_counts, exponent, log_odds


@pytest.fixture
def work(tmp_path: Path):
    with Work.on(tmp_path, STUDY, quick=True, seed=0, progress=False) as own:
        yield own


def test_an_additive_rule_gives_every_copy_its_weight(work: Work) -> None:
    found = attributions(by_counts(log_odds), work)
    assert [len(shares) for shares in found.values()] == [int(k) for k in found]
    for shares in found.values():
        np.testing.assert_allclose(shares, 1.5, atol=1e-9)
    assert abs(exponent(found)) < 1e-9


def test_a_mean_gives_every_copy_a_share(work: Work) -> None:
    """What a transformer can hold: the mean of the weights, whatever the number of copies."""
    found = attributions(by_counts(lambda c: log_odds(c) / c.sum(axis=1, keepdims=True)), work)
    for k, shares in found.items():
        np.testing.assert_allclose(shares, 1.5 / int(k), atol=1e-9)
    assert abs(exponent(found) + 1) < 1e-9


def test_shares_that_change_sign_have_no_power() -> None:
    assert np.isnan(exponent({"1": [1.0], "2": [-0.5, -0.5]}))
