"""Documents of a model that can be looked into have a guide, and learn what words do beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import piste
from piste import corpus
from piste.corpus import document_records
from piste.corpus.document_records import read_records, write_records
from piste.corpus.plan import Plan, explain_block
from piste.slalom.fitting import fit_with_prior
from piste.slalom.learned_prior import LearnedPrior
from piste.vocabulary import corpus_prior
from piste.vocabulary.corpus_prior import Asking, DocumentRecord, _learned, turned_prior

WORDS = [
    "a",
    "the",
    "film",
    "plot",
    "music",
    "cast",
    "jokes",
    "story",
    "awful",
    "wonderful",
    "dull",
    "superb",
    "fine",
    "waste",
    "boring",
    "great",
    "old",
    "clever",
    "stupid",
    "lovely",
    "best",
    "worst",
]
ROWS, BLOCK = 40, 8


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    texts = (" ".join(rng.choice(WORDS, 14, replace=False)) for _ in range(ROWS))
    file = tmp_path_factory.mktemp("guided") / "some.jsonl"
    file.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    return file


@pytest.fixture(scope="module")
def told(path: Path) -> list[DocumentRecord]:
    """What the first 24 documents told."""
    model = piste.load("piste:reviews")
    plan = Plan(str(path), model, block=BLOCK, how={"long": "truncate"}, learns=True)
    blocks = list(islice(plan.blocks(plan.files()), 3))
    return [one for block in blocks for one in read_records(explain_block(plan, model, block).told)]


def prior_of(told: list[DocumentRecord], *, guided: bool) -> LearnedPrior:
    words = {key: place for place, key in enumerate(dict.fromkeys(k for r in told for k in r.keys))}
    found = _learned(told, words, guided=guided, below=np.inf)
    assert found is not None
    assert found.prior.guided == guided
    return found.prior


@pytest.mark.parametrize("guided", [True, False])
def test_documents_with_a_prior_are_asked_less(
    path: Path, guided: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here words alone tell so much that a guide is not worth its pass, unless it costs nothing."""
    if guided:
        monkeypatch.setattr(corpus_prior, "_GUIDE", -1e-9)
        monkeypatch.setattr(Asking, "cost", 100.0)  # all alike, so that a guide decides
    out = path.parent / f"run-{guided}"
    corpus.run(path, "piste:reviews", out, block=BLOCK, progress=False)
    found = list(corpus.explanations(out))
    assert len(found) == ROWS
    first, later = ([e for e in found if ("prior" in e.settings) == there] for there in (0, 1))
    assert all(e.settings["guided"] for e in first)
    assert all(e.settings["guided"] == guided for e in later)
    assert max(e.calls for e in later) < min(e.calls for e in first)
    assert np.median([e.fidelity.r2 for e in later]) > 0.8


def test_guided_records_are_read_as_they_were(told: list[DocumentRecord]) -> None:
    content = write_records(told)
    again = list(read_records(content))
    assert write_records(again) == content
    assert all(one.told.guided and one.guide is not None for one in again)


def test_records_of_earlier_versions_have_no_guide(
    told: list[DocumentRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = json.dumps
    monkeypatch.setattr(
        document_records.json,
        "dumps",
        lambda every: real([{k: v for k, v in one.items() if k != "guided"} for one in every]),
    )
    plain = [replace(one, guide=None, told=replace(one.told, guided=False)) for one in told]
    assert not any(one.told.guided for one in read_records(write_records(plain)))


def test_documents_without_a_guide_tell_nothing_beside_one(told: list[DocumentRecord]) -> None:
    some = [
        one
        if number < 18 or one.guide is None
        else replace(one, guide=None, told=one.told.unguided(one.guide))
        for number, one in enumerate(told)
    ]
    mixed, fewer = (prior_of(some, guided=True), prior_of(told[:18], guided=True))
    for one, other in zip(mixed.shared, fewer.shared, strict=True):
        np.testing.assert_allclose(one, other)


def test_without_a_guide_evidence_is_what_both_said(told: list[DocumentRecord]) -> None:
    record = told[0]
    assert record.guide is not None
    plain = record.told.unguided(record.guide)
    factor = record.told.shared[1 + (record.told.form.mixing is None)]
    assert factor > 0
    np.testing.assert_allclose(
        plain.estimates[0] - record.told.estimates[0], factor * record.guide, atol=1e-12
    )
    assert len(plain.shared) == len(record.told.shared) - 1
    assert not prior_of(told, guided=False).guided


def test_the_other_class_is_explained_by_the_same_numbers(told: list[DocumentRecord]) -> None:
    prior, record = prior_of(told, guided=True), told[0]
    assert record.asked is not None
    assert record.guide is not None
    places = np.full(len(record.keys), -1)
    rows = slice(0, 30)
    found = [
        fit_with_prior(
            record.asked.counts[rows],
            sign * record.asked.numbers[rows],
            prior.form,
            turned_prior(prior, places, sign * record.alone, sign),
            prior.noise,
            guide=sign * record.guide,
        ).predict(record.asked.counts)
        for sign in (1.0, -1.0)
    ]
    np.testing.assert_allclose(found[0], -found[1], atol=1e-6)
