"""What is shown of long work: one bar that only grows, on a terminal, and nothing elsewhere."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

import piste
from piste.engine import progress
from piste.engine.progress import Progress, duration


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    written = io.StringIO()
    terminal = Console(file=written, force_terminal=True, width=100)
    monkeypatch.setattr(progress, "Console", lambda **_: terminal)
    return written


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """Titles and places of a bar that is drawn at once, and each time."""
    seen: list[tuple[str, float]] = []

    def update(self: Any, title: str, share: float | None, numbers: str) -> None:
        original(self, title, share, numbers)
        seen.append((self._text[0], self._share))

    original = progress._Display.update
    monkeypatch.setattr(progress._Display, "update", update)
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    return seen


def read(screen: io.StringIO) -> str:
    return Text.from_ansi(screen.getvalue()).plain


def test_short_work_and_pipes_show_nothing(screen: io.StringIO, monkeypatch: Any) -> None:
    for option in (None, False):  # standard error is no terminal here
        with Progress(option) as shown:
            shown.stage("loading the model")
            shown.plan(1)
            shown.advance(1)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Progress() as shown:
        shown.stage("loading the model")
    assert read(screen) == ""


def test_a_long_wait_is_shown_though_nothing_advances(
    screen: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()
    begin = progress._Display._begin

    def watched(self: Any) -> None:
        begin(self)
        begun.set()

    monkeypatch.setattr(progress._Display, "_begin", watched)
    monkeypatch.setattr(progress, "PATIENCE", 0.001)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Progress() as shown:
        shown.stage("loading the model")
        assert begun.wait(60)
    assert "loading the model" in read(screen)


def test_the_bar_only_grows_over_rounds_and_parts(
    screen: io.StringIO, drawn: list[tuple[str, float]]
) -> None:
    with Progress(True) as shown:
        for number, name in enumerate(("first", "second")):
            shown.part(name, number, 2)
            with Progress(shown) as one:
                one.expect(10)
                for questions in (4, 4, 12):  # more than expected
                    one.plan(questions)
                    one.advance(questions)
    shares = [share for _, share in drawn]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert any(title.startswith("second: ") for title, _ in drawn)


def test_an_explanation_is_one_bar(screen: io.StringIO, drawn: list[tuple[str, float]]) -> None:
    loud = piste.load(lambda texts: [text.count("!") for text in texts])
    with Progress(True) as shown:
        piste.compare(loud, "Stop it now , please !", ["slalom", "occlusion"], progress=shown)
    shares = [share for _, share in drawn]
    assert shares == sorted(shares)
    stages = {title for title, _ in drawn}
    assert {"slalom: asking the model", "slalom: solving", "occlusion: asking the model"} <= stages


def test_there_is_one_bar_at_a_time(
    screen: io.StringIO, drawn: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work within work that is shown, and was not told so, as a page with an answer."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Progress(True) as shown:
        shown.stage("writing a page")
        with Progress() as inner:
            inner.stage("solving")
            assert inner._display is shown._display
        assert progress._open == [shown._display]
    assert not progress._open
    assert [title for title, _ in drawn if title != "asking the model"] == [
        "writing a page",
        "solving",
    ]
    with Progress() as later:
        assert later._display is not shown._display


def test_a_function_hears_of_growing_shares() -> None:
    seen: list[tuple[int, int]] = []
    loud = piste.load(lambda texts: [text.count("!") for text in texts])
    piste.explain(loud, "Stop it now , please !", progress=lambda *now: seen.append(now))
    shares = [done / total for done, total in seen]
    assert shares == sorted(shares)
    assert seen[-1][0] == seen[-1][1]


def test_seconds_as_people_say_them() -> None:
    assert duration(119) == "119 s"
    assert duration(7300) == "2.0 h"


def test_nothing_to_ask_is_no_error(tmp_path: Path) -> None:
    """All answers of the second run come from the cache."""
    loaded = piste.load(lambda texts: [text.count("!") for text in texts], version="1")
    told: list[tuple[int, int]] = []
    for shown in (True, True, lambda done, total: told.append((done, total))):
        piste.explain(loaded, "Stop it now !", samples=20, cache=tmp_path, progress=shown)
    assert all(total for _, total in told)
