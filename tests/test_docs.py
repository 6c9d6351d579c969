"""Every example of README, CONTRIBUTING, ARCHITECTURE and docs runs.

Python blocks are run as code, commands of piste and of studies as commands.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from piste import cli
from piste.classifiers.loading import CLASSIFIERS
from piste.evaluation.metrics import METRICS
from piste.methods import METHODS
from piste.views import VIEWS
from studies.__main__ import main as studies_main
from tests.classifiers.prompted.conftest import CHAT, language_model
from tests.conftest import make_bytes

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
LONG = ("corpus.md", "concepts.md", "served.md")
"""Pages whose examples take long."""
LANGUAGE_MODEL = "SmolLM2-135M-Instruct"
"""The name of a folder in the examples of language models."""
PROGRAMS = {"piste": cli.main, "python -m studies": studies_main}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] * (page.name in LONG), id=page.name)
        for page in PAGES
    ],
)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for registry in (CLASSIFIERS, METHODS, METRICS, VIEWS):
        monkeypatch.setattr(registry, "_loaded", {})  # what an example registers is gone after it
    text = page.read_text(encoding="utf-8")
    if LANGUAGE_MODEL in text:
        make_language_model(tmp_path / LANGUAGE_MODEL)
    blocks = BLOCK.findall(text)
    names: dict[str, object] = {}
    ran = 0
    for language, code in blocks:
        if language == "python":
            exec(compile(code, str(page), "exec"), names)
            ran += 1
        elif language in ("sh", "console"):
            for line in code.splitlines():
                for start, main in PROGRAMS.items():
                    if line.startswith(f"{start} "):
                        run_command(line.removeprefix(start), main, monkeypatch)
                        ran += 1
    assert ran >= len(blocks), "a block was neither run nor a list of commands"


def make_language_model(folder: Path) -> None:
    """A small one with random weights: examples show how it is used, not what it says."""
    tokenizer = make_bytes()
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(folder)
    language_model("llama-no-pad").save_pretrained(folder)


def run_command(line: str, main: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["program", *shlex.split(line, comments=True)])
    code: object = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code
    assert not code, line
