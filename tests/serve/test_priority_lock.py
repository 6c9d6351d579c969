"""One at a time, background work yields, and too many are refused."""

from __future__ import annotations

import threading

import pytest

from piste.serve.priority_lock import PriorityLock
from piste.serve.request_limits import BusyError
from tests.serve.asking import TIMEOUT, wait_for


def joined(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive()


class Client(threading.Thread):
    """Takes the lock in the foreground, and notes when."""

    def __init__(self, lock: PriorityLock, order: list[str], name: str) -> None:
        super().__init__(daemon=True)
        self.lock, self.order, self.called = lock, order, name

    def run(self) -> None:
        with self.lock.foreground():
            self.order.append(self.called)


def test_foreground_waits_for_background_until_it_yields():
    lock, order = PriorityLock(max_waiting=3), []
    with lock.background():
        clients = [Client(lock, order, "short") for _ in range(3)]
        for client in clients:
            client.start()
        wait_for(lambda: lock._waiting == 3)
        order.append("long")
        lock.yield_lock()
        order.append("long again")
    joined(*clients)
    assert order == ["long", "short", "short", "short", "long again"]


def test_without_a_yield_the_foreground_comes_last():
    lock, order = PriorityLock(max_waiting=3), []
    with lock.background():
        client = Client(lock, order, "short")
        client.start()
        wait_for(lambda: lock._waiting == 1)
        order.append("long")
    joined(client)
    assert order == ["long", "short"]


@pytest.mark.parametrize("first", ["short", "long"])
def test_background_waits_for_any_other(first):
    lock, order = PriorityLock(max_waiting=3), []

    def long() -> None:
        order.append("asked")
        with lock.background():
            order.append("long")

    asking = threading.Thread(target=long, daemon=True)
    with lock.foreground() if first == "short" else lock.background():
        asking.start()
        wait_for(lambda: order == ["asked"])
        asking.join(0.05)  # time enough to come in, if it could
        order.append("first")
    joined(asking)
    assert order == ["asked", "first", "long"]


def test_too_many_who_wait_are_refused_and_the_others_still_served():
    lock, order = PriorityLock(max_waiting=2), []
    with lock.background():
        clients = [Client(lock, order, "short") for _ in range(2)]
        for client in clients:
            client.start()
        wait_for(lambda: lock._waiting == 2)
        with pytest.raises(BusyError, match="try again"), lock.foreground():
            pass
    joined(*clients)
    assert order == ["short", "short"]
    with lock.foreground():
        pass  # nobody waits any more


def test_a_turn_ends_also_with_an_exception():
    lock = PriorityLock(max_waiting=1)
    with pytest.raises(RuntimeError), lock.background():
        raise RuntimeError
    with pytest.raises(RuntimeError), lock.foreground():
        raise RuntimeError
    with lock.background():
        lock.yield_lock()  # nobody waits: at once


def test_never_two_at_once_among_many_threads():
    lock = PriorityLock(max_waiting=100)
    inside, most = 0, 0

    def noted() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        inside -= 1

    def short() -> None:
        for _ in range(50):
            with lock.foreground():
                noted()

    def long() -> None:
        for _ in range(20):
            with lock.background():
                for _ in range(10):
                    noted()
                    lock.yield_lock()

    threads = [threading.Thread(target=act, daemon=True) for act in [short] * 8 + [long] * 2]
    for thread in threads:
        thread.start()
    joined(*threads)
    assert most == 1
