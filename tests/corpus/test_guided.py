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
from piste.vocabulary.corpus_prior import CorpusPrior, DocumentRecord, turned_prior

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


def test_documents_with_a_prior_are_guided(path: Path) -> None:
    out = path.parent / "run"
    corpus.run(path, "piste:reviews", out, block=BLOCK, progress=False)
    found = list(corpus.explanations(out))
    assert len(found) == ROWS
    assert all(e.settings["guided"] for e in found)
    first, later = ([e for e in found if ("prior" in e.settings) == there] for there in (0, 1))
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


def test_a_prior_is_of_guided_documents_if_most_are(told: list[DocumentRecord]) -> None:
    known = CorpusPrior.learned(told).targets["class 1"]
    assert known.prior.guided
    # Without their guide these would say that words do more; they are left out.
    place = 1 + (known.prior.form.mixing is None)
    some = [
        one
        if number < 18
        else replace(
            one,
            guide=None,
            told=replace(one.told, guided=False, shared=np.delete(one.told.shared, place)),
        )
        for number, one in enumerate(told)
    ]
    mixed, fewer = (CorpusPrior.learned(all_).targets["class 1"] for all_ in (some, told[:18]))
    for one, other in zip(mixed.prior.shared, fewer.prior.shared, strict=True):
        np.testing.assert_allclose(one, other)


def test_the_other_class_is_explained_by_the_same_numbers(told: list[DocumentRecord]) -> None:
    prior = CorpusPrior.learned(told).targets["class 1"].prior
    record = told[0]
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
