"""The family's Jacobian against finite differences, for every form, as a table and sparse."""

from __future__ import annotations

import numpy as np
import pytest

from piste.slalom import Background, Slalom, family
from piste.slalom.family import Form, Layout, Point, Questions
from piste.slalom.surrogate import Saturation

FORMS = [
    (Form(1.0), 1, False),
    (Form(0.0, saturation=True), 1, False),
    (Form(0.0, saturation=True), 1, True),
    (Form(None, saturation=True), 1, False),
    (Form(None, saturation=True, background=True), 1, True),
    (Form(1.0), 3, False),
    (Form(None, background=True), 2, False),
]


def drawn(form: Form, outputs: int, guided: bool) -> tuple[Questions, Layout, np.ndarray]:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 3, (30, 8)) * (rng.random((30, 8)) < 0.5)
    counts[0] = 0  # nothing at all
    layout = Layout(8, outputs, form, guide=rng.normal(size=8) if guided else None)
    theta = 0.6 * rng.normal(size=layout.size)
    if layout.mixing is not None:
        theta[layout.mixing] = 0.4
    return Questions(counts), layout, theta


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(("form", "outputs", "guided"), FORMS)
def test_the_jacobian_is_exact(
    form: Form, outputs: int, guided: bool, dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not dense:
        monkeypatch.setattr(family, "MOST_DENSE", 0)
    asked, layout, theta = drawn(form, outputs, guided)
    found = Point(asked, layout, theta).jacobian()
    found = found if dense else found.toarray()
    step = 1e-6
    for place in range(layout.size):
        ends = []
        for side in (1, -1):
            moved = theta.copy()
            moved[place] += side * step
            ends.append(Point(asked, layout, moved).predicted.T.ravel())
        np.testing.assert_allclose(found[:, place], (ends[0] - ends[1]) / (2 * step), atol=1e-8)


@pytest.mark.parametrize(("form", "outputs", "guided"), FORMS)
def test_a_surrogate_predicts_what_its_parameters_do(
    form: Form, outputs: int, guided: bool
) -> None:
    asked, layout, theta = drawn(form, outputs, guided)
    slalom = layout.slalom(theta, flat=outputs == 1)
    counts = np.zeros((asked.count, asked.types))
    counts[asked.row, asked.column] = asked.copies
    expected = Point(asked, layout, theta).predicted
    np.testing.assert_allclose(slalom.predict(counts).reshape(expected.shape), expected, atol=1e-12)
    assert slalom.importances.mean() == pytest.approx(0, abs=1e-12)


def test_the_ends_of_the_family() -> None:
    values, s = np.array([1.0, -2.0, 0.5]), np.array([0.3, -0.1, -0.2])
    counts = np.array([[1, 2, 0], [0, 1, 3]])
    weights = counts * np.exp(s)
    paper = (weights @ values) / weights.sum(axis=1)
    np.testing.assert_allclose(Slalom(values, s).predict(counts), paper)
    np.testing.assert_allclose(Slalom(values - 0.7, s, base=0.7).predict(counts), paper)
    np.testing.assert_allclose(Slalom(values, s, mixing=0.0).predict(counts), counts @ values)
    with_background = (weights @ values + np.exp(0.4) * 3.0) / (weights.sum(axis=1) + np.exp(0.4))
    there = Slalom(values, s, background=Background(0.4, 3.0))
    np.testing.assert_allclose(there.predict(counts), with_background)
    between = Slalom(np.array([1.0]), np.zeros(1), mixing=0.25, link=Saturation(0.0, 5.0))
    copies = 5 * np.tanh(np.array([1, 4, 9]) ** 0.75 / 5)
    np.testing.assert_allclose(between.predict([[1], [4], [9]]), copies)
