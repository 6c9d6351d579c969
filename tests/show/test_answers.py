"""Explanations of a language model's answer: prompt, parts, answer, spans."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import piste
from piste.answer import Answer
from piste.show import score_terms, wording
from piste.show.html import answer_html
from piste.show.score_terms import part_sums, strongest
from piste.show.summary import Summary
from piste.show.wording import blocks
from tests.language_models import save_language_model

PROMPT = "{context}\n\nquestion : {question} ?\nanswer :"
VALUES = {
    "context": ["the tower stands in paris . it was 1889 .", "the man walked on the moon ."],
    "question": "when did the man",
}
ANSWER = "the year was 1969 . the man was first ."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_language_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return piste.load(folder, prompt=PROMPT, pinned=["question"], name="tiny")


@pytest.fixture(scope="module")
def e(model: Any) -> piste.Explanation:
    return piste.explain(model, VALUES, answer=ANSWER, samples=80)


def printed(e: piste.Explanation) -> str:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(e)
    return console.export_text()


def page_data(page: str) -> dict[str, Any]:
    found = re.search(r'class="piste-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def test_summary_speaks_of_the_answer(e):
    summary = Summary.of(e)
    assert summary.answer.startswith(f"“{ANSWER}” (log-probability −")
    assert " = " not in summary.line
    assert "prompts with words removed" in summary.trust
    assert score_terms.sides(e, e.ranking) == (
        "makes the answer likelier",
        "makes the answer less likely",
    )
    span = e.of("1969")
    assert Summary.of(span).answer.startswith("“1969” (log-probability −")
    assert score_terms.sides(span, e.ranking)[0] == "makes “1969” likelier"


def test_another_answer_is_named(model):
    e = piste.explain(model, VALUES, answer="yes", against="no", samples=40)
    assert wording.prediction(e).startswith("“yes” over “no” (difference of log-probabilities ")
    assert wording.sides(e) == ("speaks for “yes”", "speaks for “no”")
    data = page_data(e.to_html())
    assert data["answer"]["shown"]["value"] == pytest.approx(e.output.value)


def test_blocks_are_the_prompt_with_its_parts(e):
    found = blocks(e)
    assert [block.title for block in found] == [
        "context 1", "context 2", None, "question (never removed)", None,
    ]  # fmt: skip
    said = ["".join(piece.text for piece in block.pieces) for block in found]
    assert said == [*VALUES["context"], "question :", "when did the man", "?\nanswer :"]
    assert [block.is_pinned for block in found] == [False, False, True, True, True]
    units = [piece.unit for block in found for piece in block.pieces if piece.unit is not None]
    assert units == list(range(len(e.units)))


def test_parts_add_up_and_the_largest_comes_first(e):
    sums = part_sums(e)
    assert {part.name for part in sums} == {"context 1", "context 2"}
    assert abs(sums[0].total) >= abs(sums[1].total)
    assert sum(part.total for part in sums) == pytest.approx(float(e.score().sum()))
    assert f"and {len(sums[0].units) - 3} more" in strongest(e, sums[0])


def test_units_that_are_parts_have_no_sums(model):
    e = piste.explain(model, VALUES, answer=ANSWER, units="parts", samples=40)
    assert part_sums(e) == []
    assert wording.part(e) == "part"


def test_terminal_and_figure_show_parts_and_answer(e, tmp_path):
    text = printed(e)
    for words in ("context 1", "question (never removed)", "the answer", "in sum", ANSWER):
        assert words in text
    e.plot("text", tmp_path / "text.svg")
    drawn = (tmp_path / "text.svg").read_text()
    assert drawn.count("<use") > len(ANSWER)  # letters are drawn, not written
    assert e.plot("bars") is not None


def test_words_and_sentences_of_an_answer_are_explained_beforehand(e):
    assert e.answer is not None
    words = answer_html.words(e.answer)
    assert [e.answer.text[a:b] for a, b in words] == ANSWER.split()
    assert answer_html.sentences(e.answer) == [(0, 4), (5, 9)]
    found, problem = answer_html.explained(e)
    assert problem is None
    assert set(found) == {(n, n) for n in range(10)} | {(0, 4), (5, 9)}
    for (first, last), one in found.items():
        assert answer_html.selected(one) == (first, last)
    whole = [found[n, n].output.value for n in range(10)]
    assert sum(whole) == pytest.approx(e.output.value, abs=1e-4)


def test_many_words_leave_sentences(e, monkeypatch):
    monkeypatch.setattr(answer_html, "MOST", 5)
    assert set(answer_html.explained(e)[0]) == {(0, 4), (5, 9)}


def test_texts_without_blanks_are_selected_by_tokens():
    text = "月" * 40
    answer = Answer(text, tuple((n, n + 1) for n in range(40)))
    assert answer_html.words(answer) == [(n, n + 1) for n in range(40)]


def test_page_holds_every_span(e):
    page = e.to_html()
    assert page.count('class="piste-word"') == 10
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    data = page_data(page)["answer"]
    assert data["own"] == [0, 9]
    assert len(data["known"]) == 12
    one = next(one for one in data["known"] if one["words"] == [3, 3])
    span = answer_html.explained(e)[0][3, 3]
    told = answer_html.span_data(span, wording.kinds(e))
    assert {name: one[name] for name in told} == json.loads(json.dumps(told))
    assert one["scores"] == pytest.approx(span.score(), rel=1e-3)
    assert one["value"] == pytest.approx(e.of("1969").output.value)
    kinds = wording.kinds(e)
    assert [len(column["scores"]) for column in one["columns"]] == [len(kinds)] * 5
    assert set(one["plane"]) <= {column["name"] for column in one["columns"]}
    assert max(one["order"]) < len(kinds)


def test_page_of_a_span_begins_with_it(e):
    data = page_data(e.of("1969").to_html())["answer"]
    assert data["own"] == [3, 3]
    assert data["back"] == "“1969”"


def test_notebooks_explain_nothing_beforehand(e, monkeypatch):
    monkeypatch.setattr(answer_html, "explained", None)
    assert "piste-word" in e._repr_html_()


def test_answers_are_escaped(folder):
    lm = piste.load(folder)
    e = piste.explain(lm, "when <b>was</b> it", answer="the moon", samples=20)
    assert e.answer is not None
    e = replace(e, answer=replace(e.answer, text="the <script>alert(1)</script>"))
    page = e.to_html()
    assert "<script>alert" not in page
    assert "<b>was" not in page


def test_labels_of_a_prompted_model_are_explained_by_parts(folder):
    classifier = piste.load(folder, prompt="{review}\n{film}\nsentiment :", labels=["good", "bad"])
    e = piste.explain(classifier, {"review": "a great film", "film": "the moon"}, samples=40)
    assert "%" in Summary.of(e).answer
    assert {part.name for part in part_sums(e)} == {"review", "film"}
    page = e.to_html()
    assert "data-w=" not in page
    assert "The prompt" in page
    assert e.classifier["prompt"] == "{review}\n{film}\nsentiment :"
