"""Later documents of a corpus are asked less, because earlier ones told what words do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import piste
from piste import PisteError, corpus
from piste.corpus import stages
from piste.corpus.document_records import read_records, write_records
from piste.corpus.plan import Plan, explain_block
from piste.slalom.family import Form
from piste.vocabulary.corpus_prior import ASKINGS, Asking, CorpusPrior, DocumentRecord
from tests.corpus.corpora import left

ROWS, BLOCK = 56, 8
WORDS = [f"w{number}" for number in range(40)]
EFFECTS = dict(zip(WORDS, np.random.default_rng(1).normal(0.0, 1.0, len(WORDS)), strict=True))


def sums(texts: Sequence[str]) -> list[list[float]]:
    """Two classes; words add up, and pairs of them a little."""
    found = []
    for text in texts:
        words = text.split()
        number = sum(EFFECTS.get(word, 0.0) for word in words)
        number += 0.05 * np.sin(len(words) + len(text))
        found.append([0.0, 4.0 * np.tanh(number / 4.0)])
    return found


def model() -> piste.Classifier:
    return piste.load(sums, name="sums", outputs="logits", labels=["no", "yes"])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 18)) for _ in range(ROWS)]
    texts[50] = "w1 w2 w3"
    file = tmp_path_factory.mktemp("prior") / "some.jsonl"
    lines = [json.dumps({"text": text}) for text in texts]
    lines[40] = "{broken"
    file.write_text("\n".join(lines))
    return file


@pytest.fixture(scope="module")
def run(path: Path) -> Path:
    out = path.parent / "run"
    corpus.run(path, model(), out, block=BLOCK, progress=False)
    return out


def calls(out: Path) -> dict[int, int]:
    return {row["document"]: row["calls"] for row in left(out)["documents"]}


def test_later_documents_are_asked_less_and_predicted_as_well(run: Path) -> None:
    asked = calls(run)
    first = [asked[number] for number in range(32)]
    later = [asked[number] for number in range(32, ROWS) if number not in (40, 50)]
    assert min(first) >= 290
    assert max(later) < 100
    r2 = {row["document"]: row["r2"] for row in left(run)["documents"]}
    assert np.median([r2[number] for number in range(32, 40)]) > 0.98
    assert asked[50] <= 8  # three units have no more subsets
    manifest = corpus.read_manifest(run)
    assert manifest["settings"]["prior"] == "auto"
    assert list(manifest["priors"]) == ["32"]
    assert manifest["priors"]["32"]["documents"] == 32
    assert not (run / "told").exists()


def test_values_of_words_are_the_answers_to_them_alone(run: Path) -> None:
    explained = corpus.explanation(run, 35)
    own = np.array(sums([unit.text for unit in explained.units]))[:, 1]
    sign = 1.0 if explained.output.label == "yes" else -1.0
    assert np.allclose(explained.scores["value"], sign * own, atol=1e-5)
    assert explained.settings["prior"]["documents"] == 32
    effects = np.array([EFFECTS[unit.text] for unit in explained.units])
    shapley = sign * explained.scores["shapley"]
    assert np.corrcoef(effects, shapley)[0, 1] > 0.97


def test_without_a_prior_rows_are_as_they_are_alone(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "none"
    corpus.run(path, model(), out, block=BLOCK, prior="none", progress=False)
    found = corpus.explanation(out, 35)
    alone = piste.explain(model(), found.input, long="truncate")
    assert found.calls == alone.calls
    assert np.allclose(found.scores["value"], alone.scores["value"], atol=1e-5)
    assert "priors" not in corpus.read_manifest(out)


class _StoppedError(Exception):
    pass


@pytest.mark.parametrize("after", [24, 32, 48])
def test_a_run_that_was_stopped_is_the_same(
    path: Path, run: Path, tmp_path: Path, after: int
) -> None:
    def stop(done: int, total: int) -> None:
        if done == after:
            raise _StoppedError

    with pytest.raises(_StoppedError):
        corpus.run(path, model(), tmp_path / "out", block=BLOCK, progress=stop)
    corpus.run(path, model(), tmp_path / "out", block=BLOCK, progress=False)
    assert left(tmp_path / "out") == left(run)
    assert corpus.read_manifest(tmp_path / "out")["priors"] == corpus.read_manifest(run)["priors"]


def test_another_choice_of_the_prior_does_not_continue_a_run(path: Path, run: Path) -> None:
    with pytest.raises(PisteError, match="prior 'auto', now None"):
        corpus.run(path, model(), run, block=BLOCK, prior="none", progress=False)
    with pytest.raises(PisteError, match="prior: expected 'auto' or 'none', got 'some'"):
        corpus.run(path, model(), run, prior="some", progress=False)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "how",
    [
        {"samples": 40},
        {"form": "paper"},
        {"removal": "mask"},
        {"target": "all"},
        {"units": ["sentences", "words"]},
    ],
    ids=str,
)
def test_only_the_usual_questions_learn(how: dict[str, Any]) -> None:
    classifier = model()
    assert Plan("x", "y", how={"long": "truncate"}).can_learn(classifier)
    assert not Plan("x", "y", how=how).can_learn(classifier)
    assert Plan("x", "y", how={"long": "truncate", "guide": False}).can_learn(classifier)
    assert not Plan("x", "y", method="occlusion").can_learn(classifier)


def test_records_are_read_as_they_were(path: Path) -> None:
    plan = Plan(str(path), model(), block=BLOCK, how={"long": "truncate"}, learns=True)
    block = next(plan.blocks(plan.files()))
    part = explain_block(plan, plan.model, block)
    records = list(read_records(part.told))
    assert len(records) == BLOCK
    assert write_records(records) == part.told
    first = records[0]
    assert first.asked is not None
    assert first.target == "class 1"
    answered = dict(zip(first.keys, first.alone, strict=True))
    assert all(abs(answered[word] - sums([word])[0][1]) < 1e-6 for word in answered)


def records_of(path: Path) -> list[DocumentRecord]:
    """What the first four blocks tell."""
    plan = Plan(str(path), model(), block=BLOCK, how={"long": "truncate"}, learns=True)
    blocks = list(islice(plan.blocks(plan.files()), 4))
    return [
        one for block in blocks for one in read_records(explain_block(plan, plan.model, block).told)
    ]


def test_the_cheapest_questions_that_lose_next_to_nothing_are_asked(path: Path) -> None:
    """By what documents that were asked in full lose, also those with another form."""
    assert ASKINGS[-1].cost < Asking(1.0, 1.0).cost
    told = records_of(path)
    known = CorpusPrior.learned(told).targets["class 1"]
    assert known.asking.cost < 0.1 * Asking(1.0, 1.0).cost
    # Fifteen of 32 that are as if drawn by chance, of another form: then all are asked in full.
    rng = np.random.default_rng(0)
    for number in range(3, 32, 2):
        one = told[number]
        assert one.asked is not None
        numbers, held = rng.permutation(one.asked.numbers), len(one.asked.expected)
        chance = replace(one.asked, numbers=numbers, expected=numbers[:held])
        told[number] = replace(one, asked=chance, told=replace(one.told, form=Form(1.0)))
    assert CorpusPrior.learned(told).targets == {}


def test_stages_depend_on_the_rows_alone() -> None:
    assert stages.stage_ends(1000, 31) == [2, 5, 17, 33]
    assert stages.stage_ends(33, 8) == [4, 5]
    assert stages.stage_ends(32, 8) == [4]


def test_an_estimate_knows_that_later_rows_are_asked_less(path: Path, run: Path) -> None:
    found = corpus.estimate(path, model(), block=BLOCK)
    spent = corpus.read_manifest(run)["counts"]["calls"]
    assert found.first == 32
    assert found.first_calls == pytest.approx(32 * 300, rel=0.05)
    assert found.calls == pytest.approx(spent, rel=0.15)
    assert corpus.estimate(path, model(), block=BLOCK, prior="none").first is None
