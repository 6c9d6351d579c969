"""What is saved is the same page, and works without any server or network."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

import piste
from tests.browser.conftest import TEXT, explain, word

OFFLINE = {"offline": True}


@pytest.fixture(scope="module")
def comparison():
    return piste.compare(piste.load("piste:reviews"), TEXT, ["slalom", "lime"], samples=100)


def saved(page, name, folder):
    with page.expect_download() as download:
        page.get_by_role("link", name=name).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_exports(opened, address, tmp_path):
    page = opened(address)
    explain(page, methods=("lime",))
    told = json.loads(saved(page, "JSON", tmp_path).read_text())
    assert list(told["explanations"]) == ["slalom", "lime"]
    assert saved(page, "PNG", tmp_path).read_bytes().startswith(b"\x89PNG")
    file = opened(saved(page, "Save as HTML", tmp_path).as_uri(), **OFFLINE)
    assert file.locator("h1").inner_text() == page.locator("h1").inner_text()
    file.locator(word("wonderful")).hover()
    assert file.locator(".piste-dot.piste-on").count() > 0
    file.locator(word("wonderful")).click()
    expect(file.locator(".piste-now")).to_contain_text("Without “wonderful” the model says")
    file.locator(word("actors")).click()
    expect(file.locator(".piste-now")).to_contain_text("This page holds no model")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_overflows(opened, address, comparison, tmp_path, scheme, width):
    look = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    comparison.to_html(tmp_path / "page.html")
    for page in (opened(address, **look), opened((tmp_path / "page.html").as_uri(), **look)):
        if page.locator("#piste-text").count():
            explain(page, methods=("lime",))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        ground, ink = (
            page.evaluate(f"getComputedStyle(document.body).{name}")
            for name in ("backgroundColor", "color")
        )
        dark = [sum(map(int, one[4:-1].split(","))) < 380 for one in (ground, ink)]
        assert dark == [scheme == "dark", scheme == "light"]


def test_a_notebook_shows_the_gist_and_the_whole_page(opened, comparison, tmp_path):
    for name, shown in (("all", comparison), ("one", comparison.explanations["slalom"])):
        path = tmp_path / f"{name}.html"
        path.write_text(f"<!doctype html><meta charset='utf-8'>{shown._repr_html_()}")
        page = opened(path.as_uri(), **OFFLINE)
        page.get_by_text("The whole page").click()
        frame = page.frame_locator("iframe")
        frame.locator(word("wonderful")).hover()
        expect(frame.locator(".piste-wide .piste-dot.piste-on")).to_have_count(1)
