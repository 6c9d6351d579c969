"""The notebooks run, are stored with their outputs, and what they show stands alone on a page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import piste
from piste.zoo.clothes import draw_clothes
from tools import notebooks

PATHS = notebooks.paths()
TEXT = "A slow start, but a wonderful ending."


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path) -> None:
    stored = notebooks.read(path)
    again = notebooks.execute(stored, path.stem)
    for before, after in zip(stored["cells"], again["cells"], strict=True):
        assert before["source"] == after["source"]
        kinds = [
            [one["output_type"] for one in cell.get("outputs", [])] for cell in (before, after)
        ]
        assert kinds[0] == kinds[1], "stored with other outputs: run python -m tools.notebooks"


def _kinds(cell: dict[str, Any]) -> list[str]:
    return [output["output_type"] for output in cell.get("outputs", [])]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_notebooks_are_short_and_say_nothing_of_the_machine(path: Path) -> None:
    text, stored = path.read_text(encoding="utf-8"), notebooks.read(path)
    assert len(stored["cells"]) <= 15
    assert path.stat().st_size < 300_000
    assert stored["metadata"] == notebooks.METADATA
    assert stored["cells"][0]["cell_type"] == "markdown"
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not any(cell["metadata"] for cell in stored["cells"])
    assert not re.search(r"/(home|root|tmp|work|Users)/|site-packages", text)


def test_there_are_five() -> None:
    assert len(PATHS) == 5
    with pytest.raises(SystemExit, match=r"Expected one of .* got 'nothing'"):
        notebooks.paths(["nothing"])


def test_a_cell_that_fails_is_named(tmp_path: Path) -> None:
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "source": ["# A title"]},
        {"cell_type": "code", "source": ["a = 1\n", "a / 0"]},
    ]
    before = Path.cwd()
    with pytest.raises(notebooks.NotebookError, match="cell 2: ZeroDivisionError"):
        notebooks.execute({"cells": cells})
    assert Path.cwd() == before
    notebooks.write(notebooks.execute({"cells": cells[:1]}), tmp_path / "one.ipynb")
    assert json.loads((tmp_path / "one.ipynb").read_text())["nbformat"] == 4


# -- what results show in a notebook ---------------------------------------------------------------


class Outline(HTMLParser):
    """Tags, ids, styles and addresses of a piece of HTML; frames are pages of their own."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.frames: list[str] = []
        self.css = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("id", "name"):
                self.ids.append(value or "")
            if name in ("src", "href"):
                self.addresses.append(value or "")
            if name == "srcdoc":
                self.frames.append(value or "")

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["style"]:
            self.css += data


@pytest.fixture(scope="module")
def shown(reviews: Any) -> dict[str, str]:
    comparison = piste.compare(reviews, TEXT, ["slalom", "lime"], samples=60)
    image = piste.explain(piste.load("piste:fashion"), draw_clothes("dress"), samples=60)
    other = piste.explain(reviews, "A dull film.", samples=60)
    return {
        name: result._repr_html_()
        for name, result in {
            "explanation": comparison.explanations["slalom"],
            "another": other,
            "image": image,
            "comparison": comparison,
        }.items()
    }


def test_results_need_no_server_and_no_script(shown: dict[str, str]) -> None:
    for html in shown.values():
        outline = Outline(html)
        assert "script" not in outline.tags
        assert "link" not in outline.tags
        assert all(address.startswith(("data:", "#")) for address in outline.addresses)
        (frame,) = outline.frames  # the whole page, alone in its frame
        inside = Outline(frame)
        assert all(address.startswith(("data:", "#")) for address in inside.addresses)


def test_results_on_one_page_do_not_clash(shown: dict[str, str]) -> None:
    ids = [one for html in shown.values() for one in Outline(html).ids]
    assert len(ids) == len(set(ids))
    for html in shown.values():
        css = re.sub(r"/\*.*?\*/", "", Outline(html).css, flags=re.DOTALL)
        selectors = re.findall(r"([^{}]+)\{", css)
        plain = [one.strip() for one in selectors if not one.strip().startswith("@")]
        assert all(".piste" in part for one in plain for part in _apart(one)), plain


def _apart(selector: str) -> list[str]:
    """The members of a list of selectors; commas in brackets belong to one."""
    return re.split(r",(?![^(]*\))", selector)
