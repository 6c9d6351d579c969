"""A language model on the page: spans of its answer are selected, and the prompt is recoloured."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import piste
from tests.browser.conftest import start
from tests.language_models import save_language_model

PROMPT = "{context}\n\nquestion : {question} ?\nanswer :"
DOCUMENTS = ["the tower stands in paris . it was 1889 .", "the man walked on the moon in 1969 ."]
QUESTION = "when did the man"
ANSWER = "the year was 1969 . the man was first ."
COLOURS = "all => all.map(one => one.style.background)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_language_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def answering(folder: Path) -> Iterator[str]:
    """A server with a language model that answers questions about documents."""
    server, found = start("-m", str(folder), "--prompt", PROMPT)
    yield found
    server.send_signal(signal.SIGINT)
    assert server.wait(300) in (0, 130)


@pytest.fixture(scope="module")
def file(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a standalone page."""
    model = piste.load(folder, prompt=PROMPT, pinned=["question"], name="tiny")
    values = {"context": DOCUMENTS, "question": QUESTION}
    e = piste.explain(model, values, answer=ANSWER, samples=60)
    path = tmp_path_factory.mktemp("pages") / "answer.html"
    e.to_html(path)
    return path.as_uri()


def colours(page: Page) -> Any:
    return page.eval_on_selector_all(".piste-unit", COLOURS)


def word(page: Page, number: int) -> Any:
    return page.locator(f".piste-word[data-w='{number}']")


@pytest.mark.parametrize("width", [1280, 400])
def test_a_file_recolours_the_prompt_offline(opened, file, width):
    page = opened(file, viewport={"width": width, "height": 900}, offline=True)
    whole, said = colours(page), page.locator(".piste-span")
    expect(said).to_be_empty()
    word(page, 3).click()
    expect(said).to_contain_text("“1969” (log-probability")
    expect(said).to_contain_text("R²")
    assert colours(page) != whole
    expect(word(page, 3)).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".piste-above")).to_have_text("makes “1969” likelier")
    expect(page.locator(".piste-of-whole").first).to_be_visible()
    word(page, 6).click(modifiers=["Shift"])
    expect(said).to_contain_text("the sum of the contributions of its 4 words")
    page.get_by_role("button", name="Back to the whole answer").click()
    assert colours(page) == whole
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_sentence_is_explained_as_one_span(opened, file):
    page = opened(file)
    word(page, 0).click()
    word(page, 4).click(modifiers=["Shift"])
    expect(page.locator(".piste-span")).not_to_contain_text("sum of")
    expect(page.locator(".piste-span")).to_contain_text("the year was 1969 .")


def test_words_are_selected_by_keys_and_by_dragging(opened, file):
    page = opened(file)
    whole = colours(page)
    word(page, 0).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".piste-span")).to_contain_text("“year”")
    page.keyboard.press("Shift+ArrowRight")
    assert page.locator(".piste-selected").all_inner_texts() == ["year", "was"]
    page.keyboard.press("Escape")
    assert colours(page) == whole
    word(page, 5).hover()
    page.mouse.down()
    word(page, 7).hover()
    page.mouse.up()
    expect(page.locator(".piste-span")).to_contain_text("“the man was”")


def test_the_server_explains_any_span(opened, answering):
    page = opened(answering)
    page.fill("[data-field=context]", "\n---\n".join(DOCUMENTS))
    page.fill("[data-field=question]", QUESTION)
    page.fill("[name=answer]", ANSWER)
    page.locator("input[name=samples]").fill("1")
    page.click(".piste-go")
    expect(page.locator("h1")).to_contain_text("the year was 1969")
    expect(page.locator(".piste-part").first).to_have_text("context 1")
    before = colours(page)
    word(page, 2).click()
    word(page, 3).click(modifiers=["Shift"])
    expect(page.locator(".piste-span")).to_contain_text("“was 1969” (log-probability")
    expect(page.locator(".piste-span")).not_to_contain_text("sum of")
    assert colours(page) != before
    assert "span=2-3" in page.url
    chosen = colours(page)
    page.reload()
    expect(page.locator(".piste-span")).to_contain_text("“was 1969”")
    assert colours(page) == chosen
    page.locator(".piste-unit >> nth=1").click()
    expect(page.locator(".piste-now")).to_contain_text("the log-probability is")


def test_an_empty_field_is_told(opened, answering):
    page = opened(answering)
    page.click(".piste-go")
    expect(page.locator(".piste-problem")).to_contain_text("nothing in “context” yet")
