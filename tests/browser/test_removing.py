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


def test_a_repeated_word_is_one_dot_whoever_explains(opened, address):
    """LIME has a score for each of them, SLALOM one for all: they lie at one place."""
    page = opened(address)
    explain(page, "Boring plot, boring music, and a boring end.", methods=("lime",))
    dot = page.locator(".piste-wide .piste-dot[aria-label='Boring ×3']")
    assert dot.count() == 1
    dot.locator("circle").hover()
    lit = page.locator(".piste-marked >> nth=0 >> .piste-unit.piste-on")
    assert lit.all_inner_texts() == ["Boring", "boring", "boring"]
    page.locator(word("music")).hover()
    assert "piste-on" not in (dot.get_attribute("class") or "")
    page.locator(".piste-marked >> nth=0 >> .piste-unit:text-is('boring') >> nth=1").hover()
    assert "piste-on" in (dot.get_attribute("class") or "")
    dot.locator("circle").click()
    page.get_by_role("button", name="Remove these").click()
    expect(page.locator(".piste-now")).to_contain_text("“Boring” “boring” “boring”")


def test_the_address_and_the_file_are_of_what_is_shown(opened, address, tmp_path):
    page = opened(address)
    explain(page)
    page.fill("#piste-text", "Somebody types the next text.")
    for one in ("awful", "slow"):
        page.locator(word(one)).click()
        expect(page.locator(".piste-now")).to_contain_text(f"“{one}”")
    expect(page.locator(".piste-now")).to_contain_text("“slow” “awful” the model says")
    with page.expect_download() as download:
        page.get_by_role("link", name="Save as HTML").click()
    download.value.save_as(tmp_path / "page.html")
    other = opened(page.url)
    expect(other.locator(".piste-now")).to_contain_text("“slow” “awful” the model says")
    assert other.input_value("#piste-text") == TEXT
    file = opened((tmp_path / "page.html").as_uri())
    for one in ("awful", "slow"):
        file.locator(word(one)).click()
    expect(file.locator(".piste-now")).to_contain_text("“slow” “awful” the model says")
