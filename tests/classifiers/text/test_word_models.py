"""Tags of words and answers in texts: the number that is explained is the model's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForQuestionAnswering, AutoModelForTokenClassification
from transformers import pipeline as make_pipeline

import piste
from piste import PisteError, corpus
from piste.serve import create_app
from tests.conftest import FAMILIES

TEXT = "the slow film was good and the film was long"
QUESTION = "what was good"
TAGS = {0: "O", 1: "B-THING", 2: "I-THING"}


def make(kind: Any, **more: Any) -> Any:
    config = AutoConfig.for_model("bert", **FAMILIES["bert"][1] | more, initializer_range=0.5)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return kind.from_config(config).eval()


@pytest.fixture(scope="module")
def tagger(wordpiece: Any) -> Any:
    model = make(AutoModelForTokenClassification, id2label=TAGS, label2id={})
    return piste.load(model, wordpiece, name="tagger")


@pytest.fixture(scope="module")
def reader(wordpiece: Any) -> Any:
    return piste.load(make(AutoModelForQuestionAnswering, num_labels=2), wordpiece, name="reader")


def raw(classifier: Any, *texts: str) -> Any:
    """What the model itself returns, and where its tokens stand."""
    given = classifier.tokenizer(*texts, return_tensors="pt", return_offsets_mapping=True)
    where = given.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        return classifier.model(**given), where, given


def token_at(where: list[list[int]], start: int, segments: list[int | None], segment: int) -> int:
    return next(
        place
        for place, (span, own) in enumerate(zip(where, segments, strict=True))
        if own == segment and span[0] == start and span[1] > span[0]
    )


def segments(classifier: Any, *texts: str) -> list[int | None]:
    return classifier.tokenizer(*texts).sequence_ids()


@pytest.mark.parametrize(
    ("target", "start"), [("film: O", 9), ("film#2: O", 31), (("good", 1), 18)]
)
def test_the_whole_text_gives_the_models_own_logits(tagger: Any, target: Any, start: int) -> None:
    one, tag = tagger.at(TEXT, target)
    subject = one.subject(TEXT)
    found, where, _ = raw(tagger, TEXT)
    place = token_at(where, start, segments(tagger, TEXT), 0)
    asked = subject.ask([subject.whole])[0]
    np.testing.assert_allclose(asked, found.logits[0, place], atol=1e-4)
    assert one.place == (start, start + 4)
    assert len(subject) == len(TEXT.split()) - 1, "the word itself is in every question"
    assert tag in ("O", 1)


def test_a_batch_is_as_one_by_one(tagger: Any, reader: Any) -> None:
    rng = np.random.default_rng(0)
    for one, given in (
        (tagger.at(TEXT, "film")[0], TEXT),
        (reader.at((QUESTION, TEXT), "slow film")[0], (QUESTION, TEXT)),
    ):
        subject = one.subject(given)
        many = [rng.permutation(len(subject))[: 1 + n % 8] for n in range(20)] + [[]]
        together = subject.ask(many)
        alone = np.concatenate([subject.ask([sequence]) for sequence in many])
        np.testing.assert_allclose(together, alone, atol=1e-4)
        masked = one.subject(given, removal="mask")
        np.testing.assert_allclose(
            masked.ask([masked.whole]), subject.ask([subject.whole]), atol=1e-4
        )


def test_an_explanation_of_a_tag(tagger: Any) -> None:
    e = piste.explain(tagger, TEXT, target="good: B-THING", samples=60)
    assert e.target.name == "log-odds of 'B-THING'"
    assert "good" not in [unit.text for unit in e.units]
    assert e.classifier["place"] == [18, 22]
    found, where, _ = raw(tagger, TEXT)
    logits = found.logits[0, token_at(where, 18, segments(tagger, TEXT), 0)].double()
    assert e.output.value == pytest.approx(float(logits[1] - logits[[0, 2]].logsumexp(0)), abs=1e-3)
    predicted = piste.explain(tagger, TEXT, target="good", samples=60)
    assert predicted.target.name == f"log-odds of {TAGS[int(logits.argmax())]!r}"
    both = piste.compare(tagger, TEXT, ["slalom", "occlusion"], target="good", samples=40)
    assert set(both.explanations) == {"slalom", "occlusion"}
    without = piste.check(tagger, e, [[0]])[0]
    one, _ = tagger.at(TEXT, "good")
    subject = one.subject(TEXT)
    asked = e.target(subject.ask([range(1, len(subject))]))[0]
    assert without.answer == pytest.approx(asked, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        (TEXT, None, "a word of the text and its tag, as 'Paris: LOC', got None. The model tags"),
        (TEXT, "O", "expected a word"),
        (TEXT, 1, "expected a word"),
        (TEXT, "", "expected a word"),
        (TEXT, "Paris: O", "'Paris' stands 0 times"),
        (TEXT, "film#3: O", "'film' stands 2 times in the text, as whole words.*at most #2"),
        (TEXT, "fil: O", "stands 0 times"),
        (TEXT, "film: LOC", "There is no class 'LOC'"),
        ((TEXT, TEXT), "film", "got a pair"),
        ([TEXT, TEXT], "film", "Expected a text"),
        ("", "film", "is empty"),
    ],
)
def test_what_is_no_word_is_refused(tagger: Any, text: Any, target: Any, words: str) -> None:
    with pytest.raises(PisteError, match=words):
        piste.explain(tagger, text, target=target, samples=20)


def log_odds(reader: Any, answer: tuple[int, int]) -> float:
    found, where, _ = raw(reader, QUESTION, TEXT)
    own = segments(reader, QUESTION, TEXT)
    first = token_at(where, answer[0], own, 1)
    last = next(n for n, span in enumerate(where) if own[n] == 1 and span[1] == answer[1])
    chance = found.start_logits.softmax(-1)[0, first] * found.end_logits.softmax(-1)[0, last]
    return float(torch.logit(chance.double()))


def test_an_explanation_of_an_answer(reader: Any) -> None:
    given = (QUESTION, TEXT)
    e = piste.explain(reader, given, target="slow film", samples=60)
    assert e.target.name == "log-odds of 'slow film'"
    assert e.output.value == pytest.approx(log_odds(reader, (4, 13)), abs=1e-3)
    assert {unit.segment for unit in e.units} == {0, 1}
    own = piste.explain(reader, given, samples=20)
    found, where, _ = raw(reader, QUESTION, TEXT)
    context = [n for n, segment in enumerate(segments(reader, QUESTION, TEXT)) if segment == 1]
    best = max(
        ((a, b) for a in context for b in context if a <= b),
        key=lambda span: float(found.start_logits[0, span[0]] + found.end_logits[0, span[1]]),
    )
    answer = TEXT[where[best[0]][0] : where[best[1]][1]]
    assert own.target.name == f"log-odds of {answer!r}"


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        (TEXT, None, "Expected a question and the text that answers it"),
        ((QUESTION, TEXT), "Paris", "stands 0 times"),
        ((QUESTION, TEXT), 1, "expected an answer in the text"),
        ((QUESTION, ""), None, "no word that could be an answer"),
    ],
)
def test_what_is_no_answer_is_refused(reader: Any, text: Any, target: Any, words: str) -> None:
    with pytest.raises(PisteError, match=words):
        piste.explain(reader, text, target=target, samples=20)


def test_folders_and_pipelines(tagger: Any, reader: Any, tmp_path: Path) -> None:
    for classifier, task in ((tagger, "token-classification"), (reader, "question-answering")):
        classifier.model.save_pretrained(tmp_path / task)
        classifier.tokenizer.save_pretrained(tmp_path / task)
        again = piste.load(tmp_path / task)
        assert type(again) is type(classifier)
        assert again.labels == classifier.labels
    model, tokenizer = tagger.model, tagger.tokenizer
    piped = make_pipeline("token-classification", model=model, tokenizer=tokenizer)
    assert type(piste.load(piped)) is type(tagger)


def test_what_can_not_be_is_said(tagger: Any, tmp_path: Path) -> None:
    for method in ("gradient", "attention"):
        with pytest.raises(PisteError, match="Methods that look inside"):
            piste.explain(tagger, TEXT, target="film", method=method)
    with pytest.raises(PisteError, match="answers about words: explain one text at a time"):
        corpus.run([{"text": TEXT}] * 2, tagger, tmp_path / "run", progress=False)
    with pytest.raises(PisteError, match="can't be chosen on the page"):
        create_app([tagger])
    with pytest.raises(PisteError, match="expected 'torch'"):
        piste.load(tagger.model, tagger.tokenizer, runtime="onnx")
    long = "slow " * 600 + "film"
    with pytest.raises(PisteError, match="not in the part of the text"):
        piste.explain(tagger, long, target="film", long="truncate", samples=20)
