"""A library that calls the model itself, turned into one that plans and is answered."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import piste
import piste.methods
from piste.methods.conversation import Conversation
from tests.serve.asking import wait_for

REVIEW = "The start is awful, but the ending is wonderful and I heard the music."


def test_a_library_that_fails_is_heard() -> None:
    def work(game: Any) -> None:
        game(np.eye(2, dtype=bool))
        raise ZeroDivisionError("inside")

    talk = Conversation(work, seed=0)
    assert talk.step() is not None
    with pytest.raises(ZeroDivisionError, match="inside"):
        talk.step(np.zeros(2))


def test_an_abandoned_conversation_ends_its_thread() -> None:
    talk = Conversation(lambda game: game(np.eye(2, dtype=bool)), seed=0)
    talk.step()
    thread = talk._thread
    assert thread.is_alive()
    del talk
    thread.join(timeout=300)
    assert not thread.is_alive()


def test_a_failed_run_leaves_no_thread(reviews: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.active_count()

    def fail(self: Any, questions: Any) -> Any:
        if len(questions) > 40:
            raise ZeroDivisionError
        return answer(self, questions)

    answer = type(reviews).answer
    monkeypatch.setattr(type(reviews), "answer", fail)
    with pytest.raises(ZeroDivisionError):
        piste.explain(reviews, [REVIEW, REVIEW + " Good."], method="lime", samples=300)
    wait_for(lambda: threading.active_count() <= before)


def test_interleaved_conversations_draw_their_own_numbers() -> None:
    def work(game: Any) -> list[float]:
        drawn = []
        for _ in range(3):
            drawn.append(float(np.random.random()))
            game(np.ones((1, 1), dtype=bool))
        return drawn

    def run(*seeds: int) -> list[Any]:
        talks = [Conversation(work, seed) for seed in seeds]
        for talk in talks:
            talk.step()
        for _ in range(3):
            for talk in talks:
                talk.step(np.zeros(1))
        return [talk.result for talk in talks]

    assert run(1, 2) == [*run(1), *run(2)]
