from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from rich.console import Console

from piste.errors import PisteError
from piste.explanation import Explanation, Fidelity
from piste.methods import METHODS
from piste.show import wording
from piste.show.alignment import SideBySide
from piste.show.figures import comparison_figure, explanation_figure
from piste.show.figures.canvas import saved
from piste.show.html import comparison_html, explanation_html, page_shell
from piste.show.terminal import comparison_text, explanation_text
from piste.subject import Unit
from piste.surrogates import AdditiveSurrogate
from tests.show.conftest import REVIEW, explanation
from tests.show.test_html import Page

FIVE = ("slalom", "lime", "kernel_shap", "integrated_gradients", "random")
HOSTILE = "<script>alert(1)</script> [bold]wonderful[/bold] $x$ dull \x1b[31m & \u202e end"


def by(method: str, text: Any = REVIEW, **changes: Any) -> Explanation:
    """An explanation as the methods with one score make it."""
    if text == HOSTILE:  # units are more than words there
        found = re.finditer(r"\S+", text)
        changes["units"] = [Unit(one.group(), one.start(), one.end()) for one in found]
    if method == "slalom":
        return explanation(text, **changes)
    base = explanation(text, changes.get("units"), seed=sum(map(ord, method)))
    rng = np.random.default_rng(len(method))
    scores = base.scores["contribution"] + rng.normal(0, 0.4, len(base))
    fields: dict[str, Any] = {
        "method": method,
        "scores": {"attribution": scores * (0 if method == "zero" else 0.1)},
        "errors": {},
        "ranking": "attribution",
        "settings": {"input": {"units": "words"}},
        "surrogate": AdditiveSurrogate(0.0, "attribution"),
    }
    return explanation(text, **(fields | changes))


def some(methods: Sequence[str] = FIVE, text: Any = REVIEW) -> list[Explanation]:
    return [by(method, text) for method in methods]


def judged(methods: Sequence[str] = FIVE) -> dict[str, dict[str, float]]:
    return {
        method: {
            "r2_all": 0.9 - 0.2 * place, "mse_few": 0.01 + 0.02 * place,
            "mse_all": 0.02 + 0.03 * place,
            "aopc": 0.85 - 0.05 * place, "seconds": 0.4 + place, "calls": 500.0 + place,
        }
        for place, method in enumerate(methods)
    }  # fmt: skip


def rendered(explanations: Sequence[Explanation], verdicts: Any) -> Any:
    return comparison_text.Report(SideBySide.of(explanations, verdicts))


def plotted(explanations: Sequence[Explanation], verdicts: Any, path: Any = None) -> Any:
    return saved(lambda: comparison_figure.draw(SideBySide.of(explanations, verdicts)), path)


def paged(explanations: Sequence[Explanation], verdicts: Any, path: Any = None) -> str:
    return page_shell.document(comparison_html.view(SideBySide.of(explanations, verdicts)), path)


def printed(
    explanations: Sequence[Explanation],
    verdicts: Any,
    width: int = 100,
    colours: str | None = None,
) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=colours is not None, color_system=colours
    )
    console.print(rendered(explanations, verdicts))
    return out.getvalue()


def flat(text: str) -> str:
    return " ".join(text.split())


# -- terminal ------------------------------------------------------------------------------------


def test_terminal_says_who_sees_what_and_how_faithful(review):
    shown = printed(some(), judged())
    for words in (
        "positive, 97.1 %: mostly because of",
        "R² 0.93 · AOPC 0.85",
        "R² 0.93 · AOPC 0.80",
        "wonderful",
    ):
        assert words in shown
    assert "slalom is the most faithful here" in flat(shown)
    assert "One text proves little" in flat(shown)
    assert "wonderful+++" in shown
    coloured = printed(some(), judged(), colours="truecolor")
    assert "48;2;31;120;209m" in coloured


def test_an_explanation_has_one_r2_wherever_it_is_shown():
    found = some()
    found[1] = by("lime", fidelity=Fidelity(0.61, 0.2, 40))
    sides = SideBySide.of(found, judged())
    assert sides.badge(found[1]) == "R² 0.61 · AOPC 0.80"
    assert sides.known_figures() == ["r2", "mse_few", "mse_all", "aopc", "seconds", "calls"]
    assert (sides.shown("lime", "r2"), sides.best("r2")) == ("0.61", [])
    assert "(error 0.020)" in sides.verdict()
    verdicts = judged()
    verdicts["lime"]["r2_all"] = 0.777
    for shown in (printed(found, verdicts), paged(found, verdicts)):
        assert "R² 0.61" in shown
        assert not re.search(r"[ >]0\.78", shown)
    earlier = {name: {"r2_all": one["r2_all"]} for name, one in judged().items()}
    assert SideBySide.of(found, earlier).known_figures() == ["r2_all"]


def test_methods_of_one_family_have_colours_of_their_own():
    page = paged(some(), judged())
    dots = re.findall(r'class="piste-family" style="background:var\((--c\w+)\)', page)
    assert len(dots) == len(set(dots)) == len(FIVE)


@pytest.mark.parametrize("width", [30, 50, 80, 200])
@pytest.mark.parametrize("count", [1, 5, 13])
def test_terminal_never_wider_than_it_is(width, count):
    methods = list(METHODS)[:count]
    shown = printed(some(methods), judged(methods), width)
    assert max(map(len, shown.splitlines())) <= width
    for method in methods:
        assert method in shown or width == 30


def test_terminal_takes_text_as_text():
    shown = printed(some(text=HOSTILE), judged())
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[bold]" in shown


def test_long_texts_are_shortened():
    text = " ".join(f"word{k % 97}" for k in range(3000))
    explanations = some(list(METHODS)[:5], text)
    shown = printed(explanations, {})
    plotted(explanations, {})
    assert "more words not shown here" in flat(shown)


# -- scaling and verdicts ------------------------------------------------------------------------


def test_scores_are_scaled_by_the_largest_of_each_method():
    sides = SideBySide.of(some(), judged())
    assert np.abs(sides.scaled).max(axis=1) == pytest.approx(np.ones(5))
    order = np.argsort(sides.scaled[1])
    assert (order == np.argsort(sides.explanations[1].score())).all()
    zero = SideBySide.of([by("zero")], {})
    assert not zero.scaled.any()


def test_controls_do_not_choose_the_strongest_units():
    slalom = by("slalom")
    noise = np.random.default_rng(5).normal(size=len(slalom))
    random = by("random", scores={"attribution": noise})
    sides = SideBySide.of([slalom, random], {})
    alone = SideBySide.of([slalom], {})
    names = [sides.kinds[index].name.split(" #")[0] for index in sides.strongest(4)]
    assert names == [alone.kinds[index].name for index in alone.strongest(4)]


def test_words_with_several_scores_are_numbered():
    scores = {"attribution": np.array([0.5, -0.5, 0.1])}
    e = by("lime", "good good film", scores=scores)
    assert [kind.title for kind in wording.kinds(e)] == ["good #1", "good #2", "film"]


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (
            judged(),
            "slalom is the most faithful here: best at predicting removals (error 0.020) and",
        ),
        ({}, "Faithfulness was not measured"),
        ({name: {"r2_all": np.nan, "aopc": np.nan} for name in FIVE}, "was not measured"),
        ({"lime": {"aopc": 0.5}, "slalom": {"aopc": 0.4}}, "Here lime is best at finding what"),
        (
            {"lime": {"aopc": 0.5, "r2_all": 0.8}, "slalom": {"aopc": 0.4, "r2_all": 0.9}},
            "Here slalom is best at predicting removals (R² 0.90), lime at finding",
        ),
        ({"lime": {"aopc": 0.5001}, "slalom": {"aopc": 0.5002}}, "slalom and lime are best"),
        ({"random": {"r2_all": 0.2}, "lime": {"r2_all": -3.0}}, "random (a control) is best"),
        ({"random": {"r2_all": 0.2}, "lime": {"r2_all": -3.0}}, "no method predicts removals"),
    ],
)
def test_the_verdict_follows_the_figures(verdicts, words):
    assert words in SideBySide.of(some(), verdicts).verdict()


def test_one_method_is_not_compared():
    assert "nothing to compare" in SideBySide.of(some(["lime"]), judged(["lime"])).verdict()


def test_only_explanations_of_the_same_input_stand_side_by_side():
    with pytest.raises(PisteError, match="lime explains another input"):
        rendered([by("slalom"), by("lime", "Something else")], {})
    with pytest.raises(PisteError, match="nothing to compare"):
        paged([], {})


# -- page ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [REVIEW, ("A superb man.", "He is dull."), HOSTILE])
def test_page_shows_every_unit_once_per_method_and_nothing_foreign(text):
    explanations = some(text=text)
    page = paged(explanations, judged())
    parsed = Page(page)
    assert parsed.tags["script"] == 2
    assert parsed.tags["style"] == 1
    assert not parsed.having("src")
    assert not parsed.having("href")
    assert "http" not in page.replace("http-equiv", "")
    shown = re.findall(r'<span class="piste-unit"[^>]*>(.*?)</span>', page, re.S)
    assert len(shown) == len(FIVE) * len(explanations[0])


def test_page_takes_names_and_settings_as_text():
    bad = '"><script>alert(2)</script>'
    e = by(bad, settings={bad: bad}, classifier={"name": bad})
    parsed = Page(paged([e], {bad: {"aopc": 0.4}}))
    assert parsed.tags["script"] == 2
    assert bad in "".join(parsed.texts)


def test_page_marks_the_best_and_dashes_the_unknown():
    verdicts = judged()
    verdicts["lime"]["aopc"] = float("nan")
    verdicts["random"] = {}
    page = paged(some(), verdicts)
    assert '<td data-v="0.02" class="piste-best">0.020</td>' in page
    assert '<td data-v="">–</td>' in page
    assert "nan" not in page.lower().replace("finance", "")


def test_words_and_rows_share_their_kind():
    page = paged(some(), judged())
    words = set(re.findall(r'<span[^>]*data-k="(\d+)"', page))
    assert words == set(re.findall(r'<tr[^>]*data-k="(\d+)"', page))


def test_thirteen_methods_and_one(tmp_path):
    for methods in (list(METHODS), ["slalom"]):
        path = tmp_path / "page.html"
        page = paged(some(methods), judged(methods), path)
        assert path.read_text(encoding="utf-8") == page
        assert page.count('class="piste-method"') == len(methods)


# -- figure --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 5, 13])
@pytest.mark.parametrize("text", [REVIEW, ("A superb man.", "He is dull."), HOSTILE])
def test_figure_holds_every_method_inside_its_bounds(count, text):
    methods = list(METHODS)[:count]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = plotted(some(methods, text), judged(methods))
        renderer = FigureCanvasAgg(figure).get_renderer()
    words = [item.get_text() for item in figure.texts]
    assert set(methods) <= set(words)
    wide, high = figure.get_size_inches() * figure.dpi
    for item in figure.texts:
        box = item.get_window_extent(renderer)
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= wide
        assert box.y1 <= high


def test_names_beside_the_bars_do_not_touch_the_text():
    figure = plotted(some(), judged())
    renderer = FigureCanvasAgg(figure).get_renderer()
    units = [item for item in figure.texts if item.get_gid() == "unit"]
    others = [item for item in figure.texts if item.get_gid() != "unit"]
    edge = min(item.get_window_extent(renderer).x0 for item in units)
    lines = [item for item in others if item.get_window_extent(renderer).y0 > 100]
    assert max(item.get_window_extent(renderer).x1 for item in lines) < edge


def test_figure_is_saved_or_refused(tmp_path):
    plotted(some(), judged(), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")
    with pytest.raises(PisteError, match=r"\.png, \.svg, \.pdf"):
        plotted(some(), judged(), tmp_path / "a.gif")


# -- explanations with one score and no errors ---------------------------------------------------


def test_attributions_look_right_everywhere():
    e = by("lime", fidelity=Fidelity(0.6, 0.1, 30))
    out = io.StringIO()
    Console(file=out, width=100).print(explanation_text.render(e))
    shown = flat(out.getvalue())
    page = explanation_html.to_html(e)
    for text in (shown, flat("".join(Page(page).texts))):
        assert "the share of the answer that the method gives the word" in text
        assert "±" not in text
        assert "importance" not in text.lower()
    figure = explanation_figure.plot(e)
    assert "attribution: the share of the answer" in figure.axes[0].get_xlabel()
    assert explanation_figure.plot(by("slalom")).axes[0].get_xlabel().startswith("value")


def test_methods_left_out_are_named_everywhere() -> None:
    sides = SideBySide.of(some(), judged(), {"smoothgrad": "It needs <gradients>."})
    out = io.StringIO()
    Console(file=out, width=100).print(comparison_text.Report(sides))
    assert "Left out: smoothgrad. It needs <gradients>." in flat(out.getvalue())
    page = page_shell.document(comparison_html.view(sides))
    assert "Left out: smoothgrad. It needs &lt;gradients&gt;." in page
    written = [text.get_text() for text in comparison_figure.draw(sides).findobj(Text)]
    assert any("smoothgrad" in words for words in written)
