"""Explanations in the making: a bounded queue, one worker, progress to follow, a way to cancel."""

from __future__ import annotations

import secrets
import threading
import time
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from piste.classifiers import Classifier
from piste.errors import PisteError
from piste.serve import schemas
from piste.serve.request_limits import (
    INTERNAL_ERROR,
    BusyError,
    Limits,
    MissingError,
    NotReadyError,
    StoppedError,
)

State: TypeAlias = Literal["waiting", "working", "done", "failed", "cancelled"]
Result = TypeVar("Result")
FINISHED: tuple[State, ...] = ("done", "failed", "cancelled")
_CANCELLED = "It was cancelled."


@dataclass(eq=False)
class Job(Generic[Result]):
    """One explanation. Its worker and its clients change it; the first end that comes counts."""

    id: str
    work: Callable[[Job[Result]], Result]
    limits: Limits
    model: str
    state: State = "waiting"
    stage: str = "waiting"
    done: int = 0
    total: int = 0
    step: int = 0
    steps: int = 1
    share: float = 0.0
    """How much of the work is done: it only grows."""
    problem: str | None = None
    result: Result | None = None
    classifier: Classifier | None = None
    """What was asked, if it was made for this job: a language model with one answer."""
    begun: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Its time begins."""
        with self.lock:
            self.state, self.begun = "working", time.monotonic()

    def begin(self, stage: str, step: int = 0, steps: int = 1) -> None:
        """The next stage of the work, and which of how many steps it is."""
        with self.lock:
            self.stage, self.done, self.total = stage, 0, 0
            self.step, self.steps = step, steps
            self.share = max(self.share, step / steps)
        self.check_active()

    def progress(self, done: int, total: int) -> None:
        """Called after every batch; the place where work is stopped."""
        with self.lock:
            self.done, self.total = done, total
            part = min(done / total, 1.0) if total else 0.0
            self.share = max(self.share, (self.step + part) / self.steps)
        self.check_active()

    def end(self, state: State, problem: str | None = None, result: Result | None = None) -> None:
        """It is finished, and lets go of its input; one that was finished before stays so."""
        with self.lock:
            if self.state in FINISHED:
                return
            self.state, self.problem, self.result = state, problem, result
            self.stage = "done" if state == "done" else self.stage
            self.work = _already_run

    def check_active(self) -> None:
        """Raise if nobody wants the result any more, or it takes too long."""
        if self.state == "cancelled":
            raise StoppedError(_CANCELLED)
        if time.monotonic() - self.begun > self.limits.seconds:
            raise StoppedError(
                f"It took longer than the {self.limits.seconds:g} seconds that this server gives: "
                "use fewer questions, fewer methods or a shorter input."
            )


class Jobs(Generic[Result]):
    """All jobs that are waited for or remembered, and the worker that does one after another.

    The worker starts with the first job, and again with one that is added after :meth:`close`.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._jobs: OrderedDict[str, Job[Result]] = OrderedDict()
        self._known: dict[str, str] = {}
        self._waiting: deque[Job[Result]] = deque()
        self._changed = threading.Condition()
        self._worker: threading.Thread | None = None
        self._stopping: threading.Thread | None = None

    def add(self, key: str, model: str, work: Callable[[Job[Result]], Result]) -> Job[Result]:
        """A new job, or one that was asked for the same before and is done.

        One that still runs is not shared: whoever asked for it may cancel it.
        """
        with self._changed:
            known = self._jobs.get(self._known.get(key, ""))
            if known is not None and known.state == "done":
                self._jobs.move_to_end(known.id)
                return known
            if len(self._waiting) >= self.limits.waiting:
                raise BusyError(
                    f"{len(self._waiting)} explanations are waiting, and this server keeps no "
                    "more in its queue: try again in a moment."
                )
            job = Job(secrets.token_urlsafe(16), work, self.limits, model)
            self._jobs[job.id], self._known[key] = job, job.id
            self._evict()
            self._waiting.append(job)
            self._changed.notify_all()
            if self._worker is None:
                self._worker = threading.Thread(target=self._run, name="piste-worker", daemon=True)
                self._worker.start()
        return job

    def get(self, name: str) -> Job[Result]:
        with self._changed:
            if name not in self._jobs:
                raise MissingError("There is no such explanation, or no longer: ask for it again.")
            self._jobs.move_to_end(name)
            return self._jobs[name]

    def finished(self, name: str) -> Result:
        """The result of a job that is done."""
        job = self.get(name)
        if job.result is None:
            reason = job.problem or f"It is {job.state}."
            raise NotReadyError(f"There is no explanation to show. {reason}")
        return job.result

    def cancel(self, name: str) -> Job[Result]:
        """What waits is dropped, what is done stays, what runs ends after its batch."""
        job = self.get(name)
        with self._changed:
            self._drop(job)
        return job

    def about(self, job: Job[Result]) -> schemas.Job:
        """How far it is."""
        with self._changed:
            ahead = self._waiting.index(job) if job in self._waiting else 0
        with job.lock:
            return schemas.Job(
                id=job.id, state=job.state, stage=job.stage, done=job.done, total=job.total,
                share=job.share, ahead=ahead, problem=job.problem,
            )  # fmt: skip

    def stop(self) -> None:
        """Cancel all that waits or runs; the worker goes when its batch is over."""
        with self._changed:
            for job in self._jobs.values():
                self._drop(job)
            self._stopping, self._worker = self._worker or self._stopping, None
            self._changed.notify_all()

    def close(self, timeout: float = 10.0) -> None:
        """Cancel all, and wait for the worker, but no longer than so many seconds."""
        self.stop()
        if self._stopping is not None:
            self._stopping.join(timeout=timeout)

    def _drop(self, job: Job[Result]) -> None:
        job.end("cancelled", _CANCELLED)
        if job in self._waiting:
            self._waiting.remove(job)

    def _evict(self) -> None:
        """Drop the oldest that are finished, beyond what is kept."""
        finished = [one.id for one in self._jobs.values() if one.state in FINISHED]
        for name in finished[: max(len(self._jobs) - self.limits.kept, 0)]:
            del self._jobs[name]
        self._known = {key: name for key, name in self._known.items() if name in self._jobs}

    def _next(self) -> Job[Result] | None:
        """The next job, as soon as there is one; None if this worker is to go."""

        def stopped() -> bool:
            return self._worker is not threading.current_thread()

        with self._changed:
            self._changed.wait_for(lambda: self._waiting or stopped())
            if stopped():
                return None
            job = self._waiting.popleft()
            job.start()
            return job

    def _run(self) -> None:
        while (job := self._next()) is not None:
            try:
                job.end("done", result=job.work(job))
            except (StoppedError, PisteError) as problem:
                job.end("failed", str(problem))
            except Exception:
                traceback.print_exc()  # for the server's log; the client is told no more
                job.end("failed", INTERNAL_ERROR)
            del job  # while the next is waited for, nothing of this one is held


def _already_run(job: Job[Any]) -> Any:
    raise AssertionError("a job runs once")
