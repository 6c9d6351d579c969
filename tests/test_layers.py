"""Imports point one way: a module knows only what lies below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import piste

ROOT = Path(piste.__file__).parent
LAYERS = (
    ("errors", "types"),
    ("validation", "registry"),
    ("views", "readers", "slalom"),
    (
        "image",
        "prompt_text",
        "subject",
        "target",
        "answer",
        "surrogates",
        "classifier",
        "explanation",
    ),
    ("data",),
    ("engine",),
    ("options",),
    ("zoo",),
    ("classifiers",),
    ("vocabulary",),
    ("methods",),
    ("explanation_run", "levels", "phrases", "pipeline", "answer_spans"),
    ("evaluation", "concepts", "corpus"),
    ("verification",),
    ("comparison",),
    ("show",),
    ("serve",),
    ("cli",),
)
"""From the lowest to the highest. Packages of one layer do not know each other, modules may."""
LEVELS = {name: level for level, names in enumerate(LAYERS) for name in names}
FILES = sorted(file for file in ROOT.rglob("*.py") if file != ROOT / "__init__.py")


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every import of a module of ours, inside functions and for type checkers too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, "imports are absolute"
            if node.module == "piste":
                yield from ((node.lineno, f"piste.{alias.name}") for alias in node.names)
            elif node.module.startswith("piste."):
                yield node.lineno, node.module
        elif isinstance(node, ast.Import):
            names = (alias.name for alias in node.names)
            yield from ((node.lineno, name) for name in names if name.startswith("piste."))


def arrows_back(room: str, text: str) -> list[str]:
    """Imports of a file in a room that point to a layer above, or to a package beside it."""
    found = []
    for line, module in imported(ast.parse(text)):
        other = module.split(".")[1]
        level, theirs = LEVELS[room], LEVELS.get(other)
        if other == room or (other == "__version__"):
            continue
        beside = theirs == level and (ROOT / room).is_dir() and (ROOT / other).is_dir()
        if theirs is None or theirs > level or beside:
            found.append(f"line {line}: {room} imports {module}")
    return found


def test_every_room_has_its_layer() -> None:
    rooms = {file.relative_to(ROOT).parts[0].removesuffix(".py") for file in FILES}
    assert rooms == set(LEVELS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_downwards(file: Path) -> None:
    room = file.relative_to(ROOT).parts[0].removesuffix(".py")
    assert not arrows_back(room, file.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text",
    [
        "from piste.show import colours",
        "def f():\n    from piste.cli import main",
        "import piste.comparison",
        "if TYPE_CHECKING:\n    from piste.pipeline import explain",
    ],
)
def test_an_arrow_back_is_seen(text: str) -> None:
    assert arrows_back("methods", text)
