"""Every example of README, CONTRIBUTING, ARCHITECTURE and docs runs.

Python blocks are run as code, piste commands as commands.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from piste import cli
from piste.classifiers.loading import CLASSIFIERS
from piste.evaluation.metrics import METRICS
from piste.methods import METHODS
from piste.views import VIEWS

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for registry in (CLASSIFIERS, METHODS, METRICS, VIEWS):
        monkeypatch.setattr(registry, "_loaded", {})  # what an example registers is gone after it
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    ran = 0
    for language, code in blocks:
        if language == "python":
            exec(compile(code, str(page), "exec"), names)
            ran += 1
        elif language in ("sh", "console"):
            for line in code.splitlines():
                if line.startswith("piste "):
                    run_command(line, monkeypatch)
                    ran += 1
    assert ran >= len(blocks), "a block was neither run nor a list of commands"


def run_command(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
    code: object = 0
    try:
        cli.main()
    except SystemExit as stop:
        code = stop.code
    assert not code, line
