"""Executes the notebooks of examples/notebooks and stores their outputs.

    python -m tools.notebooks [NAME …]

The cells of a notebook are its source: edit them in Jupyter or in the file, then run this. Cells
run in this process, in a folder that is removed afterwards, and hold plain Python only. Of a cell
its printed text and its last value are kept; nothing about the machine is.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

Notebook: TypeAlias = dict[str, Any]


class NotebookError(RuntimeError):
    """A cell failed; the error it raised is the cause."""


def paths(names: Sequence[str] = ()) -> list[Path]:
    """All notebooks, or those of these names, in order."""
    found = sorted(FOLDER.glob("*.ipynb"))
    known = {path.stem: path for path in found}
    for name in names:
        if name not in known:
            raise SystemExit(f"Expected one of {', '.join(known)}, got {name!r}.")
    return [known[name] for name in names] if names else found


def read(path: Path) -> Notebook:
    """A notebook as it stands in its file."""
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def execute(notebook: Notebook, name: str = "notebook") -> Notebook:
    r"""The same notebook with the outputs of all cells, run in order, and nothing else.

    >>> cell = {"cell_type": "code", "source": ["a = 2\n", "print(a)\n", "a + 1"]}
    >>> done = execute({"cells": [cell]})
    >>> [output["output_type"] for output in done["cells"][0]["outputs"]]
    ['stream', 'execute_result']
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    with _empty_folder():
        for number, cell in enumerate(notebook["cells"], 1):
            kept = {"cell_type": cell["cell_type"], "id": f"cell-{number}", "metadata": {}}
            source = _lines("".join(cell["source"]).strip())
            if cell["cell_type"] == "code":
                count += 1
                try:
                    outputs = _run("".join(source), names, count, f"{name}, cell {number}")
                except Exception as problem:
                    raise NotebookError(
                        f"{name}, cell {number}: {type(problem).__name__}: {problem}"
                    ) from problem
                kept |= {"execution_count": count, "outputs": outputs}
            cells.append(kept | {"source": source})
    return {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


def write(notebook: Notebook, path: Path) -> None:
    """Store a notebook as Jupyter does."""
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(f"{text}\n", encoding="utf-8")


def _run(source: str, names: dict[str, Any], count: int, where: str) -> list[dict[str, Any]]:
    """Run one cell as Jupyter does: the value of a last expression is shown."""
    tree = ast.parse(source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = _lines(printed.getvalue())
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        result = {"data": _data(value), "execution_count": count, "metadata": {}}
        outputs.append(result | {"output_type": "execute_result"})
    return outputs


def _data(value: Any) -> dict[str, list[str]]:
    """How a value is shown: as text, and as HTML if it can."""
    data = {"text/plain": _lines(repr(value))}
    html = getattr(value, "_repr_html_", lambda: None)()
    return data if html is None else {"text/html": _lines(html), **data}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


@contextlib.contextmanager
def _empty_folder() -> Iterator[None]:
    """A working folder for what cells write."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def main() -> None:
    """Execute the notebooks and write them back."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="without the ending; default: all")
    for path in paths(parser.parse_args().names):
        write(execute(read(path), path.stem), path)
        sys.stdout.write(f"{path.stem}: {path.stat().st_size // 1024} KB\n")


if __name__ == "__main__":
    main()
