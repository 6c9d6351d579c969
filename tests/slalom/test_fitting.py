"""The solver: exact recovery of every form, coverage under noise, classes, size, bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from piste import PisteError
from piste.slalom import Slalom, family, fit, fitting
from piste.slalom.family import Form, Point, Questions
from piste.slalom.fitting import fit_with_prior
from piste.slalom.scores import shapley
from piste.slalom.solver import solve
from piste.slalom.surrogate import Noise, Parameters, Saturation, log_sizes
from piste.surrogates import Mixing


def questions(types: int, count: int, seed: int = 0) -> np.ndarray:
    """Every type alone, and sets of sizes that are even on a log scale."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((count, types))
    counts[:types] = np.eye(types)
    for row in counts[types:]:
        size = int(np.exp(rng.uniform(np.log(2), np.log(types))))
        row[rng.choice(types, size, replace=False)] = 1
    return counts


def truth(kind: str, types: int, seed: int = 0) -> Slalom:
    rng = np.random.default_rng(seed)
    s = rng.normal(size=types)
    s -= s.mean()
    if kind == "softmax":
        return Slalom(rng.normal(size=types), s)
    evidence = 0.4 * rng.normal(size=types)
    if kind == "additive":
        return Slalom(evidence, np.zeros(types), 0.0, 0.3)
    if kind == "tanh":
        return Slalom(evidence, np.zeros(types), 0.0, 0.3, link=Saturation(0.1, 1.5))
    return Slalom(2 * evidence, s, 0.5, 0.3, link=Saturation(0.0, 2.0))


@pytest.mark.parametrize(
    ("kind", "mixing", "form"),
    [
        ("softmax", 1.0, "softmax"),
        ("additive", 0.0, "additive"),
        ("tanh", 0.0, "additive, saturation"),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_exact_functions_are_recovered_with_their_form(
    kind: str, mixing: float, form: str, seed: int
) -> None:
    real = truth(kind, 30, seed)
    counts = questions(30, 240, seed)
    found = fit(counts, real.predict(counts))
    assert found.slalom.mixing == mixing
    assert found.form.name == form
    np.testing.assert_allclose(found.slalom.values, real.values, atol=1e-4)
    other = questions(30, 300, 7)
    np.testing.assert_allclose(found.predict(other), real.predict(other), atol=1e-4)
    if kind == "softmax":
        np.testing.assert_allclose(found.slalom.importances, real.importances, atol=1e-4)


def test_answers_have_bounds_unless_they_say_otherwise() -> None:
    """A straight form carries few answers to short questions on to numbers nobody gave."""
    counts = questions(10, 60)
    noise = np.random.default_rng(3).normal(size=60)
    asked, outputs = Questions(counts), noise[:, None]
    bounded = replace(solve(asked, outputs, Form(0.0, True), roughly=True), log_evidence=-42.0)
    straight = solve(asked, outputs, Form(0.0), roughly=True)
    for evidence, wanted in ((-40.0, True), (-38.0, False)):
        found = [replace(straight, log_evidence=evidence), bounded]
        assert fitting._preferred(found, 0.0).layout.form.saturation is wanted


def test_a_mixing_between_the_ends_is_found() -> None:
    real = truth("mixed", 40)
    counts = questions(40, 400)
    noise = 0.05 * np.random.default_rng(3).normal(size=400)
    found = fit(counts, real.predict(counts) + noise)
    assert found.form == Form(None, saturation=True)
    assert abs(found.slalom.mixing - 0.5) < 3 * found.mixing_error < 0.1


@pytest.mark.parametrize(("kind", "mixing"), [("softmax", 1.0), ("mixed", 0.5), ("tanh", 0.0)])
def test_few_answers_are_fitted_half_way_unless_all_speaks_for_an_end(
    kind: str, mixing: float
) -> None:
    """No mixing is learned from them, so none is claimed."""
    real, counts = truth(kind, 60), questions(60, 120)
    few = np.r_[counts[:35], counts[60:110]]  # some types alone, and sets
    found = fit(few, real.predict(few) + 0.05 * np.random.default_rng(3).normal(size=len(few)))
    assert found.form == Form(mixing, saturation=True)
    names = ["mixing 0.5, saturation", "additive, saturation", "softmax, saturation"]
    assert [name for name, _ in found.compared] == names
    assert found.mixing_error == (0.3 if mixing == 0.5 else 0.0)
    assert Mixing(mixing, found.mixing_error).told is (mixing == 1.0)
    assert fit(few, real.predict(few), form=Form(0.5)).mixing_error == 0.0  # it was asked for


def test_few_exact_answers_add_up() -> None:
    real, counts = truth("additive", 30), questions(30, 40)
    assert fit(counts, real.predict(counts)).form == Form(0.0)
    assert fit([[1.0]], [2.0]).form.mixing == 0.0
    # Fewer answers than types are met exactly by any form.
    found = fit(counts[25:36], truth("mixed", 30).predict(counts[25:36]))
    assert found.form == Form(0.5)


@pytest.mark.parametrize("answers", [56, 200])
def test_forms_of_large_problems_are_compared_on_one_scale(
    answers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A weighted form is large before an additive one is."""
    real, counts = truth("tanh", 40), questions(40, answers)
    outputs = real.predict(counts) + 0.05 * np.random.default_rng(3).normal(size=answers)
    wanted = fit(counts, outputs).form
    assert wanted == Form(0.0, saturation=True)
    monkeypatch.setattr(family, "MOST_DENSE", 60)
    found = fit(counts, outputs)
    assert found.form == wanted
    additive = fit(counts, outputs, form="additive").posterior
    assert additive is not None
    assert np.isfinite(additive.log_evidence)  # but those of the others are not
    left_out = -0.5 * answers * np.log((additive.left_out**2).mean())
    assert fitting._evidence(additive) == pytest.approx(left_out)


@pytest.mark.parametrize("kind", ["tanh", "mixed"])
def test_what_is_left_out_is_judged_as_if_it_had_not_been_asked(kind: str) -> None:
    """With a prior, by which documents of a corpus are fitted."""
    rng = np.random.default_rng(4)
    real, counts = truth(kind, 40), questions(40, 400)
    usual = fit(counts, real.predict(counts), form="additive" if kind == "tanh" else "mixed")
    assert usual.posterior is not None
    mean = usual.posterior.theta + 0.3 * rng.normal(size=len(usual.posterior.theta))
    prior, few = (mean, np.full(len(mean), 0.3)), counts[60:120]
    numbers = real.predict(few) + 0.1 * rng.normal(size=len(few))
    noise = Noise(np.array([0.01]))
    found = fit_with_prior(few, numbers, usual.form, prior, noise)
    without = []
    for row in range(20):
        others = np.arange(len(few)) != row
        one = fit_with_prior(few[others], numbers[others], usual.form, prior, noise)
        without.append(numbers[row] - one.predict(few[[row]])[0])
    fitted = numbers - found.predict(few)
    missed = np.std(without)
    assert np.std(fitted[:20]) < 0.8 * missed
    assert np.std(found.left_out[:20] - without) < 0.2 * missed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["softmax", "additive", "tanh", "mixed"])
def test_intervals_cover_what_they_say(kind: str) -> None:
    inside = []
    for seed in range(12):
        real, counts = truth(kind, 30, seed), questions(30, 240, seed)
        noise = 0.1 * np.random.default_rng(100 + seed).normal(size=240)
        found = fit(counts, real.predict(counts) + noise)
        assert found.posterior is not None
        alone = Questions(np.eye(30))
        jacobian = Point(alone, found.posterior.layout, found.posterior.theta).jacobian()
        error = np.linalg.norm(jacobian @ found.posterior.factor, axis=1)
        inside.append(np.abs(found.slalom.values - real.values) < 1.96 * error)
    assert 0.92 <= np.mean(inside) <= 0.98


def test_the_papers_form_is_a_softmax_and_nothing_else() -> None:
    counts = questions(20, 150)
    found = fit(counts, truth("tanh", 20).predict(counts), form="paper")
    assert (found.slalom.mixing, found.slalom.link, found.slalom.background) == (1.0, None, None)


def test_gradient_descent_comes_near() -> None:
    real, counts = truth("softmax", 10), questions(10, 300)
    found = fit(counts, real.predict(counts), solver="sgd", epochs=400)
    assert found.posterior is None
    assert found.loss < 0.01


@pytest.mark.parametrize("classes", [3, 9])
def test_classes_share_their_weights(classes: int) -> None:
    rng = np.random.default_rng(0)
    values, s = rng.normal(size=(25, classes)), rng.normal(size=25)
    values -= values.mean(axis=1, keepdims=True)
    real = Slalom(values, s - s.mean(), base=np.zeros(classes))
    counts = questions(25, 220)
    found = fit(counts, real.predict(counts))
    assert found.slalom.mixing == 1.0
    np.testing.assert_allclose(found.slalom.values, real.values, atol=1e-4)
    np.testing.assert_allclose(found.slalom.importances, real.importances, atol=1e-4)


def test_copies_and_types_that_were_not_asked_about() -> None:
    real = truth("softmax", 12)
    counts = np.hstack([questions(12, 120) * 2, np.zeros((120, 1))])
    found = fit(counts, real.predict(counts[:, :12]))
    assert found.active.tolist() == [True] * 12 + [False]
    np.testing.assert_allclose(found.slalom.values[:12], real.values, atol=1e-4)
    assert found.slalom.evidence[12] == 0


def test_large_problems_are_solved_by_products(monkeypatch: pytest.MonkeyPatch) -> None:
    real, counts = truth("mixed", 40), questions(40, 300)
    outputs = real.predict(counts) + 0.05 * np.random.default_rng(0).normal(size=300)
    form = Form(0.5, saturation=True)
    dense = solve(Questions(counts), outputs[:, None], form)
    monkeypatch.setattr(family, "MOST_DENSE", 0)
    sparse = solve(Questions(counts), outputs[:, None], form)
    other = questions(40, 200, 5)
    expected, found = (one.layout.slalom(one.theta, True).predict(other) for one in (dense, sparse))
    np.testing.assert_allclose(found, expected, atol=0.05)
    errors = [np.linalg.norm(one.factor, axis=1)[:80] for one in (dense, sparse)]
    assert np.median(errors[1] / errors[0]) == pytest.approx(1.0, abs=0.25)


def test_a_prior_is_kept_where_nothing_is_asked() -> None:
    real = truth("softmax", 10)
    layout = family.Layout(10, 1, Form(1.0))
    mean = np.zeros(layout.size)
    mean[layout.importances], mean[layout.evidence] = real.importances, real.evidence
    few = questions(10, 12)[10:]
    found = solve(
        Questions(few), real.predict(few)[:, None], Form(1.0), prior=(mean, np.full(len(mean), 0.3))
    )
    np.testing.assert_allclose(found.theta, mean, atol=1e-6)


@pytest.mark.parametrize("outputs", [[2.0], [2.0, 2.0, 2.0]])
def test_few_and_equal_answers_are_no_problem(outputs: list[float]) -> None:
    found = fit(np.eye(3)[: len(outputs)], outputs)
    np.testing.assert_allclose(found.predict(np.eye(3)[: len(outputs)]), outputs, atol=1e-6)
    assert np.isfinite(found.slalom.evidence).all()


@pytest.mark.parametrize(
    ("counts", "outputs", "options", "words"),
    [
        ([[1, 0]], [1.0, 2.0], {}, "shapes"),
        ([[1, -1]], [1.0], {}, "not negative"),
        ([[1, 1]], [np.nan], {}, "finite"),
        (np.zeros((0, 2)), [], {}, "Nothing was asked"),
        ([[1, 1]], [1.0], {"form": "best"}, "form: expected one of auto"),
        ([[1, 1]], [1.0], {"solver": "magic"}, "newton"),
        ([[1, 1]], [1.0], {"ridge": 1}, "ridge"),
    ],
)
def test_bad_input(counts: object, outputs: object, options: dict[str, object], words: str) -> None:
    with pytest.raises(PisteError, match=words):
        fit(counts, outputs, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [0, 7])
def test_the_noise_belongs_to_the_fit(seed: int) -> None:
    """Its variances, at the slopes where the fit ended, are those of what it leaves.

    Most of these answers lie near a bound; slopes of earlier steps would be far off.
    """
    rng, types = np.random.default_rng(seed), 40
    counts = np.zeros((120, types))
    for row in counts:
        row[rng.choice(types, int(np.exp(rng.uniform(0, np.log(types)))), replace=False)] = 1
    real = Slalom(rng.normal(size=types), np.zeros(types), 0.0, 0.3, link=Saturation(0.0, 1.0))
    answers = real.predict(counts) + rng.normal(0, 0.05, 120)
    asked = Questions(counts)
    found = solve(asked, answers[:, None], Form(None, True))
    point = Point(asked, found.layout, found.theta)
    variances = found.noise.variances(log_sizes(asked.sizes), point.slope)
    ratio = float(((answers[:, None] - point.predicted) ** 2 / variances).mean())
    assert 0.3 < ratio < 1.2


@pytest.mark.parametrize("name", ["tanh", "mixed"])
def test_equal_units_have_the_shapley_values_of_units_of_their_own(name: str) -> None:
    slalom, players = truth(name, 6), np.array([0, 1, 2, 0, 3, 4, 5, 0, 1, 2, 3, 4, 5, 5])
    apart = replace(
        slalom, evidence=slalom.evidence[players], importances=slalom.importances[players]
    )
    shared, _ = shapley(Parameters.of(slalom), players)
    every, _ = shapley(Parameters.of(apart), np.arange(len(players)))
    for type_ in range(6):
        assert shared[type_] == pytest.approx(float(every[players == type_].mean()), abs=1e-9)
