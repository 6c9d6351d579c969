"""Words of a corpus as a page: linked, escaped, and only as many as can be read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

from piste.corpus.words import Word
from piste.show.html import page_shell, words_html
from tests.cli.commands import run
from tests.corpus.corpora import TEXTS
from tests.show.test_html import Page


def word(name: str, target: str = "log-odds of 'good'", **changes: float | None) -> Word:
    own = {"value": 1.0, "importance": 0.5} | changes
    return Word(name, target, None, 9, 0.4, 0.1, own["value"], own["importance"])


def test_dots_and_rows_share_their_number_over_all_targets() -> None:
    rows = [word("fine"), word("bad", value=-2.0), word("fine", "log-odds of '<b>'")]
    view = words_html.view(rows, "Some.")
    page = page_shell.document(view)
    kinds = [re.findall(rf'<{tag}[^>]*data-k="(\d+)"', page) for tag in ("g", "tr")]
    assert sorted(set(kinds[0])) == sorted(kinds[1]) == ["0", "1", "2"]
    assert view.data is not None
    assert view.data["names"] == ["bad", "fine", "fine"]
    assert "speaks for good" in page
    assert "<b>" not in view.body


def test_words_are_escaped() -> None:
    hostile = '</script><img src=x onerror="alert(1)">'
    page = Page(page_shell.document(words_html.view([word(hostile)], "Some <i>.", model="<u>")))
    assert page.tags["script"] == 2
    assert not [tag for tag in ("img", "u") if page.tags[tag]]
    assert json.loads(page.scripts[0])["names"] == [hostile]


def test_without_values_there_is_a_table_alone() -> None:
    body = words_html.view([word("fine", value=None, importance=None)], "Some.").body
    assert "<svg" not in body
    assert ">fine</th>" in body
    assert "importance" not in body
    assert "No word" in words_html.view([], "None.").body


def test_the_most_telling_are_shown() -> None:
    rng = np.random.default_rng(0)
    rows = [
        Word(f"w{n}", "t", None, 9, effect, 0.01, float(rng.normal()), float(rng.normal()))
        for n, effect in enumerate(rng.normal(size=500).tolist())
    ]
    shown = words_html.most_informative(rows)
    assert len(shown) == words_html.MOST
    strongest = sorted(rows, key=lambda row: -abs(row.effect))[:150]
    assert {row.word for row in strongest} <= {row.word for row in shown}
    assert "most telling are shown" in words_html.view(rows, "Some.").body


def test_commands_write_the_page(tmp_path: Path, monkeypatch, capsys) -> None:
    source = tmp_path / "some.jsonl"
    source.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS * 2))
    done = run(monkeypatch, capsys, "corpus", source, "--out", tmp_path / "run", "--samples", 15)
    assert done[0] == 0
    page = tmp_path / "words.html"
    given = ("words", tmp_path / "run", "--least", 2, "--html", page)
    code, _, err = run(monkeypatch, capsys, *given)
    assert (code, "words.html" in err.replace("\n", "")) == (0, True)
    assert 'class="piste-plane"' in page.read_text(encoding="utf-8")
    page.unlink()
    out = tmp_path / "words.parquet"
    code, _, _ = run(monkeypatch, capsys, "vocabulary", source, "--out", out, "--html", page)
    assert code == 0
    assert "One SLALOM for 14 documents" in page.read_text(encoding="utf-8")
