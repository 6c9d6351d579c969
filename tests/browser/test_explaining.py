from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from piste.zoo.clothes import CLOTHES, draw_clothes
from tests.browser.conftest import TEXT, explain, word


def kinds(page, selector):
    return set(page.eval_on_selector_all(selector, "found => found.map(one => one.dataset.k)"))


def test_text_and_plane_are_linked(opened, address):
    page = opened(address)
    explain(page)
    expect(page.locator("h1")).to_contain_text("%")
    assert page.locator(".piste-marked").inner_text().split() == TEXT.split()
    wonderful = page.locator(word("wonderful"))
    assert wonderful.evaluate("one => getComputedStyle(one).backgroundColor") != "rgba(0, 0, 0, 0)"
    wonderful.hover()
    assert kinds(page, ".piste-dot.piste-on") == {wonderful.get_attribute("data-k")}
    assert "wonderful" in page.locator(".piste-tip").inner_text()
    dot = page.locator(".piste-wide .piste-dot:not(.piste-loose) >> nth=-1")
    dot.locator("circle").hover()
    assert kinds(page, ".piste-unit.piste-on") == {dot.get_attribute("data-k")}


def test_a_frame_around_dots_lights_their_words(opened, address):
    page = opened(address)
    explain(page)
    plane = page.locator(".piste-wide .piste-plane")
    plane.scroll_into_view_if_needed()
    box = plane.bounding_box()
    x, y, width, height = (box[name] for name in ("x", "y", "width", "height"))

    def draw() -> None:
        page.mouse.move(x + width - 2, y + 2)
        page.mouse.down()
        page.mouse.move(x + width / 2, y + height * 0.6, steps=4)
        page.mouse.up()

    draw()
    assert kinds(page, ".piste-dot.piste-chosen")
    page.keyboard.press("Escape")
    assert not kinds(page, ".piste-chosen")
    draw()
    chosen = kinds(page, ".piste-dot.piste-chosen")
    assert 0 < len(chosen) < page.locator(".piste-wide .piste-dot").count()
    assert kinds(page, ".piste-unit.piste-chosen") == chosen
    expect(page.locator(".piste-chosen-bar")).to_contain_text("Selected")
    page.get_by_role("button", name="Remove these").click()
    expect(page.locator(".piste-now")).to_contain_text("the model says")
    assert kinds(page, ".piste-marked .piste-gone") == chosen
    page.get_by_role("button", name="Clear").click()
    assert not kinds(page, ".piste-chosen")


def test_a_button_asks_more_questions_about_what_is_shown(opened, address):
    page = opened(address)
    page.fill("[name=text]", TEXT)
    page.locator("[name=samples]").fill("1")
    page.click(".piste-go")
    button = page.get_by_role("button", name=re.compile(r"^Ask \d+ questions$"))
    expect(button).to_be_visible()
    count = int(button.inner_text().split()[1])
    page.fill("[name=text]", "Somebody types the next text.")
    button.click()
    expect(page.locator(".piste-trust")).to_contain_text(f"{count} questions, the cost")
    expect(page.locator(".piste-marked")).to_contain_text("wonderful")


def test_colours_follow_the_chosen_score(opened, address):
    page = opened(address)
    explain(page)
    colours = "all => all.map(one => one.style.background)"
    before = page.eval_on_selector_all(".piste-unit", colours)
    page.select_option(".piste-choice select", label="value")
    assert page.eval_on_selector_all(".piste-unit", colours) != before
    expect(page.locator(".piste-above")).to_contain_text("on its own")


def test_methods_stand_side_by_side(opened, address):
    page = opened(address)
    explain(page, methods=("lime", "occlusion"))
    assert page.locator(".piste-method h3").count() == 3
    expect(page.locator("h2:has-text('How faithful')")).to_be_visible()
    heads = page.locator(".piste-checks thead th").all_inner_texts()
    assert heads[2:] == ["slalom", "lime", "occlusion"]


def test_units_target_and_budget_are_followed(opened, address):
    page = opened(address)
    explain(page, "Quintessentially wonderful zoetropes.")
    words = page.locator(".piste-marked .piste-unit").count()
    expect(page.locator(".piste-in-short")).to_have_text("slalom · words · the predicted class")
    page.click(".piste-settings > summary")
    page.select_option("select[name=units]", "tokens")
    expect(page.locator(".piste-marked .piste-unit")).not_to_have_count(words)
    page.select_option("select[name=target]", "negative")
    expect(page.locator(".piste-terms")).to_contain_text("log-odds of 'negative'")
    page.locator("input[name=samples]").fill("2")
    expect(page.locator("output")).to_have_text("100 questions")
    expect(page.locator(".piste-result header")).to_contain_text("100 questions")
    assert "samples=100" in page.url
    assert "units=tokens" in page.url


@pytest.mark.parametrize("way", ["file", "sample"])
def test_an_image_is_shown_with_its_parts(opened, address, tmp_path, way):
    from PIL import Image

    page = opened(address)
    page.select_option("select[name=model]", "piste:fashion")
    if way == "file":
        Image.fromarray(draw_clothes("boot").pixels).save(tmp_path / "boot.png")
        page.set_input_files(".piste-drop input", tmp_path / "boot.png")
    else:
        page.get_by_role("button", name=CLOTHES[0]).click()
    page.wait_for_selector(".piste-result .piste-checks tbody tr")
    assert page.locator(".piste-marked .piste-area").count() > 10
    page.locator(".piste-marked .piste-area >> nth=20").click()
    expect(page.locator(".piste-now")).to_contain_text("the model says")
    assert page.locator(".piste-bare .piste-gone").count() == 1


def test_no_old_result_stands_beside_a_new_problem(opened, address):
    page = opened(address)
    explain(page, "A slow start, but a wonderful ending.")
    hash_before = page.evaluate("location.hash")
    page.fill("#piste-text", "")
    page.click(".piste-go")
    expect(page.locator(".piste-problem")).to_contain_text("There is no text yet")
    for gone in (".piste-result", ".piste-exports"):
        expect(page.locator(gone)).to_be_hidden()
    page.get_by_role("button", name="Back to the last result").click()
    expect(page.locator(".piste-problem")).to_be_hidden()
    expect(page.locator(".piste-result h1")).to_contain_text("positive")
    assert page.evaluate("location.hash") == hash_before


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_results_stand_above_the_fold(opened, address, width, height):
    page = opened(address, viewport={"width": width, "height": height})
    explain(page)
    expect(page.locator(".piste-settings")).not_to_have_attribute("open", "")
    for shown in ("h1", ".piste-said", ".piste-trust"):
        box = page.locator(f".piste-result {shown}").bounding_box()
        assert box["y"] >= 0
        page.wait_for_function(
            f"document.querySelector('.piste-result {shown}').getBoundingClientRect().bottom"
            " < innerHeight"
        )


def test_every_bundled_model_has_examples(opened, address):
    page = opened(address)
    for model, group in (("piste:reviews", ".piste-examples"), ("piste:fashion", ".piste-samples")):
        page.select_option("select[name=model]", model)
        assert page.locator(f"{group} button:visible").count() >= 3
    page.locator(".piste-samples button", has_text="boot").click()
    expect(page.locator(".piste-result h1")).to_contain_text("%")
    assert "sample=boot" in page.url
    again = opened(page.url)
    expect(again.locator(".piste-result h1")).to_have_text(page.locator("h1").inner_text())


def test_problems_are_one_sentence(opened, address):
    page = opened(address)
    page.click(".piste-go")
    expect(page.locator(".piste-problem")).to_contain_text("There is no text yet")
    page.fill("#piste-text", "Fine.")
    page.uncheck("input[value=slalom]")
    page.click(".piste-go")
    expect(page.locator(".piste-problem")).to_contain_text("tick at least one")


def test_work_can_be_cancelled(opened, address):
    page = opened(address)
    page.locator("input[name=samples]").fill("7")
    page.fill("#piste-text", " ".join([TEXT] * 8))
    for method in ("lime", "kernel_shap", "permutation_shap"):
        if not page.locator(f"input[value={method}]").is_visible():
            page.click(".piste-more summary")
        page.check(f"input[value={method}]")
    page.click(".piste-go")
    expect(page.locator(".piste-working [role=status]")).to_contain_text("questions")
    page.fill("#piste-text", "")
    page.click(".piste-go")
    expect(page.locator(".piste-problem")).to_contain_text("no text yet")
    page.get_by_role("button", name="Cancel").click()  # what is refused stops nothing before it
    expect(page.locator(".piste-problem")).to_contain_text("cancelled")
    expect(page.locator(".piste-working")).to_be_hidden()
    explain(page, "It is fine again.")


def test_levels_and_marked_text_are_units(opened, address):
    page = opened(address)
    offered = page.locator("select[name=units] option").all_inner_texts()
    assert offered == [
        "words", "tokens", "sentences", "paragraphs", "paragraphs → sentences → words",
        "what I mark",
    ]  # fmt: skip
    text = "\U0001f600 A slow start. A wonderful ending."
    page.fill("textarea[name=text]", text)
    page.select_option("select[name=units]", "marked")
    page.get_by_role("button", name="Explain", exact=True).last.click()
    expect(page.locator(".piste-problem")).to_contain_text("Nothing is marked yet")
    for start, end in ((5, 9), (19, 28)):  # a script counts the sign as two
        page.locator("textarea[name=text]").evaluate(
            "(area, [from, to]) => area.setSelectionRange(from, to)", [start, end]
        )
        page.get_by_role("button", name="Add what is selected").click()
    assert page.locator(".piste-marks mark").all_inner_texts() == ["slow", "wonderful"]
    page.locator(".piste-go").click()
    expect(page.locator(".piste-marked .piste-unit")).to_have_text(["slow", "wonderful"])
    again = opened(page.url)
    expect(again.locator(".piste-marked .piste-unit")).to_have_text(["slow", "wonderful"])
    assert again.locator("select[name=units]").input_value() == "marked"
    page.locator("textarea[name=text]").press("End")
    page.locator("textarea[name=text]").type("!")
    assert page.locator(".piste-marks mark").count() == 0
    page.click(".piste-settings > summary")
    page.select_option("select[name=units]", "paragraphs,sentences,words")
    expect(page.locator(".piste-marked .piste-unit >> nth=2")).to_be_visible()


def test_what_is_typed_before_the_script_runs_is_explained(opened, address):
    """A page that has just come in may be typed into: nothing is lost, and no form is sent."""
    page, held = opened(address), []
    page.route("**/assets/piste.js", lambda route: held.append(route))
    with page.expect_request("**/assets/piste.js"):
        page.goto(address, wait_until="commit")
    page.fill("#piste-text", TEXT)
    expect(page.locator(".piste-go")).to_be_disabled()
    [script] = held
    script.continue_()
    page.click(".piste-go")
    page.wait_for_selector(".piste-result .piste-checks tbody tr")
    assert page.input_value("#piste-text") == TEXT
