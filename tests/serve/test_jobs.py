"""The queue: bounded, followed, cancelled, remembered, and never stopped by what goes wrong."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest

from piste.errors import PisteError
from piste.serve.jobs import Job, Jobs
from piste.serve.request_limits import (
    INTERNAL_ERROR,
    BusyError,
    Limits,
    MissingError,
    NotReadyError,
)
from tests.serve.asking import TIMEOUT, wait_for

Made = Callable[..., Jobs[str]]


@pytest.fixture
def made() -> Iterator[Made]:
    """Queues that are closed after the test."""
    queues: list[Jobs[str]] = []

    def make(**limits: float) -> Jobs[str]:
        queues.append(Jobs(Limits(**limits)))  # type: ignore[arg-type]  # the fields' own types
        return queues[-1]

    yield make
    for one in queues:
        one.close()


class Gate:
    """Work that goes on only when it is opened, batch by batch."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, job: Job[str]) -> str:
        job.begin("asking")
        self.entered.set()
        while not self.opened.wait(0.005):
            job.progress(1, 2)
        job.progress(2, 2)
        return "made"


def finished(job: Job[str]) -> None:
    wait_for(lambda: job.state in ("done", "failed", "cancelled"))


def quick(job: Job[str]) -> str:
    return f"of {job.model}"


def test_a_job_is_done_and_its_result_remembered(made):
    jobs = made()
    job = jobs.add("key", "model", quick)
    finished(job)
    assert jobs.finished(job.id) == "of model"
    about = jobs.about(job)
    assert (about.state, about.stage, about.problem, about.ahead) == ("done", "done", None, 0)


def test_what_is_not_done_has_no_result(made):
    jobs, gate = made(), Gate()
    job = jobs.add("key", "model", gate)
    assert gate.entered.wait(TIMEOUT)
    with pytest.raises(NotReadyError, match="working"):
        jobs.finished(job.id)
    with pytest.raises(MissingError):
        jobs.get("another")
    gate.opened.set()
    finished(job)
    assert jobs.finished(job.id) == "made"


def test_progress_and_places_in_the_queue(made):
    jobs, gate = made(), Gate()
    first = jobs.add("1", "model", gate)
    assert gate.entered.wait(TIMEOUT)
    second, third = jobs.add("2", "model", quick), jobs.add("3", "model", quick)
    wait_for(lambda: jobs.about(first).done == 1)
    about = jobs.about(first)
    assert (about.state, about.stage, about.total) == ("working", "asking", 2)
    assert [jobs.about(one).ahead for one in (first, second, third)] == [0, 0, 1]
    jobs.cancel(second.id)
    assert jobs.about(third).ahead == 0, "one that was cancelled is before nobody"
    gate.opened.set()
    finished(third)


def test_the_share_only_grows(made):
    seen: list[float] = []

    def work(job: Job[str]) -> str:
        for step in range(3):
            job.begin(f"step {step}", step, 3)
            for done, total in ((5, 10), (10, 10), (10, 40)):  # more came up than was expected
                job.progress(done, total)
                seen.append(job.share)
        return "made"

    finished(made().add("1", "model", work))
    assert seen == sorted(seen)
    assert seen[0] == 0.5 / 3
    assert seen[-1] == 1.0


def test_the_queue_is_bounded_and_a_cancelled_job_leaves_its_place(made):
    jobs, gate = made(waiting=2), Gate()
    running = jobs.add("0", "model", gate)
    assert gate.entered.wait(TIMEOUT)
    waiting = [jobs.add(key, "model", quick) for key in "12"]
    with pytest.raises(BusyError, match="2 explanations are waiting"):
        jobs.add("3", "model", quick)
    jobs.cancel(waiting[0].id)
    late = jobs.add("3", "model", quick)
    gate.opened.set()
    finished(late)
    assert [one.state for one in (running, *waiting, late)] == ["done", "cancelled", "done", "done"]


def test_the_same_request_is_the_same_job_once_it_is_done(made):
    jobs, gate = made(), Gate()
    first = jobs.add("key", "model", gate)
    assert gate.entered.wait(TIMEOUT)
    other = jobs.add("key", "model", quick)
    assert other is not first, "who cancels the one must not take it from the other"
    jobs.cancel(other.id)
    gate.opened.set()
    finished(first)
    assert first.state == "done"
    first = jobs.add("key", "model", quick)
    finished(first)
    assert jobs.add("key", "model", quick) is first
    assert jobs.add("other key", "model", quick) is not first

    def wrong(job: Job[str]) -> str:
        raise PisteError("It can't be.")

    failed = jobs.add("wrong", "model", wrong)
    finished(failed)
    again = jobs.add("wrong", "model", quick)
    finished(again)
    assert again is not failed
    assert again.state == "done"


def test_cancelling_what_runs_stops_it_after_its_batch(made):
    jobs, gate = made(), Gate()
    job = jobs.add("key", "model", gate)
    assert gate.entered.wait(TIMEOUT)
    assert jobs.cancel(job.id).state == "cancelled"
    after = jobs.add("after", "model", quick)
    finished(after)  # the gate was never opened, so the worker has left it
    assert jobs.about(job).problem == "It was cancelled."
    with pytest.raises(NotReadyError, match="cancelled"):
        jobs.finished(job.id)


def test_what_is_cancelled_in_its_last_moment_stays_cancelled(made):
    jobs = made()
    left, told = threading.Event(), threading.Event()

    def blind(job: Job[str]) -> str:
        told.set()
        left.wait(TIMEOUT)
        return "too late"

    job = jobs.add("key", "model", blind)
    assert told.wait(TIMEOUT)
    jobs.cancel(job.id)
    left.set()
    finished(jobs.add("after", "model", quick))
    assert (job.state, job.result) == ("cancelled", None)


def test_what_is_done_can_not_be_cancelled(made):
    jobs = made()
    job = jobs.add("key", "model", quick)
    finished(job)
    assert jobs.cancel(job.id).state == "done"
    assert jobs.finished(job.id) == "of model"


def test_the_time_is_limited(made):
    jobs, gate = made(seconds=0.05), Gate()
    job = jobs.add("key", "model", gate)  # never opened
    finished(job)
    assert job.state == "failed"
    assert "longer than the 0.05 seconds" in (job.problem or "")


def test_the_oldest_that_are_finished_are_forgotten(made):
    jobs = made(kept=3)
    first = jobs.add("0", "model", quick)
    finished(first)
    second = jobs.add("1", "model", quick)
    finished(second)
    jobs.get(first.id)  # asked about: no longer the oldest
    for key in "234":
        finished(jobs.add(key, "model", quick))
    with pytest.raises(MissingError, match="no longer"):
        jobs.get(second.id)
    assert len(jobs._jobs) == 3
    assert len(jobs._known) == 3
    assert jobs.add("1", "model", quick) is not second


def test_what_waits_is_not_forgotten(made):
    jobs, gate = made(kept=1), Gate()
    running = jobs.add("0", "model", gate)
    assert gate.entered.wait(TIMEOUT)
    waiting = [jobs.add(key, "model", quick) for key in "123"]
    assert all(jobs.get(one.id) is one for one in (running, *waiting))
    gate.opened.set()
    finished(waiting[-1])


def test_the_worker_survives_what_goes_wrong(made, capfd):
    jobs = made()

    def broken(job: Job[str]) -> str:
        raise ZeroDivisionError("/a/secret/path")

    def refused(job: Job[str]) -> str:
        raise PisteError("The text is too short.")

    failed, told, well = (jobs.add(str(work), "model", work) for work in (broken, refused, quick))
    finished(well)
    assert (failed.state, failed.problem) == ("failed", INTERNAL_ERROR)
    assert (told.state, told.problem) == ("failed", "The text is too short.")
    assert well.state == "done"
    log = capfd.readouterr().err
    assert "ZeroDivisionError" in log, "whoever runs the server must learn it"
    assert "too short" not in log, "a problem of the client's is none of the log's"


@pytest.mark.parametrize("end", ["done", "cancelled while waiting", "cancelled while running"])
def test_a_finished_job_lets_go_of_its_input(made, end):
    class Pixels:
        pass

    jobs, gate, before = made(), Gate(), Gate()
    if end == "cancelled while waiting":
        jobs.add("before", "model", before)
        assert before.entered.wait(TIMEOUT)

    def make() -> tuple[Job[str], weakref.ref[Pixels]]:
        pixels = Pixels()

        def work(job: Job[str]) -> str:
            assert pixels is not None
            return gate(job)

        return jobs.add("key", "model", work), weakref.ref(pixels)

    job, held = make()
    assert held() is not None
    if end == "done":
        gate.opened.set()
    if end == "cancelled while running":
        assert gate.entered.wait(TIMEOUT)
    if end != "done":
        jobs.cancel(job.id)
    finished(job)
    before.opened.set()
    finished(jobs.add("after", "model", quick))
    gc.collect()
    assert held() is None


def test_many_threads_at_once(made):
    jobs = made(waiting=1000, kept=1000)
    found: list[tuple[str, Job[str]]] = []

    def visit(number: int) -> None:
        for step in range(20):
            key = str(step if number % 2 else 100 * (number + 1) + step)
            job = jobs.add(key, key, quick)
            found.append((key, job))
            jobs.about(job)
            if step % 5 == 0 and number % 2 == 0:
                jobs.cancel(job.id)

    clients = [threading.Thread(target=visit, args=(number,)) for number in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(TIMEOUT)
    for key, job in found:
        finished(job)
        if job.state == "done":
            assert job.result == f"of {key}"
    shared = [job for key, job in found if key == "3"]
    assert len(shared) == 4
    assert jobs.add("3", "3", quick) in shared, "what is done by now is not done again"


def test_closing_cancels_all_and_the_queue_can_be_used_again(made):
    jobs, gate = made(), Gate()
    running = jobs.add("1", "model", gate)
    assert gate.entered.wait(TIMEOUT)
    waiting = jobs.add("2", "model", quick)
    worker = jobs._worker
    jobs.stop()  # the server says so first, and waits later
    jobs.close()
    assert (running.state, waiting.state) == ("cancelled", "cancelled")
    assert worker is not None
    assert not worker.is_alive()
    later = jobs.add("3", "model", quick)
    finished(later)
    assert later.state == "done"
