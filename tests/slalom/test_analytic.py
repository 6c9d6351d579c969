"""The closed form: exact on a SLALOM, honest about its failures elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from piste import PisteError, slalom
from tests.conftest import ExactSlalom


@pytest.mark.parametrize("classes", [1, 4])
def test_exact_with_2n_minus_1_questions(classes: int) -> None:
    truth, asked = ExactSlalom(50, classes), []

    def ask(sequences):
        asked.extend(sequences)
        answers = np.array([truth.answer(sequence) for sequence in sequences])
        return answers[:, 0] if classes == 1 else answers

    found = slalom.fit_analytic(ask, 50)
    values = truth.values[:, 0] if classes == 1 else truth.values
    np.testing.assert_allclose(found.values, values, atol=1e-9)
    np.testing.assert_allclose(found.importances, truth.importances, atol=1e-6)
    assert found.calls == len(asked) == 99
    assert found.failed == found.undetermined == ()


def test_impossible_pairs_are_clipped_and_reported() -> None:
    values = {0: 1.0, 1: -1.0, 2: 0.2}

    def ask(sequences):  # pairs answer outside what any weights could give
        return np.array([values[q[0]] if len(q) == 1 else 5.0 for q in sequences])

    found = slalom.fit_analytic(ask, 3)
    assert set(found.failed) == {1, 2}
    assert np.isfinite(found.importances).all()


def test_a_constant_function_leaves_importances_open() -> None:
    found = slalom.fit_analytic(lambda sequences: np.full(len(sequences), 0.5), 4)
    assert len(found.undetermined) == 3
    assert (found.importances == 0).all()
    assert slalom.fit_analytic(lambda sequences: np.full(len(sequences), 0.5), 1).calls == 1


def test_bad_input() -> None:
    with pytest.raises(PisteError, match="at least one unit"):
        slalom.fit_analytic(lambda sequences: np.zeros(len(sequences)), 0)
    with pytest.raises(PisteError, match="finite"):
        slalom.fit_analytic(lambda sequences: np.full(len(sequences), np.nan), 2)
