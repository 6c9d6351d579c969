"""A real server, and pages in a real browser that may not complain or ask anybody else."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

TEXT = (
    "The two actors are not bad at all, and the ending is wonderful, but the first half hour is "
    "slow and the jokes are awful."
)
expect.set_options(timeout=120_000)
CHROMIUM = os.environ.get("PISTE_CHROMIUM") or shutil.which("chromium") or ""


def start(*options: str) -> tuple[subprocess.Popen[str], str]:
    """A server of its own, and its address."""
    server = subprocess.Popen(
        [sys.executable, "-m", "piste.cli", "serve", "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.search(r"http://\S+", line):
            return server, found.group()
    raise AssertionError("the server did not start")


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    server, found = start("-m", "piste:reviews", "-m", "piste:fashion")
    yield found
    server.send_signal(signal.SIGINT)
    assert server.wait(300) in (0, 130)
    assert server.stderr is not None
    assert "Traceback" not in server.stderr.read()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages; in the end none of them may have complained, or asked another host."""
    contexts, complaints, asked = [], [], []

    def open_page(where: str, **options: object) -> Page:
        context = browser.new_context(**({"viewport": {"width": 1400, "height": 1000}} | options))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(240_000)
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda request: asked.append((where, request.url)))
        page.goto(where)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    for where, url in asked:
        if urlsplit(url).scheme not in ("data", "blob", "about"):
            assert urlsplit(url).netloc == urlsplit(where).netloc


def explain(page: Page, text: str = TEXT, methods: tuple[str, ...] = ()) -> None:
    """Type a text, choose further methods, and wait for what comes."""
    page.fill("#piste-text", text)
    for method in methods:
        page.check(f"input[value={method}]")
    page.keyboard.press("Escape")
    page.click(".piste-go")
    page.wait_for_selector(".piste-result .piste-checks tbody tr")


def word(text: str) -> str:
    """A word of the text, as it is shown first."""
    return f".piste-marked >> nth=0 >> .piste-unit:text-is('{text}')"
