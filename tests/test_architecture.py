"""ARCHITECTURE.md names files that are there, and its walk passes through the files it names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import piste
from tests.test_layers import LAYERS

ROOT = Path(__file__).parent.parent
PACKAGE = Path(piste.__file__).parent
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
FILE = re.compile(r"`([\w/]+\.py)`")

TRACE = """
import inspect, sys, threading
from pathlib import Path
import piste
from piste.cli import main

package, seen = Path(piste.__file__).parent, {}

def importing(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_back is not None:
            return True
        frame = frame.f_back
    return False

def note(frame, event, _):
    code = frame.f_code
    if event != "call" or code.co_filename in seen or not code.co_flags & inspect.CO_OPTIMIZED:
        return
    if not importing(frame):
        seen[code.co_filename] = code.co_name

threading.setprofile(note)
sys.setprofile(note)
try:
    main()
finally:
    sys.setprofile(None)
    files = [Path(file) for file in seen]
    ours = [file.relative_to(package).as_posix() for file in files if package in file.parents]
    Path("files.txt").write_text("\\n".join(ours))
"""


def walk() -> list[str]:
    """The files of the walk, in its order."""
    section = PAGE.split("## One walk")[1].split("\n## ")[0]
    return [file for line in section.splitlines() if line[:1] == "|" for file in FILE.findall(line)]


def test_files_are_there() -> None:
    missing = {f for f in FILE.findall(PAGE) if not any((p / f).is_file() for p in (PACKAGE, ROOT))}
    assert not missing


def test_layers_are_those_of_the_test() -> None:
    section = PAGE.split("## Layers")[1].split("\n## ")[0]
    lines = [line.strip() for line in section.splitlines() if line.startswith("    ")]
    assert lines == [", ".join(names) for names in LAYERS]


@pytest.mark.slow
def test_the_walk_passes_through_its_files(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TRACE, "explain", "A slow start.", "--html", "page.html"]
    env = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").is_file()
    passed = (tmp_path / "files.txt").read_text(encoding="utf-8").split()
    assert len(passed) < 45
    assert len(passed) <= int(re.findall(r"functions of (\d+) files", PAGE)[0])
    assert not set(walk()) - set(passed)
