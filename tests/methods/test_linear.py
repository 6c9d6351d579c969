"""Ridge regression against leaving each row out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from piste.methods.linear import ridge_regression


def test_ridge_regression_agrees_with_leaving_each_row_out() -> None:
    rng = np.random.default_rng(0)
    rows = (rng.random((40, 12)) < 0.5).astype(float)
    numbers = rows @ rng.normal(size=12) + rng.normal(size=40)
    weights, base, ridge = ridge_regression(rows, numbers)

    def fitted(keep: Any, penalty: float) -> Any:
        x, y = rows[keep], numbers[keep]
        centre = x.mean(axis=0)
        x = x - centre
        found = np.linalg.solve(x.T @ x + penalty * np.eye(12), x.T @ (y - y.mean()))
        return found, y.mean() - centre @ found

    own, intercept = fitted(slice(None), ridge)
    np.testing.assert_allclose(weights, own)
    assert base == pytest.approx(intercept)

    def left_out(penalty: float) -> float:
        errors = []
        for row in range(40):
            found, level = fitted(np.arange(40) != row, penalty)
            errors.append(numbers[row] - level - rows[row] @ found)
        return float(np.mean(np.square(errors)))

    assert left_out(ridge) <= min(left_out(ridge / 20), left_out(ridge * 20))
