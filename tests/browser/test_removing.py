from __future__ import annotations

import pytest
from playwright.sync_api import expect

import piste
from tests.browser.conftest import TEXT, explain, word


@pytest.fixture(scope="module")
def classifier():
    return piste.load("piste:reviews")


def test_a_removed_word_shows_the_real_answer_beside_every_expectation(opened, address, classifier):
    page = opened(address)
    explain(page, methods=("occlusion",))
    page.locator(word("wonderful")).click()
    expect(page.locator(".piste-now")).to_contain_text("Without “wonderful” the model says")
    both = [piste.explain(classifier, TEXT, method=name) for name in ("slalom", "occlusion")]
    unit = [one.text for one in both[0].units].index("wonderful")
    [real] = piste.check(classifier, both, [[unit]])
    shown = page.locator(".piste-checks tbody tr >> nth=0").inner_text().replace("−", "-")
    for number in (real.answer, *real.expected.values()):
        assert f"{number:+.2f}" in shown
    assert f"off by {abs(real.answer - real.expected['slalom']):.2f}" in shown
    # All views of it show that it is gone, and a second click puts it back.
    assert page.locator(".piste-gone").count() == 2
    page.locator(word("wonderful")).click()
    assert page.locator(".piste-gone").count() == 0
    expect(page.locator(".piste-now")).to_contain_text("Click a word")


def test_the_address_holds_all_of_it(opened, address):
    page = opened(address)
    explain(page)
    page.locator(word("awful")).click()
    expect(page.locator(".piste-now")).to_contain_text("“awful”")
    other = opened(page.url)
    expect(other.locator(".piste-now")).to_contain_text("Without “awful” the model says")
    assert other.input_value("#piste-text") == TEXT
    assert other.locator(".piste-gone").all_inner_texts() == ["awful"]


def test_keys_are_enough(opened, address):
    page = opened(address)
    page.focus("#piste-text")
    page.keyboard.type("A slow start, but a wonderful ending.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".piste-result .piste-checks tbody tr")
    page.locator(".piste-marked .piste-unit >> nth=0").focus()
    page.keyboard.press("ArrowRight")
    focused = "document.activeElement"
    assert page.evaluate(f"{focused}.textContent") == "slow"
    page.keyboard.press("Enter")
    expect(page.locator(".piste-now")).to_contain_text("“slow”")
    assert page.evaluate(f"{focused}.getAttribute('aria-pressed')") == "true"
    page.locator(".piste-wide .piste-dot >> nth=0").focus()
    page.keyboard.press("Space")
    assert page.locator(".piste-wide .piste-dot.piste-chosen").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".piste-chosen").count() == 0


def test_buttons_remove_several(opened, address):
    page = opened(address)
    explain(page)
    page.get_by_role("button", name="Remove the 3 strongest").click()
    expect(page.locator(".piste-now")).to_contain_text("the model says")
    assert page.locator(".piste-marked .piste-gone").count() == 3
    page.get_by_role("button", name="Remove a random half").click()
    expect(page.locator(".piste-now")).to_contain_text("more")
    page.get_by_role("button", name="Put all back").click()
    assert page.locator(".piste-gone").count() == 0
