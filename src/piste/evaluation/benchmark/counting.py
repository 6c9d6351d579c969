"""Progress over examples, with the time that is left."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from piste.engine.progress import PATIENCE, ProgressOption


class ExampleProgress:
    """Counts examples, each in as many steps as there are methods; quiet on short work.

    The option is that of :class:`piste.engine.Progress`; a function gets the number of examples
    done and of all.
    """

    def __init__(self, option: ProgressOption, done: int, total: int, steps: int) -> None:
        self._call = option if callable(option) else None
        self._wait = 0.0 if option is True else PATIENCE
        self._hidden = option is False or (option is None and not sys.stderr.isatty())
        self._start = time.perf_counter()
        self._bar: Progress | None = None
        self._steps = max(steps, 1)
        self._first, self._done, self._total = done, float(done), total

    def __enter__(self) -> ExampleProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self) -> None:
        """One method of an example is explained."""
        # Never a whole example before it is judged and stored.
        self._done += 0.9 / self._steps
        self._show()

    def example(self) -> None:
        """An example is finished."""
        self._done = float(int(self._done) + 1)
        if self._call is not None:
            self._call(int(self._done), self._total)
        self._show()

    def _show(self) -> None:
        if self._hidden or self._call or time.perf_counter() - self._start < self._wait:
            return
        if self._bar is None:
            self._bar = Progress(
                TextColumn("evaluating"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("examples"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.add_task("", total=self._total, completed=self._first)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=self._done)
