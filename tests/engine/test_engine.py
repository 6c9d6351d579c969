"""The engine: every question once, longest first, smaller when memory ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste import PisteError
from piste.engine import AnswerCache, Engine, Progress
from piste.engine.engine import BatchSizer, batches
from piste.subject import Question


class Recorder:
    """A classifier's answers, with a record of the batches that came."""

    def __init__(self, memory: float = float("inf"), error: type[Exception] = MemoryError) -> None:
        self.heard: list[list[str]] = []
        self.memory, self.error = memory, error

    def __call__(self, texts: list[str]) -> list[float]:
        self.heard.append(texts)
        if len(texts) > self.memory:
            raise self.error("CUDA out of memory, tried to allocate 9 GiB")
        return [len(text) * 1.5 for text in texts]


def classifier(recorder: Any) -> Any:
    return piste.load(recorder, outputs="logits", labels=["score"], kind="regression")


def test_equal_questions_of_different_subjects_are_asked_once() -> None:
    recorder = Recorder()
    loaded = classifier(recorder)
    first, second = loaded.subject("good film now"), loaded.subject("good film then")
    engine = Engine(loaded)
    recorder.heard.clear()
    answers = engine.ask([(first, [[0, 1], [0], [0, 1]]), (second, [[0, 1], [2]])])
    assert sorted(recorder.heard[0]) == ["good", "good film", "then"]
    assert sum(map(len, recorder.heard)) == 3
    assert (engine.calls(first), engine.calls(second)) == (2, 2)
    assert answers[0].ravel().tolist() == [13.5, 6.0, 13.5]
    engine.ask([(second, [[0]])])
    assert len(recorder.heard) == 1, "a later round must not ask again"


@pytest.mark.parametrize("error", [MemoryError, torch.OutOfMemoryError, RuntimeError])
def test_out_of_memory_halves_the_batch_and_goes_on(error: type[Exception]) -> None:
    loaded = classifier(Recorder(memory=3, error=error))
    subject = loaded.subject("one two three four five six")
    sequences = [[k] for k in range(6)] + [[k, k] for k in range(6)]
    answers = subject.ask(sequences)
    expected = [len(subject.encode(sequence)[0][0].payload) * 1.5 for sequence in sequences]
    assert answers.ravel().tolist() == expected


def test_one_question_too_large_is_said_and_other_errors_too() -> None:
    with pytest.raises(PisteError, match="does not fit into memory"):
        classifier(Recorder(memory=0)).subject("one two").ask([[0]])

    def broken(texts: list[str]) -> Any:
        raise RuntimeError("something else")

    with pytest.raises(PisteError, match=r"'broken' failed with RuntimeError \(something else\)"):
        classifier(broken).subject("one two").ask([[0]])


def test_batches_stay_within_the_budget_and_lose_nothing() -> None:
    rng = np.random.default_rng(0)
    questions = [Question(str(k), int(rng.integers(1, 60)), None) for k in range(300)]
    made = [batch for _, batch in batches(questions, BatchSizer(256, calibrate=False))]
    assert sorted(q.key for batch in made for q in batch) == sorted(q.key for q in questions)
    for batch in made:
        assert len(batch) == 1 or len(batch) * max(q.length for q in batch) <= 256
    lengths = [q.length for batch in made for q in batch]
    assert lengths == sorted(lengths, reverse=True)


def test_nan_is_refused(bert: Any) -> None:
    def poisoned(questions: Sequence[Question]) -> Any:
        return np.full((len(questions), 3), np.nan)

    subject = bert.subject("good film")
    original, bert.answer = bert.answer, poisoned
    try:
        with pytest.raises(PisteError, match="NaN or infinity for 2 of 2"):
            subject.ask([[0], [1]])
    finally:
        bert.answer = original


def test_progress_counts_questions() -> None:
    seen: list[tuple[int, int]] = []
    loaded = classifier(Recorder())
    piste.explain(loaded, "one two three four", samples=30, progress=lambda *n: seen.append(n))
    assert seen[-1][0] == seen[-1][1] > 5
    with Progress(False) as quiet:
        quiet.advance(1)


def test_wrong_sequences_are_refused(bert: Any) -> None:
    subject = bert.subject("good film")
    for wrong, words in (([5], "0 to 1"), ([-1], "0 to 1"), ([0.5], "indices"), ([[0]], "flat")):
        with pytest.raises(PisteError, match=words):
            subject.ask([wrong])
    assert subject.ask([[]]).shape == (1, 3)
    assert subject.ask([]).shape == (0, 3)


def test_nothing_at_all_cant_be_asked_without_a_frame(byte_pairs: Any, bert: Any) -> None:
    subject = piste.load(bert.model, byte_pairs).subject("good film")
    assert not subject.can_be_empty
    with pytest.raises(PisteError, match="at least one unit"):
        subject.ask([[]])


def test_the_quickest_batch_size_is_found_and_kept() -> None:
    """Costs per token are lowest at 1,024: the search must end there, trying neighbours only."""
    sizer = BatchSizer(8192)
    cost = {256: 2.0, 512: 1.3, 1024: 1.0, 2048: 1.1, 4096: 1.3, 8192: 2.0}
    tried = []
    for _ in range(20):
        size = sizer.size(50, calibrates=True)
        tried.append(size)
        sizer.learn(50, size, tokens=size, seconds=cost[size] * size)
    assert tried[-1] == sizer.size(50) == 1024
    assert 8192 not in tried
    assert sizer.size(90, calibrates=False) == 1024, "a similar length begins with what is known"
    sizer.shrink(600)
    assert sizer.size(50) <= 600


def test_small_work_always_uses_the_same_batches(bert: Any) -> None:
    questions = [Question(str(k), 10, None) for k in range(500)]
    sizer = BatchSizer(8192)
    sizes = {size for size, _ in batches(questions, sizer)}
    assert sizes == {2048}


def row_by_hand(subject: Any, sequence: Any) -> list[int]:
    """Token ids, put together one by one: each slot's units in the order asked, framed."""
    row = [*subject._frame[0]]
    for slot, closing in enumerate(subject._frame[1:]):
        for unit in sequence:
            if subject._slots[unit] == slot:
                row += [*subject._ids[unit]]
        row += [*closing]
    return [int(token) for token in row]


@pytest.mark.parametrize("units", ["words", "tokens"])
def test_sequences_are_encoded_in_the_order_asked(family: Any, units: Any) -> None:
    _, model, tokenizer = family
    subject = piste.load(model, tokenizer).subject("good film, a bad end and more", units=units)
    rng = np.random.default_rng(0)
    sequences: list[Any] = [rng.integers(0, len(subject), rng.integers(1, 9)) for _ in range(20)]
    sequences += [subject.whole, [0], (1, 0, 1)] + ([[]] if subject.can_be_empty else [])
    for sequence, parts in zip(sequences, subject.encode_all(sequences), strict=True):
        ((question, weight),) = parts
        row = row_by_hand(subject, sequence)
        assert weight == 1.0
        assert question.length == len(row)
        assert question.payload[0].tolist() == row
        assert question.key == np.array(row, dtype=np.int32).tobytes()
    whole = subject.encode_all([subject.whole])[0][0][0].payload[0]
    assert whole.tolist() == tokenizer("good film, a bad end and more")["input_ids"]


def test_units_of_a_pair_stay_in_their_text(bert: Any) -> None:
    subject = bert.subject(("good film", "a bad end"))
    sequences: list[Any] = [subject.whole, subject.whole[::-1], subject.whole[1:], [1], [4, 0]]
    for sequence, parts in zip(sequences, subject.encode_all(sequences), strict=True):
        ids, kinds = parts[0][0].payload
        assert ids.tolist() == row_by_hand(subject, sequence)
        second = sum(subject._slots[unit] == 1 for unit in sequence)
        assert kinds.tolist() == [0] * (len(ids) - second - 1) + [1] * (second + 1)


def test_long_texts_are_cut_into_windows_of_equal_size(bert: Any) -> None:
    subject = bert.subject("good film " * 60, long="windows")
    whole = row_by_hand(subject, subject.whole)
    parts = subject.encode(subject.whole)
    bodies = [question.payload[0][1:-1].tolist() for question, _ in parts]
    assert [token for body in bodies for token in body] == whole[1:-1]
    assert max(map(len, bodies)) <= subject.limit
    assert max(map(len, bodies)) - min(map(len, bodies)) <= 1
    assert [weight for _, weight in parts] == [len(body) / (len(whole) - 2) for body in bodies]
    for question, _ in parts:
        assert question.payload[0][[0, -1]].tolist() == [whole[0], whole[-1]]


def test_a_cache_answers_the_second_run_with_the_same_bits(bert: Any, tmp_path: Any) -> None:
    plain = piste.explain(bert, "good film, a bad end", samples=60)
    first = piste.explain(bert, "good film, a bad end", samples=60, cache=tmp_path)
    answer = type(bert).answer
    asked: list[int] = []

    def counting(self: Any, questions: Any) -> Any:
        asked.append(len(questions))
        return answer(self, questions)

    type(bert).answer = counting
    try:
        second = piste.explain(bert, "good film, a bad end", samples=60, cache=tmp_path)
    finally:
        type(bert).answer = answer
    # What the classifier asks itself when it meets a text is not the engine's.
    assert sum(asked) <= 1
    assert first.calls == second.calls == plain.calls
    for name in plain.scores:
        assert np.array_equal(first.scores[name], second.scores[name])
        assert np.allclose(first.scores[name], plain.scores[name], rtol=1e-3, atol=1e-4)


def test_a_changed_model_finds_nothing_in_the_cache(wordpiece: Any, tmp_path: Any) -> None:
    from tests.conftest import FAMILIES, build

    model = build("bert", **FAMILIES["bert"][1])
    classifier = piste.load(model, wordpiece)
    with AnswerCache(tmp_path) as cache:
        piste.explain(classifier, "good film", samples=20, cache=cache)
        stored = len(cache)
        with torch.no_grad():
            model.classifier.bias += 1.0
        piste.explain(classifier, "good film", samples=20, cache=cache)
        assert len(cache) == 2 * stored


def test_functions_need_a_version_to_be_cached(tmp_path: Any) -> None:
    recorder = Recorder()
    with pytest.raises(PisteError, match="version='1'"):
        piste.explain(classifier(recorder), "one two three", samples=20, cache=tmp_path)
    for version, again in (("1", True), ("1", False), ("2", True)):
        named = piste.load(
            recorder, name="length", outputs="logits", kind="regression", version=version
        )
        recorder.heard.clear()
        piste.explain(named, "one two three", samples=20, cache=tmp_path)
        assert (sum(map(len, recorder.heard)) > 3) == again


def test_many_inputs_in_waves_give_what_each_gives_alone(
    reviews: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from piste import explanation_run

    texts = [f"A {word} film with a {word} end." for word in ("good", "bad", "dull", "fine", "odd")]
    alone = [piste.explain(reviews, text, samples=60) for text in texts]
    together = piste.explain(reviews, texts, samples=60)
    monkeypatch.setattr(explanation_run, "_WAVE", 1)
    in_waves = piste.explain(reviews, texts, samples=60)
    for one, pooled, wave in zip(alone, together, in_waves, strict=True):
        assert one.calls == pooled.calls == wave.calls
        for name in one.scores:
            assert np.allclose(one.scores[name], pooled.scores[name], rtol=1e-3, atol=1e-4)
            assert np.allclose(one.scores[name], wave.scores[name], rtol=1e-3, atol=1e-4)


def test_an_engine_forgets_what_no_other_input_needs(reviews: Any) -> None:
    subject = reviews.subject(
        "A slow start, but a wonderful ending, and so many more words to say."
    )
    engine = Engine(reviews)
    engine.ask([(subject, [subject.whole, [0], [1]])])
    asked = engine.asked
    engine.forget([subject])
    engine.ask([(subject, [[0], [1]])])
    assert engine.asked == asked, "short questions recur and are kept"
    engine.ask([(subject, [subject.whole])])
    assert engine.asked == asked + 1
