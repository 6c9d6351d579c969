"""Two texts or two models side by side, words that are edited, and what was tried before."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import explain, start

TEXT = "A slow start, but a wonderful ending."


@pytest.fixture(scope="module")
def two(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server with two models of the same labels."""
    server, found = start("-m", "piste:reviews", "-m", "piste:reviews-gpt")
    yield found
    server.send_signal(signal.SIGINT)
    assert server.wait(20) in (0, 130)


def kept(page: Page) -> None:
    explain(page, TEXT)
    page.get_by_role("button", name="Compare with another text or model").click()
    expect(page.locator(".piste-keeping")).to_contain_text(f"Compared with “{TEXT}”")


@pytest.mark.parametrize("width", [1280, 390])
def test_an_edited_word_changes_answer_and_explanation(opened, two, width):
    page = opened(two, viewport={"width": width, "height": 800})
    kept(page)
    page.fill("#piste-text", TEXT.replace("wonderful", "dreadful"))  # nothing else is pressed
    both = page.locator(".piste-difference")
    expect(both.locator("h2")).to_have_text(re.compile(r"positive .*% → negative .*%"))
    expect(both.locator(".piste-told")).to_contain_text("wonderful → dreadful (−")
    expect(both).to_contain_text("Side by side: two texts")
    expect(both.locator("tbody th").first).to_have_text("wonderful → dreadful")
    texts = both.locator(".piste-marked")
    assert texts.nth(0).inner_text() == TEXT
    assert "dreadful" in texts.nth(1).inner_text()
    texts.nth(0).locator(".piste-unit", has_text="wonderful").hover()
    expect(both.locator(".piste-on")).to_have_count(3)  # in both texts, and in the table
    assert page.evaluate("document.activeElement.id") == "piste-text"
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_removed_words_stand_beside_what_was_predicted(opened, two):
    page = opened(two)
    kept(page)
    page.fill("#piste-text", "A slow start, but a ending.")
    told = page.locator(".piste-told")
    expect(told).to_contain_text("Only words were removed. The first explanation predicted")
    expect(told).to_contain_text("off by")
    shared = opened(page.url)
    expect(shared.locator(".piste-told")).to_have_text(told.text_content())
    shared.get_by_role("button", name="Stop comparing").click()
    expect(shared.locator(".piste-difference")).to_be_hidden()
    assert "before=" not in shared.url


def test_two_models_explain_one_text(opened, two):
    page = opened(two)
    kept(page)
    page.select_option("select[name=model]", "piste:reviews-gpt")
    both = page.locator(".piste-difference")
    expect(both).to_contain_text("piste:reviews and piste:reviews-gpt, one text")
    expect(both.locator(".piste-marked")).to_have_text([TEXT, TEXT])


def test_what_was_tried_can_be_opened_again(opened, two):
    page = opened(two)
    explain(page, TEXT)
    first = page.locator("h1").inner_text()
    explain(page, "What a dull, stupid mess <img src=x onerror=window.hit=1>.")
    expect(page.locator("h1")).to_contain_text("negative")
    page.locator(".piste-history summary").focus()
    page.keyboard.press("Enter")
    entries = page.locator(".piste-history li a")
    expect(entries).to_have_count(2)
    expect(entries.first).to_contain_text("<img src=x")
    assert entries.nth(1).get_attribute("href").startswith("#model=piste%3Areviews&text=A+slow")
    entries.nth(1).click()
    expect(page.locator("h1")).to_have_text(first)
    assert page.input_value("#piste-text") == TEXT
    expect(entries.first).to_contain_text(TEXT)  # what was opened last comes first
    page.reload()
    page.locator(".piste-history summary").click()
    expect(entries).to_have_count(2)
    assert page.evaluate("window.hit") is None
    page.get_by_role("button", name="Forget all").click()
    expect(page.locator(".piste-history")).to_be_hidden()
    assert page.evaluate("localStorage.getItem('piste-history')") == "[]"


def test_other_visitors_see_nothing_of_it(opened, two):
    page = opened(two)
    explain(page, TEXT)
    expect(page.locator(".piste-history")).to_be_visible()
    expect(opened(two).locator(".piste-history")).to_be_hidden()


@pytest.mark.parametrize("stored", ["not JSON", '{"a": 1}', '[1, {"hash": "javascript:x"}]'])
def test_a_broken_history_is_none(opened, two, stored):
    page = opened(two)
    page.evaluate("text => localStorage.setItem('piste-history', text)", stored)
    page.reload()
    expect(page.locator(".piste-history")).to_be_hidden()
    explain(page, TEXT)
    expect(page.locator(".piste-history")).to_be_visible()
