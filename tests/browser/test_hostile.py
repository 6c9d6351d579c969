"""Texts, addresses and files that try to become part of the page."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import explain

ATTACKS = (
    "<script>window.hit=1</script> good film",
    "<img src=x onerror=window.hit=1> good film",
    '"><svg onload=window.hit=1> good film',
    "</textarea><iframe srcdoc='<script>parent.hit=1</script>'></iframe> good",
    "javascript:window.hit=1 {{7*7}} ${window.hit=1} `x` good film",
    "</script><!-- good ‮ film \u0000 end",
)


CASES = [(text, "words") for text in ATTACKS]
CASES += [(f"{text}. It is fine.", "sentences") for text in ATTACKS[:3]]
"""Words fall apart at every bracket; a sentence holds the whole attack."""


@pytest.mark.parametrize(("text", "units"), CASES)
def test_text_stays_text(opened, address, text, units, tmp_path):
    page = opened(address)
    page.select_option("select[name=units]", units)
    explain(page, text, methods=("occlusion",))
    assert page.evaluate("window.hit") is None
    shown = "".join(page.locator(".piste-marked >> nth=0").inner_text().split())
    assert shown.replace("�", "") == "".join(text.split()).replace("\u0000", "")
    assert page.locator(".piste-result :is(script, iframe, img)").count() == 0
    with page.expect_download() as download:
        page.get_by_role("link", name="Save as HTML").click()
    download.value.save_as(tmp_path / "page.html")
    file = opened((tmp_path / "page.html").as_uri())
    file.locator(".piste-marked >> nth=0 >> .piste-unit >> nth=0").hover()
    assert file.evaluate("window.hit") is None


@pytest.mark.parametrize("name", ["model", "text", "units", "target", "methods", "removed"])
def test_an_address_is_only_data(opened, address, name):
    state = {"text": "A good film.", "methods": "slalom", name: ATTACKS[1]}
    page = opened(f"{address}#{urlencode(state)}")
    expect(
        page.locator(".piste-result .piste-marked, .piste-problem:visible").first
    ).to_be_visible()
    assert page.evaluate("window.hit") is None
    assert page.locator("img[src=x]").count() == 0


def test_the_policy_stops_what_markup_could_do(opened, address, browser):
    """Even if text became markup: its scripts would not run, and nothing could be sent away."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.evaluate(
        """() => {
            const evil = document.createElement("div");
            evil.innerHTML = "<img src=data:, onerror=window.hit=1>";
            document.body.append(evil);
            const script = document.createElement("script");
            script.textContent = "window.hit=1";
            document.body.append(script);
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    sent = page.evaluate("fetch('http://localhost:9/').then(() => 'sent', () => 'stopped')")
    assert sent == "stopped"
    framed = context.new_page()
    framed.set_content(f"<iframe src='{address}'></iframe>")
    framed.wait_for_timeout(500)
    assert not [one for one in framed.frames[1:] if one.locator("#piste-text").count()]
    context.close()


def test_another_site_can_not_ask(opened, address, browser):
    context = browser.new_context()
    page = context.new_page()
    page.goto("data:text/html,<p>elsewhere")
    answer = page.evaluate(
        """async (address) => {
            const body = JSON.stringify({ text: "A good film." });
            const there = `${address}api/explanations`;
            const ways = [{}, { mode: "no-cors" }];
            const found = [];
            for (const way of ways) {
                try {
                    const one = await fetch(there, { method: "POST", body, ...way });
                    found.push(one.type === "opaque" ? "nothing" : await one.text());
                } catch { found.push("nothing"); }
            }
            return found;
        }""",
        address,
    )
    assert answer == ["nothing", "nothing"]
    context.close()
