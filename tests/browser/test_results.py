"""Results of other commands in the page."""

from __future__ import annotations

import json
import re
import signal

import pytest
from playwright.sync_api import expect

import piste
from tests.browser.conftest import start
from tests.serve.results_made import (
    QUOTES,
    ROWS,
    SCRIPT,
    make_comparison,
    make_concepts,
    make_evaluation,
    make_explanation,
    make_run,
    make_vocabulary,
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder, model = tmp_path_factory.mktemp("results"), piste.load("piste:reviews")
    found = (
        make_run(folder, model),
        make_vocabulary(folder / "words.parquet", model),
        make_concepts(folder / "concepts.json"),
        make_explanation(folder / "one.json", model),
        make_comparison(folder / "several.json", model),
        folder / "measured",
    )
    make_evaluation(folder / "measured", model)
    options = [part for path in found for part in ("--results", str(path))]
    server, address = start("-m", "piste:reviews", *options)
    yield address
    server.send_signal(signal.SIGINT)
    server.wait(300)


def test_a_run_is_searched_sorted_and_opened(opened, results):
    page = opened(results)
    page.get_by_role("button", name="Results").click()
    rows = page.locator(".piste-results tbody tr")
    expect(rows).to_have_count(sum(bool(row["text"]) for row in ROWS))
    page.locator("[data-filter=search]").fill("DROP TABLE")
    expect(rows).to_have_count(1)
    page.locator("[data-filter=search]").fill("")
    expect(rows).not_to_have_count(1)
    page.locator(".piste-results tbody a", has_text="<script>").click()
    expect(page.locator(".piste-results .piste-marked")).to_have_text(SCRIPT)
    shared = opened(page.url)
    expect(shared.locator(".piste-results .piste-marked")).to_have_text(SCRIPT)
    page.locator(".piste-results .piste-marked .piste-unit >> nth=1").hover()
    assert page.locator(".piste-results .piste-dot.piste-on").count() > 0
    page.get_by_role("link", name="Back to all documents").click()
    expect(page.locator(".piste-documents tbody")).to_contain_text(QUOTES)


def test_filters_combine_and_what_fits_is_saved(opened, results, tmp_path):
    page = opened(f"{results}#results=0")
    rows = page.locator(".piste-documents tbody tr")
    expect(rows).to_have_count(6)
    page.select_option("[data-column=label]", "negative")
    expect(rows).to_have_count(3)
    page.locator("[data-filter=search]").fill("a")
    page.locator("[data-filter=most_r2]").fill("1")
    page.select_option("[data-filter=predicted]", "negative")
    expect(page).to_have_url(re.compile("predicted=negative.*cells=.*most_r2=1"))
    expect(page.locator(".piste-count")).to_contain_text(re.compile(r"Save (it|all \d) as JSON"))
    # The address changes at once, the rows when they are there.
    expect(page.locator("[data-name='model says']", has_text="positive")).to_have_count(0)
    with page.expect_download() as download:
        page.get_by_role("link", name="as JSON").click()
    download.value.save_as(tmp_path / "documents.json")
    told = json.loads((tmp_path / "documents.json").read_text(encoding="utf-8"))
    expect(rows).to_have_count(len(told))
    shown = page.locator(".piste-documents tbody a").evaluate_all(
        "all => all.map(one => Number(one.dataset.document))"
    )
    assert [one["document"] for one in told] == shown
    assert {one["predicted"] for one in told} == {one["label"] for one in told} == {"negative"}
    page.get_by_role("button", name="Clear filters").click()
    expect(rows).to_have_count(6)
    assert page.input_value("[data-filter=search]") == ""


def test_documents_follow_each_other_and_open_in_explain(opened, results):
    page = opened(f"{results}#results=0&sort=document&descending=false&document=1")
    bar = page.locator(".piste-open-bar")
    expect(bar).to_contain_text("2 of 6")
    page.get_by_role("link", name="Next").focus()
    page.keyboard.press("Enter")
    expect(bar).to_contain_text("3 of 6")
    expect(page.locator(".piste-results .piste-marked")).to_have_text(QUOTES)
    page.keyboard.press("Enter")  # the same link keeps the focus
    expect(bar).to_contain_text("4 of 6")
    page.get_by_role("link", name="Previous").click()
    expect(bar).to_contain_text("3 of 6")
    page.get_by_role("link", name="Open in Explain").click()
    expect(page.locator(".piste-result .piste-marked")).to_have_text(QUOTES)
    assert page.input_value("#piste-text") == QUOTES
    page.go_back()
    expect(bar).to_contain_text("3 of 6")


def test_words_table_is_whole_at_1280(opened, results):
    page = opened(f"{results}#results=0&view=words", viewport={"width": 1280, "height": 800})
    table = page.locator(".piste-results .piste-words").first
    expect(table).to_be_visible()
    assert table.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_words_concepts_and_explanations_have_their_views(opened, results):
    page = opened(f"{results}#results=0&view=words")
    expect(page.locator(".piste-results .piste-plane").first).to_be_visible()
    for name, shown in (
        ("words.parquet", ".piste-plane"),
        ("concepts.json", ".piste-chart"),
        ("one.json", ".piste-marked"),
        ("several.json", ".piste-checks tbody tr"),
        ("several.json", ".piste-method"),
        ("measured", ".piste-verdict"),
        ("measured", ".piste-wide-chart svg"),
    ):
        page.get_by_role("link", name=name).click()
        expect(page.locator(f".piste-results {shown}").first).to_be_visible()


def test_both_tabs_keep_what_they_show(opened, results):
    page = opened(results, viewport={"width": 390, "height": 800})
    page.fill("#piste-text", "A text that stays.")
    page.get_by_role("button", name="Results").click()
    expect(page.locator(".piste-results tbody tr").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Explain").first.click()
    assert page.input_value("#piste-text") == "A text that stays."
