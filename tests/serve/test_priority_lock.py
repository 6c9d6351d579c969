"""One at a time, long work lends, and too many are refused."""

from __future__ import annotations

import threading

import pytest

from piste.serve.http_errors import BusyError
from piste.serve.priority_lock import Turns
from tests.serve.asking import PATIENCE, wait_for


def joined(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


class Visitor(threading.Thread):
    """Asks for a short turn, and tells what it met."""

    def __init__(self, turns: Turns, diary: list[str], name: str) -> None:
        super().__init__(daemon=True)
        self.turns, self.diary, self.called = turns, diary, name

    def run(self) -> None:
        with self.turns.short():
            self.diary.append(self.called)


def test_short_turns_wait_for_the_long_one_and_get_in_when_it_lends():
    turns, diary = Turns(most=3), []
    with turns.long():
        visitors = [Visitor(turns, diary, "short") for _ in range(3)]
        for visitor in visitors:
            visitor.start()
        wait_for(lambda: turns._waiting == 3)
        diary.append("long")
        turns.lend()
        diary.append("long again")
    joined(*visitors)
    assert diary == ["long", "short", "short", "short", "long again"]


def test_without_lending_short_turns_come_after_the_long_one():
    turns, diary = Turns(most=3), []
    with turns.long():
        visitor = Visitor(turns, diary, "short")
        visitor.start()
        wait_for(lambda: turns._waiting == 1)
        diary.append("long")
    joined(visitor)
    assert diary == ["long", "short"]


@pytest.mark.parametrize("first", ["short", "long"])
def test_a_long_turn_waits_for_any_other(first):
    turns, diary = Turns(most=3), []

    def long() -> None:
        diary.append("asked")
        with turns.long():
            diary.append("long")

    asking = threading.Thread(target=long, daemon=True)
    with turns.short() if first == "short" else turns.long():
        asking.start()
        wait_for(lambda: diary == ["asked"])
        asking.join(0.05)  # time enough to come in, if it could
        diary.append("first")
    joined(asking)
    assert diary == ["asked", "first", "long"]


def test_too_many_who_wait_are_refused_and_the_others_still_served():
    turns, diary = Turns(most=2), []
    with turns.long():
        visitors = [Visitor(turns, diary, "short") for _ in range(2)]
        for visitor in visitors:
            visitor.start()
        wait_for(lambda: turns._waiting == 2)
        with pytest.raises(BusyError, match="try again"), turns.short():
            pass
    joined(*visitors)
    assert diary == ["short", "short"]
    with turns.short():
        pass  # nobody waits any more


def test_a_turn_ends_also_with_an_exception():
    turns = Turns(most=1)
    with pytest.raises(RuntimeError), turns.long():
        raise RuntimeError
    with pytest.raises(RuntimeError), turns.short():
        raise RuntimeError
    with turns.long():
        turns.lend()  # nobody waits: at once


def test_never_two_at_once_among_many_threads():
    turns = Turns(most=100)
    inside, most = 0, 0

    def noted() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        inside -= 1

    def short() -> None:
        for _ in range(50):
            with turns.short():
                noted()

    def long() -> None:
        for _ in range(20):
            with turns.long():
                for _ in range(10):
                    noted()
                    turns.lend()

    threads = [threading.Thread(target=act, daemon=True) for act in [short] * 8 + [long] * 2]
    for thread in threads:
        thread.start()
    joined(*threads)
    assert most == 1
