"""A corpus run by many processes, on one machine or on a cluster, with Ray Data.

Workers hold the model and read the input themselves, so it must lie where all of them find it.
They hand their parts to the process that began the run, which alone writes: a worker that dies
costs the time of its block, and Ray gives that block to another.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from piste.classifiers import Classifier
from piste.corpus.blocks import Part
from piste.corpus.documents import Block, RefusedDocument
from piste.corpus.plan import Plan, explain_block
from piste.data.tables import TableFile
from piste.errors import PisteError, need

_PATIENCE = 5.0
"""Seconds a cluster has to answer."""


@dataclass(frozen=True)
class RayRunner:
    """Explains blocks on the cluster at an address, or on one that it starts here."""

    address: str | None = None
    workers: int | None = None

    def __call__(
        self, plan: Plan, classifier: Classifier, files: Sequence[TableFile], left: Sequence[int]
    ) -> Iterator[Part]:
        ray: Any = need("ray", "ray", "--engine ray")
        handed = _portable(plan)
        if not left:
            return
        own = not ray.is_initialized()
        if own:
            _start(ray, self.address)
        try:
            yield from _parts(ray, handed, left, self.workers)
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


def _parts(ray: Any, plan: Plan, left: Sequence[int], workers: int | None) -> Iterator[Part]:
    data: Any = need("ray.data", "ray", "--engine ray")
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # not before: the import sets it up
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    count = workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)
    items = [{"block": number} for number in left]
    answered = data.from_items(items, override_num_blocks=len(left)).map_batches(
        _Worker,
        batch_size=1,
        # None waits behind another: at the end, a free worker could not take it over.
        compute=data.ActorPoolStrategy(size=min(count, len(left)), max_tasks_in_flight_per_actor=1),
        fn_constructor_args=(plan,),
        num_cpus=1,
    )
    for row in answered.iter_rows():
        yield _unpacked(row)


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

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        rows = [self._answer(int(number)) for number in batch["block"]]
        return {name: _column([row[name] for row in rows]) for name in rows[0]}

    def _answer(self, number: int) -> dict[str, Any]:
        return _packed(explain_block(self._plan, self._classifier, self._block(number)))

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


def _column(cells: list[Any]) -> Any:
    """Bytes are kept as they are: a NumPy array of bytes would drop zeros at their end."""
    if not isinstance(cells[0], bytes):
        return np.array(cells)
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


def _packed(part: Part) -> dict[str, Any]:
    return {
        "number": part.number,
        "documents": part.documents,
        "units": part.units,
        "errors": part.errors.encode(),
        "rows": part.rows,
        "calls": part.calls,
    }


def _unpacked(row: dict[str, Any]) -> Part:
    lines = [json.loads(line) for line in row["errors"].decode().split("\n") if line]
    refused = tuple(RefusedDocument(one["document"], one["source"], one["reason"]) for one in lines)
    numbers = (int(row[name]) for name in ("rows", "calls"))
    return Part(int(row["number"]), row["documents"], row["units"], refused, *numbers)


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
