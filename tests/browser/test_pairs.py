from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import explain, word

TEXT = "It is hardly a masterpiece, yet never boring."


def test_a_pair_lights_its_words_and_becomes_a_phrase(opened, address):
    page = opened(address)
    explain(page, TEXT)
    pair = page.locator(".piste-pair >> nth=0")
    expect(pair).to_contain_text("It … hardly")
    pair.hover()
    lit = page.eval_on_selector_all(".piste-unit.piste-on", "all => all.map(one => one.innerText)")
    assert lit == ["It", "hardly"]
    pair.get_by_role("button", name="explain as one phrase").click()
    joined = page.locator(".piste-joined li")
    expect(joined).to_have_text("It is hardly")
    expect(page.locator(word("It is hardly"))).to_be_visible()
    assert "phrases=" in page.url

    again = opened(page.url)
    expect(again.locator(".piste-joined li")).to_have_text("It is hardly")
    again.get_by_role("button", name="explain the words apart").click()
    expect(again.locator(word("hardly"))).to_be_visible()
    assert "phrases=" not in again.url
    again.click(".piste-settings > summary")
    again.check("[name=phrases]")
    expect(again.locator(".piste-joined li").first).to_have_text("It is hardly")
