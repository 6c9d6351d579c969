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


def dots(page: Page) -> Any:
    """Where the dots of the plane are that can be seen."""
    shown = ".piste-planes > div:visible .piste-dot circle"
    places = "all => all.map(one => [one.getAttribute('cx'), one.getAttribute('cy')].join())"
    return page.locator(shown).evaluate_all(places)


def rows(page: Page) -> list[str]:
    return page.locator(".piste-all tbody tr").all_inner_texts()


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


@pytest.mark.parametrize("width", [1280, 400])
def test_plane_and_table_follow_the_selection(opened, file, width):
    page = opened(file, viewport={"width": width, "height": 900}, offline=True)
    whole = dots(page), rows(page)
    assert all(whole)
    word(page, 3).click()
    expect(page.locator(".piste-span")).to_contain_text("“1969”")
    single = dots(page), rows(page)
    assert single[0] != whole[0]
    assert sorted(single[1]) != sorted(whole[1])
    assert len(single[1]) == len(whole[1])
    # Dots, rows and words are linked as they were before.
    page.locator(".piste-all tbody tr >> nth=0").hover()
    lit = page.locator(".piste-planes > div:visible .piste-dot.piste-on")
    expect(lit).to_have_count(1)
    page.get_by_role("button", name="contribution").click()
    numbers = page.locator(".piste-all tbody tr td:nth-last-child(3)").evaluate_all(
        "cells => cells.map(cell => Number(cell.dataset.v))"
    )
    assert len(numbers) == len(whole[1])
    word(page, 6).click(modifiers=["Shift"])
    expect(page.locator(".piste-span")).to_contain_text("sum of the contributions")
    assert dots(page) not in (whole[0], single[0])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Back to the whole answer").click()
    assert (dots(page), rows(page)) == whole


def test_the_table_of_summed_words_is_their_sum(opened, file):
    page = opened(file)

    def contributions() -> dict[str, float]:
        names = page.locator(".piste-all tbody th").all_inner_texts()
        heads = page.locator(".piste-all thead th").all_inner_texts()
        place = [head.split()[0] for head in heads].index("contribution")
        cells = page.locator(f".piste-all tbody tr > :nth-child({place + 1})").evaluate_all(
            "cells => cells.map(cell => Number(cell.dataset.v))"
        )
        return dict(zip(names, cells, strict=True))

    found = []
    for number in (5, 6):
        word(page, number).click()
        expect(page.locator(".piste-selected")).to_have_count(1)
        found.append(contributions())
    word(page, 5).click()
    word(page, 6).click(modifiers=["Shift"])
    expect(page.locator(".piste-span")).to_contain_text("its 2 words")
    for name, total in contributions().items():
        assert total == pytest.approx(found[0][name] + found[1][name], abs=1e-6)


def test_the_servers_plane_and_table_follow_too(opened, answering):
    page = opened(answering)
    page.fill("[data-field=context]", "\n---\n".join(DOCUMENTS))
    page.fill("[data-field=question]", QUESTION)
    page.fill("[name=answer]", ANSWER)
    page.locator("input[name=samples]").fill("1")
    page.click(".piste-go")
    expect(page.locator(".piste-part").first).to_have_text("context 1")
    whole = dots(page), rows(page)
    word(page, 3).click()
    expect(page.locator(".piste-span")).to_contain_text("“1969” (log-probability")
    assert dots(page) != whole[0]
    assert rows(page) != whole[1]
    dot = page.locator(".piste-wide .piste-dot:not(.piste-loose) >> nth=-1")
    dot.locator("circle").click()
    expect(page.locator(".piste-chosen-bar")).to_contain_text("Selected")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Back to the whole answer").click()
    assert (dots(page), rows(page)) == whole
