from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest

from piste.errors import PisteError
from piste.show import colours
from piste.show.html import explanation_html

FIXTURES = (
    "review", "three", "pair", "classwise", "unsure", "additive", "markup", "foreign", "long",
)  # fmt: skip


class Page(HTMLParser):
    """The elements, attributes and script texts of a page, as a browser would read them."""

    VOID = {"meta", "circle", "path", "i"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self.script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.script = tag == "script"

    def handle_endtag(self, tag):
        self.script = False

    def handle_data(self, data):
        (self.scripts if self.script else self.texts).append(data)

    def having(self, name: str) -> list[str]:
        return [value for _, key, value in self.attributes if key == name]


@pytest.mark.parametrize("name", FIXTURES)
def test_standalone(request, name):
    e = request.getfixturevalue(name)
    for text, frames in ((explanation_html.to_html(e), 0), (explanation_html.fragment(e), 1)):
        page = Page(text)
        # The frame of a notebook holds the page itself, and can't reach out of it.
        assert page.having("sandbox") == ["allow-scripts"] * frames
        assert page.tags["iframe"] == len(page.having("srcdoc")) == frames
        assert not page.having("src")
        assert not page.having("href")
        assert "http://" not in text
        assert "https://" not in text
        assert "url(" not in text
        assert "@import" not in text
        assert not [tag for tag in page.tags if tag in ("img", "link", "object")]


@pytest.mark.parametrize("name", FIXTURES)
def test_every_unit_once_with_its_own_text(request, name):
    e = request.getfixturevalue(name)
    shown = re.findall(
        r'<span class="piste-unit"[^>]*>(.*?)</span>', explanation_html.to_html(e), re.S
    )
    assert len(shown) == len(e.units)
    order = sorted(e.units, key=lambda unit: (unit.segment, unit.start))
    assert [Page(text).texts for text in shown] == [[unit.text] for unit in order]


def test_markup_in_text_labels_and_settings_is_escaped(markup):
    for text, scripts in (
        (explanation_html.to_html(markup), 2),
        (explanation_html.fragment(markup), 0),
    ):
        page = Page(text)
        assert page.tags["script"] == scripts
        assert page.tags["style"] == 1
        assert page.tags["img"] == 0
        assert not [name for _, name, _ in page.attributes if name.startswith("on")]
        assert "<script>alert(1)</script>" in "".join(page.texts)
    data = Page(explanation_html.to_html(markup)).scripts[0]
    assert "<" not in data
    assert "<script>alert(1)</script>" in json.loads(data)["names"]


def test_policy_allows_just_this_script(review):
    page = Page(explanation_html.to_html(review))
    policy = next(value for value in page.having("content") if "default-src" in value)
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_says_what_how_well_and_how_sure(review):
    text = "".join(Page(explanation_html.to_html(review)).texts)
    for words in (
        "positive",
        "97.1 %",
        "Mostly because of",
        "R² 0.93",
        "very well",
        "cost of 121 full passes",
        "Settings and versions",
        "2.13.0",
    ):
        assert words in text
    page = explanation_html.to_html(review)
    tip = 'title="contribution +0.86 ± 0.12 · value +3.10 ± 0.30 · importance +0.90 ± 0.12"'
    assert tip in page
    assert page.count('class="piste-plane"') == 2


def test_words_dots_and_rows_share_their_kind(review):
    page = explanation_html.to_html(review)
    kinds = [set(re.findall(rf'<{tag}[^>]*data-k="(\d+)"', page)) for tag in ("span", "g", "tr")]
    assert kinds[0] == kinds[1] == kinds[2] == {str(number) for number in range(47)}


def test_colours_of_the_text_follow_the_score(review):
    shown = explanation_html.fragment(review)
    best = re.search(r'style="background:([^"]*)">wonderful<', shown)
    worst = re.search(r'style="background:([^"]*)">awful<', shown)
    assert best is not None
    assert best[1].startswith(f"rgba({','.join(map(str, colours.FOR))},0.")
    assert worst is not None
    assert worst[1].startswith(
        f"rgba({','.join(map(str, colours.AGAINST))},{colours.STRONGEST:.2f}"
    )


def test_additive_scores_need_no_plane(additive):
    page = explanation_html.to_html(additive)
    assert "<svg" not in page
    assert "attribution" in page
    assert "Above 0 it speaks for positive, below 0 it speaks against positive" in page


def test_class_wise_scores_are_offered_by_class(classwise):
    page = explanation_html.to_html(classwise)
    assert page.count("<option") == 4 * 4 + 1  # importance is shared by the classes
    assert "contribution, class 0" in page
    assert "Scores of class 3" in page


def test_pairs_unknown_errors_and_cut_texts(pair, unsure, long, make):
    assert "Text 2" in explanation_html.to_html(pair)
    assert "±" not in explanation_html.to_html(unsure)
    assert "cut off" in explanation_html.to_html(long)
    text = "kept words here, lost words there"
    full = make(text)
    cut = make(text, list(full.units[:3]), settings={"input": {"long": "truncate"}})
    assert '<s class="piste-unread">, lost words there</s>' in explanation_html.to_html(cut)


def test_unknown_scores_still_make_a_page(make, three):
    scores = {name: np.array(array) for name, array in three.scores.items()}
    scores["value"][0] = np.nan
    page = explanation_html.to_html(make(three.input, scores=scores))
    assert "NaN" not in Page(page).scripts[0]
    assert page.count('class="piste-dot') == 4  # two of three units, on two planes


def test_written_whole_or_refused(review, tmp_path):
    path = tmp_path / "page.html"
    assert explanation_html.to_html(review, path) == path.read_text(encoding="utf-8")
    with pytest.raises(PisteError, match="could not be written"):
        explanation_html.to_html(review, tmp_path / "no" / "page.html")


def test_700_words_are_all_on_the_page(long):
    page = explanation_html.to_html(long)
    assert page.count("data-k=") >= 700
