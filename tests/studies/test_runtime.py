"""Everything is timed on the same questions, and what was not measured says so."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import piste
from piste import PisteError
from studies.base import Work
from studies.cases import AS_PUBLISHED, Case, encoder
from studies.peers import PlainModel
from studies.runtime import STUDY, Timed, _time_claims, _time_table
from studies.timing import Bare, peak_memory, recorded


@pytest.fixture(scope="module")
def case() -> Case:
    return encoder(tokens=12, layers=1, width=64)


def test_every_question_is_recorded(case: Case) -> None:
    assert len(case.subject) == 10
    case.classifier.calibrate(case.subject)  # asks on its own
    with recorded() as asked:
        plain = piste.explain(case.classifier, case.texts[0], samples=50, **AS_PUBLISHED)
    assert len({question.key for question in asked}) == plain.calls
    with recorded() as more:
        found = piste.explain(case.classifier, case.texts[0], samples=50)
    assert len({question.key for question in more}) == found.calls
    assert Bare(case, (128,)).seconds(asked) > 0


def test_peak_memory_sees_what_is_taken() -> None:
    with peak_memory() as peak:
        taken = np.ones(30_000_000)
        for _ in range(5):
            taken += 1
    assert np.isnan(peak[0]) or peak[0] > 100


def test_peers_ask_what_they_are_told(case: Case) -> None:
    pytest.importorskip("shap")
    pytest.importorskip("lime")
    plain = PlainModel(case)
    weights, intercept = plain.lime(40)
    assert set(weights) == set(plain.words)
    assert np.isfinite(intercept)
    assert len(plain.lengths) == 40
    assert len(plain.kernel_shap(60)) == len(plain.words)
    # Shapley values add up to what all words change.
    whole, nothing = plain.of_masks([[1] * len(plain.words), [0] * len(plain.words)])
    assert plain.kernel_shap(60).sum() == pytest.approx(whole - nothing, abs=1e-6)


def timed(lime: float, shap: float) -> dict[tuple[str, int], Timed]:
    found = {("SLALOM", 300): Timed([1.0, 1.2], 300, 1500, 1.0)}
    found["SLALOM", 1000] = Timed([3.0, 3.2], 1000, 5000, 3.0)
    for who, seconds in (("LIME", lime), ("SHAP", shap)):
        one = found[who, 300] = Timed([seconds], 300, 6000, 2.0)
        found[who, 1000] = one.times(1000 / 300, ", from 300")
    return found | {("gradient", 0): Timed([0.1], 1, 40, np.nan), ("IG", 0): Timed([2.0], 1, 40, 1)}


def test_claims_are_judged() -> None:
    fast = [one[2] for one in _time_claims(timed(8.0, 20.0), (300, 1000))]
    assert fast == ["holds", "holds", "holds", "holds in part"]
    assert _time_claims(timed(8.0, 9.0), (300, 1000))[0][2] == "holds in part"
    assert _time_claims(timed(0.5, 9.0), (300, 1000))[0][2] == "does not hold"


def test_what_was_computed_says_so() -> None:
    rows = {row[0]: row for row in _time_table(timed(8.0, 20.0), quick=True).rows}
    assert rows["LIME, 300 samples"][5] == "8.00"
    assert rows["LIME, 1,000 samples"][5] == "26.67, from 300"
    assert rows["LIME, 1,000 samples"][2] == "8.60"


def test_without_its_libraries_it_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = importlib.import_module

    def without(name: str, *others: Any) -> Any:
        if name == "lime":
            raise ImportError(name)
        return own(name, *others)

    monkeypatch.setattr(importlib, "import_module", without)
    with (
        Work.on(tmp_path, STUDY, quick=True, seed=0, progress=False) as work,
        pytest.raises(PisteError, match=r"This study needs the library 'lime'.*lime>="),
    ):
        STUDY.run(work)
