"""Commands import only what they need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from piste import corpus
from piste.evaluation.metrics import METRICS
from piste.methods import METHODS
from piste.registry import Registry
from tests.corpus.corpora import write

HEAVY = {"torch", "transformers", "scipy", "matplotlib", "pandas", "sklearn", "numpy", "fastapi"}
SCRIPT = """
import json, sys
sys.argv = ["piste", *json.loads(sys.argv[1])]
from piste.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps(sorted(sys.modules)))
"""


def imported(*arguments: str) -> set[str]:
    """All modules that a command has imported by its end."""
    command = [sys.executable, "-c", SCRIPT, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("startup")
    table = write(place / "texts.csv")
    corpus.run(table, "piste:reviews", place / "run", method="occlusion", progress=False)
    return place / "run"


@pytest.mark.parametrize(
    "arguments",
    [
        "--help",
        "--version",
        "explain --help",
        "models",
        "methods",
        "methods --json",
        "metrics",
        "metrics --json",
        "concepts --list",
        "concepts --list --json",
        "query --list",
    ],
)
def test_lists_import_no_library(arguments: str) -> None:
    assert not HEAVY & imported(*arguments.split())


def test_a_question_to_results_imports_no_model(folder: Path) -> None:
    assert not (HEAVY - {"numpy"}) & imported("query", str(folder), "labels")  # DuckDB's own


def test_words_need_quantiles_and_no_more(folder: Path) -> None:
    found = imported("words", str(folder), "--least", "1")
    assert not (HEAVY - {"numpy", "scipy"}) & found
    assert not {"scipy.stats", "scipy.optimize", "scipy.sparse"} & found


def test_the_package_imports_nothing_before_it_is_used() -> None:
    code = "import piste, sys, json; dir(piste); print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert not HEAVY & set(json.loads(done.stdout))


def test_what_is_read_from_sources_is_what_the_classes_say() -> None:
    for known in (METHODS, METRICS):
        unloaded = Registry[object](known.kind, "no.such.group", known._own)
        for name in known._own:
            for attribute in ("about", "needs"):
                assert unloaded.text(name, attribute) == getattr(known[name], attribute)
        assert not unloaded._loaded, "nothing had to be imported"
