"""The verdict follows the lower end of R² and the size of the error, and offers a next step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import piste
from piste.data.unit_tables import read
from piste.explanation import Explanation, Fidelity
from piste.show import wording
from piste.show.html import explanation_html
from piste.show.summary import Summary
from tests.show.test_summary import flat, printed, scored

NAN = float("nan")


def fidelity(r2: float, low: float, high: float, mse: float = 1.0, **more: Any) -> Fidelity:
    return Fidelity(r2, mse, 3, (low, high), (0.1, 2.0), **more)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (fidelity(0.95, 0.91, 0.98), "very good"),
        (fidelity(0.95, 0.8, 0.98), "good"),
        (fidelity(0.6, 0.45, 0.7), "poor"),
        (fidelity(0.85, -0.03, 0.96), "uncertain"),
        (fidelity(0.48, -0.29, 0.81), "uncertain"),
        (fidelity(0.8, 0.48, 0.9), "uncertain"),
        (fidelity(-0.3, -0.9, 0.1), "unusable"),
        (fidelity(-0.3, -0.9, 0.1, mse=0.04**2, negligible=0.1), "close"),
        (fidelity(-0.3, -0.9, 0.1, mse=0.04**2), "unusable"),  # of a regression: 0.04 may be much
        (fidelity(0.95, 0.91, 0.98, mse=0.01**2, negligible=0.1), "very good"),
        (fidelity(1.0, NAN, NAN, spread=0.0), "constant"),
        (Fidelity(0.8, 0.1, 30), "good"),
        (Fidelity(NAN, NAN, 0), "not measured"),
    ],
)
def test_words_of_the_verdict(found: Fidelity, verdict: str) -> None:
    assert found.words == verdict


def shown(found: Fidelity, **changes: Any) -> Explanation:
    settings = {"samples": 100, "input": {"units": "words"}}
    return scored([1.0, 2.0], fidelity=found, calls=100, settings=settings, **changes)


def test_an_uncertain_verdict_shows_its_interval() -> None:
    e = shown(fidelity(0.85, -0.03, 0.96))
    trust = Summary.of(e).trust
    assert trust.startswith("May predict the model well or badly on texts with words removed")
    assert "R² 0.85 (−0.03 to 0.96 on 3 of them)" in trust
    assert "Ask more, samples=200." in " ".join(wording.warnings(e))


def test_a_small_error_is_said_instead_of_a_low_r2() -> None:
    e = shown(fidelity(-0.3, -0.9, 0.1, mse=0.04**2, negligible=0.1))
    assert Summary.of(e).trust.startswith("Off by 0.04 on texts with words removed")
    assert not list(wording.warnings(e))


@pytest.mark.parametrize(
    ("settings", "calls", "more"),
    [
        ({"samples": None}, 300, 1000),
        ({"samples": None}, 9, None),  # there are no more questions about so few units
        ({"samples": 100}, 100, 200),
        ({"samples": "auto"}, 260, 1000),
        ({"samples": 40}, 40, 200),
        ({"samples": "not used: this method has no such number"}, 40, None),
        ({}, 40, None),
        ({"samples": None}, 1000, None),
    ],
)
def test_a_poor_verdict_offers_more_questions(
    settings: dict[str, Any], calls: int, more: int | None
) -> None:
    e = scored([1.0, 2.0], fidelity=fidelity(0.2, 0.1, 0.3), calls=calls, settings=settings)
    assert e.more_samples == more
    words = " ".join(wording.warnings(e))
    assert "predicts the model badly" in words
    assert (f"samples={more}" in words) == (more is not None)
    assert (f"(poor: ask more with samples={more})" in repr(e)) == (more is not None)
    assert explanation_html.view(e).data["more"] == more
    assert flat(words) in flat(printed(e))


def test_a_good_verdict_offers_nothing() -> None:
    e = shown(fidelity(0.95, 0.91, 0.98))
    assert e.more_samples is None
    assert not list(wording.warnings(e))


def test_a_constant_function_is_not_well_explained() -> None:
    e = piste.explain(lambda texts: [1.5] * len(texts), "one two three four five", samples=60)
    assert e.fidelity.words == "constant"
    assert "the same answer: no word matters" in Summary.of(e).trust
    assert "constant" in repr(e)


def test_more_questions_are_really_asked() -> None:
    rng = np.random.default_rng(0)
    noise: dict[str, float] = {}

    def random(texts: list[str]) -> list[float]:
        return [noise.setdefault(text, float(rng.normal(0, 3))) for text in texts]

    text = "one two three four five six seven eight nine ten"
    e = piste.explain(random, text, samples=60)
    assert e.fidelity.words in ("poor", "unusable")
    assert e.more_samples is not None
    assert piste.explain(random, text, samples=e.more_samples).calls > 2 * e.calls


def test_stored_and_read_again(tmp_path: Any) -> None:
    e = piste.explain(lambda texts: [1.5] * len(texts), "one two three", samples=40)
    e.to_json(tmp_path / "e.json")
    assert '"verdict": "constant"' in (tmp_path / "e.json").read_text()
    assert repr(read(tmp_path / "e.json").fidelity) == repr(e.fidelity)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("这部 电影 很好", "The tokenizer knows none of the"),
        ("A slow film 😀", "The tokenizer knows not 1 of the 4 words"),
    ],
)
def test_what_the_tokenizer_cannot_read_is_said(bert: Any, text: str, words: str) -> None:
    e = piste.explain(bert, text, samples=40)
    assert words in flat(printed(e))
    assert words in explanation_html.to_html(e)
    assert "units unknown to the tokenizer>" in repr(e)
    assert f'"unknown_units": {e.settings["input"]["unknown_units"]}' in e.to_json()


def test_a_text_that_is_read_has_no_such_note(bert: Any) -> None:
    e = piste.explain(bert, "A slow film", samples=40)
    assert "unknown_units" not in e.settings["input"]


def test_the_note_of_a_function_is_on_every_medium() -> None:
    e = piste.explain(lambda texts: [0.9 if "good" in t else 0.2 for t in texts], "a good film")
    words = "was read as a probability"
    assert words in flat(printed(e))
    assert words in flat(explanation_html.to_html(e))
    assert words in e.to_json()
    assert words in repr(e)
