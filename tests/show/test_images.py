"""Explanations of images as figures, pages and in a terminal."""

from __future__ import annotations

import base64
import io
import re
import warnings
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from rich.console import Console

from piste.errors import PisteError
from piste.explanation import Explanation
from piste.show import colours, heat_colours, score_terms
from piste.show.alignment import SideBySide
from piste.show.figures import comparison_figure, explanation_figure
from piste.show.html import comparison_html, explanation_html, page_shell
from piste.show.terminal import comparison_text, explanation_text
from piste.subject import Unit
from tests.show.conftest import explanation
from tests.show.images import by, explained_image, grid, shards
from tests.show.test_comparing import FIVE, judged
from tests.show.test_html import Page

HOSTILE = '"><script>alert(1)</script>$x$[bold]\x1b[31m.png'
IMAGES: dict[str, Any] = {
    "patches": lambda: explained_image(),
    "wide": lambda: explained_image(grid(60, 30, 10, 5)),
    "high": lambda: explained_image(grid(12, 90, 2, 15)),
    "shards": lambda: explained_image(shards(140, 100, 30)),
    "classes": lambda: explained_image(classes=True),
    "lime": lambda: by("lime"),
    "sensitive": lambda: by(
        "gradient", scores={"sensitivity": np.arange(49.0)}, ranking="sensitivity"
    ),
    "hostile": lambda: hostile(),
    "unknown": lambda: by("lime", scores={"attribution": np.full(49, np.nan)}),
}


def hostile() -> Explanation:
    """Markup in every name that may come from outside."""
    areas, units = grid(28, 28, 7, 7)
    named = [Unit(f"<b onclick=alert({k})>", 0, 0, box=unit.box) for k, unit in enumerate(units)]
    return explained_image((areas, named), name=HOSTILE, classifier={"name": HOSTILE})


@pytest.fixture(params=IMAGES)
def any_image(request: pytest.FixtureRequest) -> Explanation:
    return IMAGES[request.param]()


def flat(text: str) -> str:
    return " ".join(text.split())


def words(figure: Figure) -> str:
    return " ".join(text.get_text() for text in figure.texts)


def image(href: str) -> np.ndarray:
    assert href.startswith("data:image/png;base64,")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(href.split(",", 1)[1]))))


def printed(thing: Any, width: int = 100, system: str | None = None) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=system is not None, color_system=system).print(
        thing
    )
    return out.getvalue()


def unstyled(text: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", text)


# -- figures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [None, "heat", "bars"])
def test_every_image_is_drawn_quietly_inside_its_bounds(any_image, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = explanation_figure.plot(any_image, kind)
        renderer = FigureCanvasAgg(figure).get_renderer()
        figure.draw(renderer)
    if kind == "bars":
        return
    assert "ankle boot, 89.9 %" in words(figure)
    wide, high = figure.get_size_inches() * figure.dpi
    for text in figure.texts:
        box = text.get_window_extent(renderer)
        assert 0 <= box.x0 < box.x1 + 1 <= wide + 1, text.get_text()
        assert 0 <= box.y0 < box.y1 + 1 <= high + 1, text.get_text()


def test_the_image_stands_beside_value_importance_and_contribution():
    e = explained_image()
    figure = explanation_figure.plot(e)
    shown = [axes.images[0].get_array() for axes in figure.axes]
    assert np.array_equal(shown[0], e.input.pixels)
    for place, name in ((1, "value"), (3, "importance"), (5, "contribution")):  # keys stand between
        assert np.array_equal(shown[place], heat_colours.painted(e, heat_colours.Heat.of(e, name)))
        assert figure.axes[place].collections, "no borders between the parts"
    assert figure.axes[1].images[0].get_interpolation() == "nearest"
    for text in ("value", "importance", "contribution", "weighs most", "28 × 28 pixels", "≥ +0.68"):
        assert text in words(figure)


def test_single_scores_one_score_and_one_class():
    assert len(explanation_figure.plot(by("lime")).axes) == 3  # image, heat map, key
    e = explained_image(classes=True)
    figure = explanation_figure.plot(e, score="value", label="shirt")
    assert "speaks for shirt" in words(figure)
    expected = heat_colours.painted(e, heat_colours.Heat.of(e, "value", "shirt"))
    assert np.array_equal(figure.axes[1].images[0].get_array(), expected)


def test_saved_as_png_and_planes_are_drawn(tmp_path):
    explained_parts = explained_image(grid(56, 56, 14, 14))
    explanation_figure.plot(explained_parts, path=tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    plane = explanation_figure.plot(explained_parts, "plane")
    labels = [text for text in plane.axes[0].texts if text.get_gid() == "label"]
    assert 0 < len(labels) <= 16
    assert any(text.get_text().startswith("row ") for text in labels)


def test_figures_that_make_no_sense_are_refused_in_one_sentence():
    e = explained_image()
    with pytest.raises(PisteError, match="'text' can't be drawn of this image: choose plane"):
        explanation_figure.plot(e, "text")
    with pytest.raises(PisteError, match="'heat' can't be drawn of this text: choose plane, text"):
        explanation_figure.plot(explanation("A wonderful film"), "heat")
    with pytest.raises(PisteError, match="it has score, label, width"):
        explanation_figure.plot(e, "heat", top=3)
    with pytest.raises(PisteError, match="no score 'beauty'"):
        explanation_figure.plot(e, score="beauty")
    with pytest.raises(PisteError, match="one set of scores"):
        explanation_figure.plot(e, label="bag")
    with pytest.raises(PisteError, match="at least 2 inches"):
        explanation_figure.plot(e, width=0)


# -- pages ---------------------------------------------------------------------------------------


def test_pages_are_standalone_and_take_names_as_text(any_image):
    for text, scripts in (
        (explanation_html.to_html(any_image), 2),
        (explanation_html.fragment(any_image), 0),
    ):
        page = Page(text)
        assert page.tags["script"] == scripts
        assert page.tags["style"] == 1
        assert not page.having("src")
        assert not [name for _, name, _ in page.attributes if name.startswith("on")]
        assert all(href.startswith("data:image/png;base64,") for href in page.having("href"))
        assert "http" not in text.replace("http-equiv", "")
        assert "url(" not in text
        assert "nan" not in "".join(page.having("style"))
        assert any_image.input.name in "".join(page.texts)
        assert page.tags["b"] == 0


def test_the_page_holds_the_image_and_its_pale_copy():
    e = explained_image()
    shown = [image(href) for href in Page(explanation_html.to_html(e)).having("href")]
    assert np.array_equal(shown[0], e.input.pixels)
    assert np.array_equal(shown[1], heat_colours.paled(e.input))


@pytest.mark.parametrize("name", ["patches", "shards"])
def test_parts_dots_and_rows_share_their_number(name):
    e = IMAGES[name]()
    page = explanation_html.to_html(e)
    numbers = {str(k) for k in range(len(e))}
    for pattern in ('<path class="piste-area"', '<path class="piste-area piste-unit"', "<g", "<tr"):
        assert set(re.findall(rf'{pattern}[^>]*data-k="(\d+)"', page)) == numbers
    assert page.count('class="piste-area piste-unit"') == len(e)


def test_colours_follow_every_score_without_a_script():
    e = explained_image()
    page = explanation_html.to_html(e)
    names = [column.name for column in explanation_html.columns(e)]
    best = int(np.argmax(e.scores["contribution"]))
    styles = re.findall(r'piste-unit"[^>]*data-k="\d+"[^>]*style="([^"]*)"', page)
    assert len(styles) == len(e)
    shades = dict(one.split(":") for one in styles[best].split(";"))
    for_answer, weight = (f"rgba({','.join(map(str, c))}" for c in (colours.FOR, colours.WEIGHT))
    assert shades[f"--h{names.index('value')}"].startswith(for_answer)
    assert shades[f"--h{names.index('importance')}"].startswith(weight)
    for place in range(len(names)):
        rule = f".piste-view:has(.piste-s{place}:checked) .piste-unit{{fill:var(--h{place})}}"
        assert rule in page
    assert page.count('type="radio"') == len(names)
    assert page.count(" checked>") == 1


def test_classes_can_be_chosen_beside_scores():
    page = explanation_html.to_html(explained_image(classes=True))
    assert page.count('name="piste-s"') == 3
    assert page.count('name="piste-c"') == 3
    assert ":has(.piste-s0:checked):has(.piste-c2:checked) .piste-unit{fill:var(--h2)}" in page
    for label in ("ankle boot", "bag", "shirt"):
        assert f"speaks against {label}" in page


def test_a_single_score_has_nothing_to_choose():
    page = explanation_html.to_html(by("lime"))
    assert "coloured by" not in page
    assert 'class="piste-plane"' not in page
    assert "Above 0 it speaks for ankle boot" in page


def test_the_notebook_has_the_image_and_its_main_scores():
    page = Page(explanation_html.fragment(explained_image()))
    assert len(page.having("href")) == 4
    assert page.tags["input"] == 0
    assert "row 4, column 6: contribution +0.72 ± 0.11" in "".join(page.texts)


# -- terminal ------------------------------------------------------------------------------------


def test_half_blocks_where_there_are_colours():
    e = explained_image()
    shown = printed(e, 130, "truecolor")
    lines = [line for line in unstyled(shown).splitlines() if "▀" in line]
    assert len(lines) == 14  # 28 pixels, two to a line
    assert {line.count("▀") for line in lines} == {4 * 28}
    red, green, blue = e.input.pixels[0, 0]
    assert f"38;2;{red};{green};{blue};48;2;{red};{green};{blue}m" in shown
    tint = heat_colours.painted(e, heat_colours.Heat.of(e))[12, 20]
    assert f"48;2;{tint[0]};{tint[1]};{tint[2]}m" in shown
    narrow = [line for line in printed(e, 50, "truecolor").splitlines() if "▀" in line]
    assert {unstyled(line).count("▀") for line in narrow} == {28}


def assert_signs(shown: str) -> None:
    rows = [line.split() for line in shown.splitlines()]
    board = [row for row in rows if len(row) == 7 and all(len(cell) <= 2 for cell in row)]
    assert len(board) == 7
    assert board[3] == ["-1", ".", ".", "+7", "+8", "+9", "."]


@pytest.mark.parametrize("system", [None, "standard"])
def test_signs_and_digits_where_there_are_few_colours_or_none(system):
    shown = printed(explained_image(), system=system)
    assert "▀" not in shown
    assert ("\x1b[30;46m+9" in shown) == (system is not None)
    assert_signs(unstyled(shown))


def test_signs_and_digits_where_letters_are_few():
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="ascii"), width=80)
    terminal = explanation_text.TerminalCapabilities(plain=False, basic=False)
    board = explanation_text.image_blocks.board(
        explained_image(), heat_colours.Heat.of(explained_image()), terminal, console.options, 76
    )
    assert board.plain.isascii()
    assert_signs(board.plain)


@pytest.mark.parametrize("width", [30, 50, 80, 200])
@pytest.mark.parametrize("system", [None, "truecolor"])
def test_never_wider_than_the_terminal(any_image, width, system):
    shown = unstyled(printed(any_image, width, system))
    assert max(map(len, shown.splitlines())) <= width


def test_words_are_right_for_images():
    e = explained_image(
        settings={"input": {"instead": "patches can't be taken out of Swin: they are painted"}}
    )
    shown = flat(printed(e))
    for text in (
        "on images with parts removed",
        "images that were held out",
        "the answer that is expected of the part alone",
        "the other parts",
        "row 4, column 6",
        "+9 speaks for ankle boot",
        "Note: Patches can't be taken out of Swin: they are painted.",
    ):
        assert text in shown
    assert not re.search(r"\b(words?|texts?|units?)\b", shown)
    asked = explained_image(errors={"contribution": np.append(np.inf, np.zeros(48))})
    assert "Nothing was asked about 1 of 49 parts" in flat(printed(asked))
    assert score_terms.meaning(by("lime"), "attribution").endswith("the method gives the part")


def test_a_name_cannot_steer_the_terminal():
    e = explained_image(name="\x1b[31mred \u202e.png")
    for thing in (e, comparison_text.Report(SideBySide.of([e], {}))):
        shown = printed(thing, 130, "truecolor")
        assert "\x1b[31mred" not in shown
        assert "\u202e" not in shown
        assert "[31mred" in shown


# -- side by side --------------------------------------------------------------------------------


def sides(cut: Any = None, name: str = "scene.png") -> SideBySide:
    first = explained_image(cut, name=name)
    given = [first, *(by(method, cut, input=first.input) for method in FIVE[1:])]
    return SideBySide.of(given, judged(), {"smoothgrad": "It needs <gradients>."})


@pytest.mark.parametrize("cut", [None, shards(140, 100, 30)])
def test_one_panel_per_method(cut):
    both = sides(cut)
    figure = comparison_figure.draw(both)
    assert len(figure.axes) == 1 + 2 * len(FIVE)  # the image; heat maps and keys
    for text in (*FIVE, "R² 0.93 · AOPC 0.85", "smoothgrad", "One image proves little"):
        assert text in words(figure)
    renderer = FigureCanvasAgg(figure).get_renderer()
    wide, high = figure.get_size_inches() * figure.dpi
    for text in figure.texts:
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= wide
        assert box.y1 <= high


def test_the_page_lights_a_part_in_all_methods():
    both = sides(name=HOSTILE)
    text = page_shell.document(comparison_html.view(both))
    page = Page(text)
    assert page.tags["script"] == 2
    assert len(page.having("href")) == 1 + len(FIVE)
    for number in range(len(both.first)):
        assert len(re.findall(rf'<path[^>]*data-k="{number}"', text)) == 1 + len(FIVE)
    told = flat("".join(page.texts))
    assert "The image, as every method sees it" in told
    assert "best on this one image" in told
    assert HOSTILE in "".join(page.texts)


@pytest.mark.parametrize("system", [None, "truecolor"])
@pytest.mark.parametrize("width", [40, 100])
def test_methods_in_a_terminal(system, width):
    shown = unstyled(printed(comparison_text.Report(sides()), width, system))
    assert max(map(len, shown.splitlines())) <= width
    for text in (*FIVE, "speaks for ankle boot", "One image proves little"):
        assert text in flat(shown) or width == 40
    assert ("▀" in shown) == (system is not None)
