"""ContextCite held against its own recipe: a LASSO on standardised random removals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import piste
from piste import PisteError
from piste.methods import make
from piste.methods.contextcite import lasso

pytest.importorskip("sklearn")


def test_the_fit_is_a_pipeline_of_scaler_and_lasso() -> None:
    from sklearn.linear_model import Lasso
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    rows = (rng.random((64, 20)) < 0.5).astype(float)
    numbers = rows @ rng.normal(size=20) + rows[:, 0] * rows[:, 1]
    weights, base = lasso(rows, numbers, 0.01)
    theirs = make_pipeline(StandardScaler(), Lasso(alpha=0.01, random_state=0)).fit(rows, numbers)
    np.testing.assert_allclose(rows @ weights + base, theirs.predict(rows), atol=1e-9)


def test_64_removals_of_one_half_are_asked_unless_told_otherwise() -> None:
    kept: list[int] = []

    def answer(texts: list[str]) -> Any:
        kept.extend(len(text.split()) for text in texts)
        return [5.0 * text.count("x") for text in texts]

    text = " ".join(["x", *(f"w{k}" for k in range(29))])
    e = piste.explain(answer, text, method="contextcite")
    assert 70 <= e.calls <= 64 + 10 + 2  # held-out ones, the whole text and the empty one
    assert 8 <= np.median(kept) <= 22
    assert int(np.argmax(e.score())) == 0
    assert np.count_nonzero(e.score()) < 15  # sparse
    assert piste.explain(answer, text, method="contextcite", samples=200).calls <= 200


def test_a_penalty_must_be_a_number_above_zero() -> None:
    with pytest.raises(PisteError, match="alpha: expected a number above 0, got 0"):
        make("contextcite", {"alpha": 0})
