"""Targets: the number that is explained."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

import piste
from piste import PisteError
from piste.target import resolve

LOGITS = np.array([[1.0, 2.0, -0.5], [0.0, 0.1, 3.0]])
LABELS = ("no", "yes", "maybe")


def numbers(choice: object, kind: str = "classes") -> np.ndarray:
    return resolve(choice, LOGITS[0], LABELS, kind)(LOGITS)  # type: ignore[arg-type]


def test_log_odds_of_a_class_against_the_rest() -> None:
    probabilities = np.exp(LOGITS - logsumexp(LOGITS, axis=1, keepdims=True))
    expected = np.log(probabilities[:, 1] / (1 - probabilities[:, 1]))
    for choice in (None, 1, "yes", "YES", "1", np.int64(1)):
        np.testing.assert_allclose(numbers(choice), expected)
    two = resolve(None, LOGITS[0, :2], LABELS[:2], "classes")(LOGITS[:, :2])
    np.testing.assert_allclose(two, LOGITS[:, 1] - LOGITS[:, 0])


def test_other_targets() -> None:
    np.testing.assert_allclose(numbers(("yes", "no")), LOGITS[:, 1] - LOGITS[:, 0])
    np.testing.assert_allclose(numbers("yes vs no"), LOGITS[:, 1] - LOGITS[:, 0])
    np.testing.assert_allclose(numbers("maybe", "labels"), LOGITS[:, 2])
    np.testing.assert_allclose(numbers(None, "regression"), LOGITS[:, 0])
    np.testing.assert_allclose(numbers("all").sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(numbers(lambda logits: logits[:, 0] ** 2), LOGITS[:, 0] ** 2)


@pytest.mark.parametrize("choice", ["never", "²", "--5", 3, -1, 1.5, ("no", "no"), ("no",), True])
def test_classes_that_are_not_there(choice: object) -> None:
    with pytest.raises(PisteError):
        resolve(choice, LOGITS[0], ("only",) if choice is True else LABELS, "classes")  # type: ignore[arg-type]


def test_functions_are_checked() -> None:
    with pytest.raises(PisteError, match="one number per row"):
        numbers(lambda logits: logits)
    with pytest.raises(PisteError, match="NaN"):
        numbers(lambda logits: logits[:, 0] * np.nan)
    with pytest.raises(PisteError, match="exclusive"):
        numbers("all", "labels")


def test_a_margin_through_the_whole_house(bert) -> None:
    e = piste.explain(bert, "The film is good.", target=(0, 2), samples=40)
    assert e.output.value == pytest.approx(e.output.logits[0] - e.output.logits[2])
    assert "margin" in e.target.name
