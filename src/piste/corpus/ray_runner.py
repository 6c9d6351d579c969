"""A corpus run by many processes, on one machine or on a cluster, with Ray.

Workers hold the model and read the input themselves, so it must lie where all of them find it.
They hand their parts to the process that began the run, which alone writes: a worker that dies
costs the time of its block, and Ray gives that block to another.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from piste.classifiers import Classifier
from piste.corpus.blocks import Part
from piste.corpus.documents import Block
from piste.corpus.plan import Plan, explain_block
from piste.corpus.stages import Stage
from piste.data.tables import TableFile
from piste.errors import PisteError, need
from piste.vocabulary.corpus_prior import CorpusPrior

_PATIENCE = 5.0
"""Seconds a cluster has to answer."""


@dataclass(frozen=True)
class RayRunner:
    """Explains blocks on the cluster at an address, or on one that it starts here."""

    address: str | None = None
    workers: int | None = None

    def __call__(
        self, work: Iterator[Stage], classifier: Classifier, files: Sequence[TableFile]
    ) -> Iterator[Part]:
        ray: Any = need("ray", "ray", "--engine ray")
        first = next(work, None)
        if first is None:
            return
        _portable(first.plan)
        own = not ray.is_initialized()
        if own:
            _start(ray, self.address)
        try:
            yield from _parts(ray, chain([first], work), self.workers)
        finally:
            if own:
                ray.shutdown()


def _check_answers(address: str) -> None:
    """Refuse at once where nobody listens: Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return  # "auto" and the like
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except (OSError, OverflowError) as problem:
        raise PisteError(f"No Ray cluster answers at {address!r}: {problem}.") from problem


def _start(ray: Any, address: str | None) -> None:
    # Ray's own lines are about Ray; ours say how far the run is.
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    if address is not None:
        _check_answers(address)
    try:
        if address is None:
            ray.init(include_dashboard=False, **quiet)
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as problem:
        reason = str(problem).splitlines()[0]
        raise PisteError(f"No Ray cluster answers at {address!r}: {reason}") from problem


def _parts(ray: Any, work: Iterator[Stage], workers: int | None) -> Iterator[Part]:
    """The workers of the first stage do all others, too."""
    pool: list[Any] = []
    for stage in work:
        plan = _portable(stage.plan)
        if not pool:
            count = workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)
            # A worker that dies is started again, and so is the block it had.
            kind = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(_Worker)
            bare = replace(plan, prior=None)
            pool = [kind.remote(bare) for _ in range(count)]
        prior, blocks = ray.put(plan.prior), deque(stage.blocks)
        running: dict[Any, Any] = {}
        # None waits behind another: at the end, a free worker could not take it over.
        for worker in pool[: len(blocks)]:
            running[worker.answer.remote(blocks.popleft(), prior, plan.learns)] = worker
        while running:
            (done,), _ = ray.wait(list(running))
            worker = running.pop(done)
            if blocks:
                running[worker.answer.remote(blocks.popleft(), prior, plan.learns)] = worker
            yield _result(ray, done)


def _result(ray: Any, done: Any) -> Part:
    """A part; what went wrong in a worker is raised as it was there."""
    try:
        part: Part = ray.get(done)
    except ray.exceptions.RayTaskError as problem:
        cause = problem.cause
        raise (cause if isinstance(cause, PisteError) else problem) from None
    return part


class _Worker:
    """A process with the model. Numbers of blocks mostly rise, so it reads the input once."""

    def __init__(self, plan: Plan) -> None:
        import torch

        torch.set_num_threads(1)
        self._plan = plan
        self._files = plan.files()
        self._classifier = plan.load()
        self._blocks: Iterator[Block] = iter(())
        self._next = 0

    def answer(self, number: int, prior: CorpusPrior | None, learns: bool) -> Part:
        """The part of a block."""
        plan = replace(self._plan, prior=prior, learns=learns)
        return explain_block(plan, self._classifier, self._block(number))

    def _block(self, number: int) -> Block:
        if number < self._next or self._next == 0:
            self._blocks, self._next = self._plan.blocks(self._files), 0
        for block in self._blocks:
            self._next = block.number + 1
            if block.number == number:
                return block
        raise PisteError(
            f"Block {number} is not there on {os.uname().nodename}: its input is another one."
        )


def _portable(plan: Plan) -> Plan:
    """The same with paths that other processes understand."""
    if not isinstance(plan.input, (str, Path)):
        raise PisteError(
            "--engine ray reads the input in every process: write the table to a file first, "
            f"Parquet for example, got {type(plan.input).__name__}."
        )
    if not isinstance(plan.model, (str, Path)):
        raise PisteError(
            "--engine ray loads the model in every process: give its name or folder, not "
            f"{type(plan.model).__name__}."
        )
    model = str(plan.model)
    if Path(model).exists():
        model = str(Path(model).resolve())
    return replace(plan, input=str(Path(plan.input).resolve()), model=model)
