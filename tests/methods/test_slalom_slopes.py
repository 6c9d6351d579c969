"""SLALOM with slopes, saturation, and budgets of questions and time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import piste
from piste import PisteError
from piste.show import reading
from piste.slalom import sampling

LONG = (
    "The film begins slowly, and for a while I thought it would be another dull story about a man "
    "and his dog. Then the music starts, the actors wake up, and what follows is a wonderful hour "
    "that I did not want to end. Even the awful jokes are forgiven."
)


def test_slopes_foretell_better_than_answers_alone(reviews: Any) -> None:
    e = piste.explain(reviews, LONG, samples=80)
    alone = piste.explain(reviews, LONG, samples=80, slopes=False)
    assert e.calls == alone.calls == 80
    assert e.settings["sampler"] == "subsets"
    assert alone.settings["sampler"] == "mix"
    assert e.settings["slopes"] == 80 - e.settings["held_out"] - 2  # the whole and nothing
    assert alone.settings["slopes"] == "not asked for"
    subject, rng = reviews.subject(LONG), np.random.default_rng(9)
    kept = [np.flatnonzero(rng.random(len(subject)) < share) for share in rng.uniform(0, 1, 100)]
    truth = e.target(subject.ask(kept))
    missed = [np.mean((truth - [one.predict(keep) for keep in kept]) ** 2) for one in (e, alone)]
    assert missed[0] < 0.5 * missed[1]
    again = piste.explain(reviews, LONG, samples=80)
    assert all(np.array_equal(e.scores[name], again.scores[name]) for name in e.scores)


def test_a_saturated_result_survives_storage_and_says_so(reviews: Any, tmp_path: Any) -> None:
    e = piste.explain(reviews, LONG, link=True)
    low, high = e.settings["saturation"]
    assert low < e.output.value < high
    back = piste.read(e.to_json(tmp_path / "e.json") and tmp_path / "e.json")
    assert back.predict([0, 3, 9]) == e.predict([0, 3, 9])
    assert back.fidelity == e.fidelity
    assert "stays between" in reading.how_to_read(e)
    whole, empty = e.predict(range(len(e))), e.predict([])
    assert e.scores["shapley"].sum() == pytest.approx(whole - empty, abs=1e-6)
    for unit in (0, 5):
        rest = [k for k in range(len(e)) if k != unit]
        assert e.scores["removal"][unit] == pytest.approx(whole - e.predict(rest), abs=1e-6)
    assert np.ptp([e.predict([k]) for k in range(len(e))]) <= high - low


def test_fidelity_comes_with_intervals(reviews: Any) -> None:
    e = piste.explain(reviews, LONG)
    low, high = e.fidelity.r2_range
    assert low <= e.fidelity.r2 <= high <= 1
    assert e.fidelity.mse_range[0] <= e.fidelity.mse <= e.fidelity.mse_range[1]
    assert "off by" in reading.trust(e)


def test_rounds_end_by_number_by_time_or_when_settled(reviews: Any) -> None:
    capped = piste.explain(reviews, LONG, samples=100, seconds=1000.0)
    assert capped.calls <= 100
    assert "cap" in capped.settings["stopped"] or "settled" in capped.settings["stopped"]
    hurried = piste.explain(reviews, LONG, seconds=1e-3)
    assert "longer than" in hurried.settings["stopped"]
    assert hurried.calls < capped.calls
    settled = piste.explain(reviews, LONG, samples="auto", max_samples=2000)
    assert "settled" in settled.settings["stopped"]
    assert settled.calls < 2000
    for wrong in (0, -1.0, float("inf"), "soon"):
        with pytest.raises(PisteError, match="seconds"):
            piste.explain(reviews, LONG, seconds=wrong)
    with pytest.raises(PisteError, match="link"):
        piste.explain(reviews, LONG, link="maybe")
    with pytest.raises(PisteError, match="newton"):
        piste.explain(reviews, LONG, solver="sgd", slopes=True)


def test_without_slopes_and_link_it_is_the_papers_model(reviews: Any) -> None:
    e = piste.explain(reviews, LONG, slopes=False, link=False, background=False, samples=200)
    v, weights = e.scores["value"], np.exp(e.scores["importance"])
    assert e.surrogate.link is None
    assert e.surrogate.weight == 0
    keep = [0, 4, 7, 20]
    expected = (weights[keep] @ v[keep]) / weights[keep].sum()
    assert e.predict(keep) == pytest.approx(expected)


def test_all_classes_are_explained_without_slopes(reviews: Any) -> None:
    e = piste.explain(reviews, LONG, target="all", samples=200)
    assert "every class" in e.settings["slopes"]
    assert e.surrogate.link is None


def test_questions_on_the_way_leave_out_the_strongest() -> None:
    scores, seen = np.linspace(-1, 1, 40), set()
    drawn = sampling.draw_on_the_way(scores, 30, np.random.default_rng(0), seen, np.arange(40))
    assert len({tuple(q) for q in drawn}) == 30 == len(seen)
    sizes = [40 - len(q) for q in drawn]
    assert min(sizes) == 1
    assert 12 < max(sizes) <= 24
    for turn, question in enumerate(drawn):
        gone = scores[np.setdiff1d(np.arange(40), question)]
        assert abs(gone.mean()) > 0.2, turn  # one end of the ranking, not both
