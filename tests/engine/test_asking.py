"""The engine: every question once, longest first, smaller when memory ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste import PisteError
from piste.engine import Engine, Progress
from piste.engine.batching import batches
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


def test_one_question_too_large_is_said_and_other_errors_pass() -> None:
    with pytest.raises(PisteError, match="does not fit into memory"):
        classifier(Recorder(memory=0)).subject("one two").ask([[0]])

    def broken(texts: list[str]) -> Any:
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        classifier(broken).subject("one two").ask([[0]])


def test_batches_stay_within_the_budget_and_lose_nothing() -> None:
    rng = np.random.default_rng(0)
    questions = [Question(str(k), int(rng.integers(1, 60)), None) for k in range(300)]
    made = batches(questions, 256)
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
