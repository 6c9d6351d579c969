"""Results of other commands in the page."""

from __future__ import annotations

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
    page.locator(".piste-results input[type=search]").fill("DROP TABLE")
    expect(rows).to_have_count(1)
    page.locator(".piste-results input[type=search]").fill("")
    expect(rows).not_to_have_count(1)
    page.locator(".piste-results tbody a", has_text="<script>").click()
    expect(page.locator(".piste-results .piste-marked")).to_have_text(SCRIPT)
    shared = opened(page.url)
    expect(shared.locator(".piste-results .piste-marked")).to_have_text(SCRIPT)
    page.locator(".piste-results .piste-marked .piste-unit >> nth=1").hover()
    assert page.locator(".piste-results .piste-dot.piste-on").count() > 0
    page.get_by_role("link", name="Back to all documents").click()
    expect(page.locator(".piste-documents tbody")).to_contain_text(QUOTES)


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
