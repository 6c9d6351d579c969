"""Progress: what is being done, once a wait gets long, on one bar that only grows."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias, Union

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar

from piste.errors import PisteError, shorten

if TYPE_CHECKING:
    from typing_extensions import Self

ProgressOption: TypeAlias = Union[bool, Callable[[int, int], None], "Progress", None]
"""None: a bar on a terminal after two seconds; True: at once; False: never; one that is open
already, to go on with; or a function that is called with the questions answered and expected."""

PATIENCE = 2.0
_EVERY = 0.1
"""Seconds between two drawings."""


class _Display:
    """The bar. A timer begins it, so that it comes in time whatever the program is busy with."""

    def __init__(self, wait: float) -> None:
        self._lock = threading.Lock()
        self._timer = threading.Timer(wait, self._begin)
        self._timer.daemon = True
        self._wait = wait
        self._bar: Bar | None = None
        self._closed = False
        self._share = 0.0
        self._known = False
        self._text = ("", "")
        self.part, self.parts = 0, 1
        """Which of how many parts of the work is under way: the bar is theirs together."""
        self.heading = ""

    def open(self) -> None:
        _open.append(self)
        if self._wait:
            self._timer.start()
        else:
            self._begin()

    def close(self) -> None:
        _open.remove(self)
        with self._lock:
            self._closed = True
            self._timer.cancel()
            if self._bar is not None:
                self._bar.stop()

    def update(self, title: str, share: float | None, numbers: str) -> None:
        """What is done now, and how much of this part; None if nobody knows."""
        with self._lock:
            heading = f"{self.heading}: " if self.heading else ""
            self._text = (heading + title, numbers)
            if share is not None or self.parts > 1:
                self._known = True
                self._share = max(self._share, (self.part + (share or 0.0)) / self.parts)
            self._draw()

    def _begin(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._bar = Bar(
                SpinnerColumn("line"),
                TextColumn("{task.description}", markup=False),
                BarColumn(30),
                TextColumn("{task.fields[numbers]}", markup=False),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,
            )
            self._bar.add_task("", total=None, numbers="")
            self._draw()
            self._bar.start()

    def _draw(self) -> None:
        if self._bar is not None:
            title, numbers = self._text
            self._bar.update(
                self._bar.task_ids[0],
                description=title,
                total=1.0 if self._known else None,
                completed=self._share,
                numbers=numbers,
            )


_open: list[_Display] = []
"""The bars that are on the screen, or will be if the work takes long."""


class Progress:
    """Counts what is done against what is planned, and shows it if it takes long.

    One that is made of another goes on with the other's bar, and so does one that is made without
    an option while there is a bar.
    """

    title = "asking the model"
    counted = ""
    """What is counted, where its rate is worth showing."""

    def __init__(self, option: ProgressOption = None) -> None:
        if option is not None and not isinstance(option, (bool, Progress)) and not callable(option):
            raise PisteError(
                "progress: expected True, False, None or a function of the questions answered and "
                f"expected, got {shorten(option)}."
            )
        self._call = option if callable(option) else None
        self._silent = option is False or bool(getattr(option, "silent", False))
        self._owner = not isinstance(option, Progress)
        self._display: _Display | None = None
        if isinstance(option, Progress):
            self._display, self._silent = option._display, option._silent
        elif option is None and _open:  # a terminal has room for one
            self._display, self._owner = _open[-1], False
        elif option is True or (option is None and sys.stderr.isatty()):
            self._display = _Display(0.0 if option is True else PATIENCE)
        self._drawn = 0.0
        self._begun: tuple[float, float] | None = None
        self._expected = 0
        self.done: float = 0
        self.total = 0

    def __enter__(self) -> Self:
        if self._display is not None:
            self._draw()
            if self._owner:
                self._display.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self._expected > self.total:
            self._expected = self.total  # it took fewer
            if self.total:
                self._tell()
        if self._display is not None:
            if self._begun is not None:
                self._draw()  # what was done since it was last drawn
            if self._owner:
                self._display.close()

    def say(self, sentence: str) -> None:
        """A line on standard error, unless nothing is to be shown."""
        if not self._silent:
            Console(stderr=True).print(sentence, highlight=False, markup=False, soft_wrap=True)

    def stage(self, title: str) -> None:
        """What is being done from now on; what is counted goes on."""
        self.title = title
        if self._display is not None:
            self._draw()

    def part(self, heading: str, number: int, parts: int) -> None:
        """The next of some parts, each with a progress made of this one."""
        if self._display is not None:
            self._display.heading, self._display.part = heading, number
            self._display.parts = parts

    def expect(self, questions: int) -> None:
        """About how many there will be in all, as far as they are not planned yet."""
        self._expected = questions

    def plan(self, questions: int) -> None:
        self.total += questions

    def advance(self, done: float) -> None:
        self.done += done
        self._tell()
        self.show()

    def show(self) -> None:
        """Draw the bar, if there is to be one and it is time."""
        if self._display is not None and time.perf_counter() - self._drawn >= _EVERY:
            self._draw()

    def _tell(self) -> None:
        if self._call is not None:
            self._call(int(self.done), max(self.total, self._expected))

    def _draw(self) -> None:
        assert self._display is not None
        self._drawn = now = time.perf_counter()
        total = max(self.total, self._expected)
        if self._begun is None or not total:  # nothing to ask: all was in the cache
            self._begun = (now, self.done) if total else None
            self._display.update(self.title, None, "")
            return
        begun, before = self._begun
        numbers = [f"{int(self.done):,} of {total:,} {self.counted}".rstrip()]
        if self.done > before and now > begun:
            rate = (self.done - before) / (now - begun)
            numbers += [f"{rate:,.1f} {self.counted}/s"] if self.counted else []
            if self._display.parts == 1 and self.done < total:
                numbers += [f"{duration((total - self.done) / rate)} left"]
        self._display.update(self.title, min(self.done / total, 1.0), ", ".join(numbers))


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(5), duration(600), duration(50_000), duration(1e6)
    ('5 s', '10 min', '13.9 h', '11.6 days')
    """
    for least, unit in ((172_800, "days"), (7200, "h"), (120, "min")):
        if seconds >= least:
            size = {"days": 86_400, "h": 3600, "min": 60}[unit]
            return f"{seconds / size:.{0 if unit == 'min' else 1}f} {unit}"
    return f"{seconds:.0f} s"
