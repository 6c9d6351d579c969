"""Answers of language models, and any span of them, from the same questions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste.errors import PisteError
from tests.classifiers.prompted.conftest import log_probability

PROMPT = "The film is good. The start was slow. What a wonderful ending it had."
HOW: dict[str, Any] = {"samples": 40, "units": "sentences"}


@pytest.fixture(scope="module")
def model(llama: Any, tokenizer: Any) -> Any:
    return piste.load(llama, tokenizer)


def test_the_models_own_answer_is_that_of_generate(llama: Any, tokenizer: Any, model: Any) -> None:
    classifier, _ = model.answering(PROMPT, longest=9)
    ids = torch.tensor([tokenizer(PROMPT)["input_ids"]])
    made = llama.generate(ids, max_new_tokens=9, do_sample=False, pad_token_id=0)[0, ids.shape[1] :]
    text = tokenizer.decode([int(t) for t in made if int(t) != tokenizer.eos_token_id])
    assert classifier.known.text == text.strip()


def test_token_log_probabilities_are_those_of_plain_passes(causal: Any, tokenizer: Any) -> None:
    classifier, prompt = piste.load(causal, tokenizer).answering(PROMPT, answer="It was bad.")
    subject = classifier.subject(prompt, units="sentences")
    questions = [[0, 1, 2], [1], [0, 2], [0], [0, 1]]
    answers = subject.ask(questions)
    answer = [token for _, token in classifier._tail.reads[0]]
    for units, found in zip(questions, answers, strict=True):
        ((question, _),) = subject.encode(units)
        ids = question.payload[0].tolist()[: -classifier.tail]
        np.testing.assert_allclose(found.sum(), log_probability(causal, ids, answer), atol=1e-4)


def test_nothing_but_the_answer_is_no_question(model: Any) -> None:
    e = piste.explain(model, PROMPT, answer="It was bad.", **HOW)
    assert not e.answer.can_be_empty  # the first token would stand behind nothing


def test_a_span_is_explained_without_asking(model: Any) -> None:
    e = piste.explain(model, PROMPT, answer="It was bad and dull.", **HOW)
    assert e.answer.text == "It was bad and dull."
    span = e.of("bad and")
    assert span.target.labels == ("bad and",)
    inside = np.array(span.target.indices)
    whole = e.answer.log_probabilities[-1]
    np.testing.assert_allclose(span.output.value, whole[inside].sum(), atol=1e-6)
    start = e.answer.text.index("bad")
    same = e.of((start, start + 7))
    np.testing.assert_allclose(span.score(), same.score())
    # Everything as one span is the whole answer.
    np.testing.assert_allclose(e.of(e.answer.text).score(), e.score(), atol=1e-9)


def test_a_stored_result_explains_spans_too(model: Any, tmp_path: Any) -> None:
    e = piste.explain(model, PROMPT, answer="It was bad and dull.", **HOW)
    e.to_json(tmp_path / "e.json")
    read = piste.read(tmp_path / "e.json")
    assert read.input.parts == e.input.parts
    np.testing.assert_allclose(read.of("dull").score(), e.of("dull").score(), atol=1e-4)


def test_an_answer_against_another(llama: Any, tokenizer: Any, model: Any) -> None:
    e = piste.explain(model, PROMPT, answer="good film", against="bad film", **HOW)
    ids = tokenizer(PROMPT)["input_ids"]
    both = [tokenizer(f" {a} film")["input_ids"] for a in ("good", "bad")]
    one, other = (log_probability(llama, ids, tokens) for tokens in both)
    np.testing.assert_allclose(e.output.value, one - other, atol=1e-4)
    assert "over" in e.target.name


def test_messages_have_turns(model: Any) -> None:
    chat = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "The film is good. Is it?"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Why?"},
    ]
    e = piste.explain(model, chat, answer="It was.", units="parts", samples=16)
    assert [unit.part for unit in e.units] == ["system", "user 1", "assistant 1", "user 2"]


def test_pinned_turns_stay(llama: Any, tokenizer: Any) -> None:
    model = piste.load(llama, tokenizer, pinned=["system"])
    chat = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Good film?"}]
    e = piste.explain(model, chat, answer="It was.", samples=16)
    assert {unit.part for unit in e.units} == {"user 1"}


def test_answers_are_compared_checked_and_judged(model: Any, tmp_path: Any) -> None:
    prompt = "The film was slow. Was the ending good?"
    compared = piste.compare(model, prompt, ["slalom", "lime", "occlusion"], samples=30)
    assert list(compared.verdicts) == ["slalom", "lime", "occlusion"]
    assert all(one.answer == one.answer for one in compared.checks)
    e = piste.explain(model, prompt, answer="good end", against="bad", samples=30)
    e.to_json(tmp_path / "e.json")
    stored = piste.read(tmp_path / "e.json")
    [check] = piste.check(model, [stored], [[1]])
    whole, _ = model.answering(prompt, "good end", "bad")
    subject = whole.subject(prompt)
    kept = [unit for unit in range(len(subject)) if unit != 1]
    assert check.answer == pytest.approx(float(e.target(subject.ask([kept]))[0]), abs=1e-4)
    other = piste.explain(model, "A bad film.", answer="good", samples=30)
    rows = piste.evaluation.judge(model, [stored, other, e.of("end")], ["fidelity"])
    assert [np.isfinite(row.figures["r2_all"]) for row in rows] == [True] * 3
    with pytest.raises(PisteError, match="of another"):
        piste.evaluation.judge(model.answering(prompt, "good")[0], [e], ["fidelity"])


def test_own_answers_are_asked_again_token_by_token(model: Any) -> None:
    e = piste.explain(model, "The film was slow.", samples=20)
    again = model.explained(e)
    assert again.known.tokens == e.answer.tokens
    subject = again.subject(e.input)
    np.testing.assert_allclose(
        subject.ask([subject.whole])[0], e.answer.log_probabilities[-1], atol=1e-4
    )


def test_a_list_of_prompts(llama: Any, tokenizer: Any, model: Any) -> None:
    prompts = ["The film was slow.", "A wonderful ending."]
    apart = [piste.explain(model, one, answer="good", samples=20) for one in prompts]
    for answer in ("good", ["good", "good"]):
        found = piste.explain(model, prompts, answer=answer, samples=20)
        for one, other in zip(found, apart, strict=True):
            np.testing.assert_allclose(one.score(), other.score(), atol=1e-6)
    chats = [[{"role": "user", "content": one}] for one in prompts]
    assert [e.units[0].part for e in piste.explain(model, chats, samples=20)] == ["user 1"] * 2
    with pytest.raises(PisteError, match="one for each of the 2"):
        piste.explain(model, prompts, answer=["good"])
    with pytest.raises(PisteError, match=r"Input 1: .*empty"):
        piste.explain(model, ["The film.", " "], samples=20)
    with pytest.raises(PisteError, match="one answer for one prompt"):
        piste.explain(model, "The film.", answer=["good"])
    asked = piste.load(llama, tokenizer, prompt="{a}\nQ: {b}\nA:")
    values = [{"a": "A film.", "b": one} for one in ("Good?", "Bad?")]
    assert len(piste.explain(asked, values, samples=20)) == 2


def test_levels_of_a_context(llama: Any, tokenizer: Any) -> None:
    model = piste.load(llama, tokenizer, prompt="{context}\nQ: {q}\nA:", pinned=["q"])
    context = {"first": "A good film. A slow start.", "second": "It had a bad ending. I did not."}
    e = piste.explain(
        model, {"context": context, "q": "Is it good?"}, answer="It was bad.",
        units=["parts", "sentences", "words"], samples=120,
    )  # fmt: skip
    assert [unit.part for unit in e.levels[0].units] == ["first", "second"]
    assert len(e.units) >= 2
    assert np.isfinite(e.of("bad").score()).all()


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        (PROMPT, {"answer": "  "}, "answer: expected a text"),
        (PROMPT, {"answer": "good", "against": "good"}, "another answer"),
        ([], {}, "messages"),
        ([PROMPT, 3], {"samples": 20}, "Input 1"),
        ([{"role": "user", "content": "Hi"}, "Hi"], {}, "Input 0"),
        ({"context": "x"}, {}, "prompt that has these fields"),
        ("", {}, "empty"),
    ],
)
def test_bad_input_is_refused(model: Any, given: Any, options: Any, words: str) -> None:
    with pytest.raises(PisteError, match=words):
        piste.explain(model, given, **options)


def test_spans_that_are_not_there_are_refused(model: Any, reviews: Any) -> None:
    e = piste.explain(model, PROMPT, answer="It was bad.", samples=16, units="sentences")
    for span in ("dull", "", (3, 2), (0, 99)):
        with pytest.raises(PisteError, match="piece of the answer"):
            e.of(span)
    with pytest.raises(PisteError, match="language model's answer"):
        piste.explain(reviews, "A good film.", samples=20).of("good")
    with pytest.raises(PisteError, match="answer and against"):
        piste.explain(reviews, "A good film.", answer="good")


def test_a_model_without_labels_says_what_to_do(model: Any) -> None:
    with pytest.raises(PisteError, match="answering"):
        model.subject(PROMPT)


@pytest.mark.parametrize("method", ["lime", "occlusion", "kernel_shap"])
def test_other_methods_explain_spans_from_their_questions(model: Any, method: str) -> None:
    e = piste.explain(model, PROMPT, answer="It was bad.", units="words", method=method)
    assert np.isfinite(e.of("bad").score()).all()
