"""Progress that stays quiet on short work and never slows down long work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

if TYPE_CHECKING:
    from typing_extensions import Self

ProgressOption: TypeAlias = bool | Callable[[int, int], None] | None
"""None: a bar on a terminal after two seconds; True: at once; False: never; or a function that
is called with the questions answered and planned so far."""

PATIENCE = 2.0


class _Rate(ProgressColumn):
    """How many in a second."""

    def __init__(self, counted: str) -> None:
        super().__init__()
        self._counted = counted

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.1f} {self._counted}/s")


class Progress:
    """Counts what is done against what is planned, and shows it if it takes long."""

    title = "asking the model"
    counted = ""
    """What is counted, where its rate is worth showing."""

    def __init__(self, option: ProgressOption = None) -> None:
        self._call = option if callable(option) else None
        self._wait = 0.0 if option is True else PATIENCE
        self._hidden = option is False or (option is None and not sys.stderr.isatty())
        self._silent = option is False
        self._bar: Bar | None = None
        self._start = time.perf_counter()
        self._shown = 0.0
        self.done: float = 0
        self.total = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._shown = 0.0
            self.show()  # what was done since it was last drawn
            self._bar.stop()
            self._bar = None

    def say(self, sentence: str) -> None:
        """A line on standard error, unless nothing is to be shown."""
        if not self._silent:
            Console(stderr=True).print(sentence, highlight=False, markup=False, soft_wrap=True)

    def plan(self, questions: int) -> None:
        self.total += questions

    def advance(self, done: float) -> None:
        self.done += done
        if self._call is not None:
            self._call(int(self.done), self.total)
        self.show()

    def show(self) -> None:
        """Draw the bar, if there is to be one and it is time."""
        now = time.perf_counter()
        if self._hidden or self._call or now - self._start < self._wait or now - self._shown < 0.1:
            return
        self._shown = now
        if self._bar is None:
            self._bar = Bar(
                TextColumn(self.title),
                BarColumn(),
                MofNCompleteColumn(),
                *([_Rate(self.counted)] if self.counted else []),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.add_task("", total=self.total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=self.done, total=self.total)
