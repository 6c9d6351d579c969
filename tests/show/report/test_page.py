from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from piste.errors import PisteError
from piste.evaluation.bootstrap import summary
from piste.evaluation.metrics import Figure, figures_of, make
from piste.evaluation.results import Results, Row
from piste.show.report.evaluation_html import to_html
from piste.show.report.standings import headline, main_figures, sentences, standing
from tests.evaluation.invented import METHODS, invented
from tests.show.test_html import Page

FIGURES = figures_of(make(["deletion", "fidelity"]))


@pytest.fixture(scope="module")
def results() -> Results:
    return invented()


@pytest.fixture(scope="module")
def page(results) -> str:
    return to_html(results)


def made(values: dict[str, list[float]], better: str = "higher") -> Results:
    """Results with one figure, a number per example."""
    rows = tuple(
        Row(str(example), method, {"aopc": value})
        for method, numbers in values.items()
        for example, value in enumerate(numbers)
    )
    return Results(rows, {"aopc": replace(FIGURES["aopc"], better=better)}, tuple(values), {})


@pytest.fixture
def small() -> Results:
    """Without curves and times: quick to draw."""
    values = {"slalom": [0.9, 0.8, 0.9], "lime": [0.7, 0.7, 0.9], "random": [0.3, 0.2, 0.3]}
    return replace(made(values), settings=invented(("lime",), 1).settings)


def told(results: Results) -> tuple[str, str]:
    found = summary(results)
    stands = [standing(results, found, name) for name in main_figures(results, found)]
    kept = [one for one in stands if one]
    return headline(kept), " ".join(sentences(results, found, kept))


def test_standalone_and_without_foreign_parts(page):
    parsed = Page(page)
    assert not parsed.having("src")
    assert not parsed.having("href")
    assert all(link.startswith("#") for link in parsed.having("xlink:href"))
    assert "http://" not in page
    assert "https://" not in page
    assert "@import" not in page
    assert page.count("<style") == 1
    assert parsed.tags["script"] == 1
    assert parsed.tags["svg"] == 4
    policy = next(value for value in parsed.having("content") if "default-src" in value)
    assert "default-src 'none'" in policy


def test_every_method_and_figure_has_its_number(page, results):
    found = summary(results)
    text = " ".join(Page(page).texts)
    for method in METHODS:
        assert f"{found[method, 'aopc'].centre:.2f}" in text
        assert method in text
    for words in ("deletion AOPC", "R², all sizes", "Higher is better.", "Lower is better."):
        assert words in page
    assert "mse_3" not in page
    cells = re.findall(r'<td data-v="([^"]*)"', page)
    assert float(cells[0]) == pytest.approx(found["slalom", "aopc"].centre, rel=1e-5)


def test_figures_follow_the_colours_of_the_page(page):
    charts = "".join(re.findall(r"<svg.*?</svg>", page, re.S))
    assert "var(--ink)" in charts
    assert "#22262b" not in charts
    assert "#0b57a4" not in charts
    assert "<text" in charts
    assert "prefers-color-scheme:dark" in page


def test_settings_and_refusals_are_told(small):
    rows = (*small.rows, Row("7", "lime", {}, problem="It needs <gradients>."))
    page = to_html(replace(small, rows=rows))
    noted = tuple(replace(row, note="truncated: 9 tokens") for row in small.rows)
    assert "3 of 3 examples" in to_html(replace(small, rows=noted))
    for words in ("piste:reviews", "2.13.0", "piste evaluate --data imdb", "budget"):
        assert words in page
    assert "It needs &lt;gradients&gt;." in page
    assert "Refused or failed" in page


def test_hostile_names_settings_and_reasons_are_escaped():
    bad = '<script>alert(1)</script>"onload=x'
    rows = tuple(replace(row, method=bad) for row in invented(("lime",), 5).rows)
    results = replace(
        invented(("lime",), 5),
        rows=(*rows, Row("9", bad, {}, problem=bad)), methods=(bad,),
        figures={
            "aopc": Figure("aopc", "higher", bad, bad, bad),
            bad: Figure(bad, "neither", bad, bad, bad),
        },
        settings={"model": bad, "data": {"name": bad}, bad: bad},
    )  # fmt: skip
    parsed = Page(to_html(results))
    assert parsed.tags["script"] == 1
    assert not [name for _, name, _ in parsed.attributes if name.startswith("on")]
    assert bad in "".join(parsed.texts)


def test_nothing_is_claimed_that_the_intervals_do_not_show():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=30)
    level = made({"slalom": list(0.5 + 0.3 * noise), "lime": list(0.49 + 0.3 * noise[::-1])})
    title, text = told(level)
    assert "clearly" not in title
    assert "without a clear difference to" in text
    clear = made({"slalom": list(0.9 + 0.3 * noise), "lime": list(0.7 + 0.3 * noise)})
    title, text = told(clear)
    assert title == "slalom is clearly the most faithful"
    assert "slalom is clearly best at finding the units that carry the answer" in text
    lower = made({"slalom": [0.9, 0.8, 0.95] * 2, "lime": [0.1, 0.2, 0.15] * 2}, "lower")
    assert told(lower)[0] == "lime is clearly the most faithful"


def test_methods_no_better_than_a_control_are_named():
    clear = {"slalom": [0.9, 0.8, 0.9], "gradient": [0.1, 0.4, 0.2], "random": [0.3, 0.2, 0.3]}
    text = told(made({method: 2 * values for method, values in clear.items()}))[1]
    assert "gradient doesn't clearly beat the control random" in text
    assert "slalom doesn't" not in text


def test_winners_differ_by_figure():
    results = made({"a": [0.9, 0.8, 0.9] * 2, "b": [0.1, 0.2, 0.1] * 2})
    rows = tuple(
        replace(row, figures=row.figures | {"r2_all": 1.0 - row.figures["aopc"]})
        for row in results.rows
    )
    figures = dict(results.figures) | {"r2_all": FIGURES["r2_all"]}
    both = replace(results, rows=rows, figures=figures)
    assert told(both)[0] == "No method is best at everything"


def test_one_method_and_one_example():
    page = to_html(invented(("slalom",), 1))
    assert "slalom was measured alone" in page
    assert "nan" not in " ".join(Page(page).texts).lower().split()
    assert "Only 1 example:" in page


def test_empty_and_unknown_results_still_make_a_page(small):
    assert "Nothing could be measured" in to_html(replace(small, rows=(), methods=()))
    rows = tuple(
        replace(row, figures=dict.fromkeys(row.figures, np.nan), curves={}) for row in small.rows
    )
    assert "Nothing could be measured" in to_html(replace(small, rows=rows))
    odd = made({"a": [1.0, 2.0], "b": [1.0, 2.0]}, "neither")
    assert "Nothing could be measured" in to_html(odd)


def test_differences_to_the_reference_are_paired(page, small):
    assert "Against slalom, on the same examples" in page
    assert page.count('class="piste-worse">worse<') > 10
    other = replace(small, settings=dict(small.settings) | {"reference": "lime"})
    assert "Against lime, on the same examples" in to_html(other)


def test_written_whole_or_refused(small, tmp_path):
    path = tmp_path / "page.html"
    assert to_html(small, path) == path.read_text(encoding="utf-8")
    with pytest.raises(PisteError, match="could not be written"):
        to_html(small, tmp_path / "no" / "page.html")
