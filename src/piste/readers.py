"""Stored results are read again: one reader for each kind of file or folder.

A stored result names its kind: in JSON by a field ``piste_KIND`` (of an explanation just
``piste``), in a Parquet file by the same field in its metadata. A reader is a function of the path.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from piste.errors import READING_ERRORS, PisteError, need, one_line, shorten
from piste.registry import Registry
from piste.validation import check_size

READERS: Registry[Callable[[Path], Any]] = Registry(
    "reader",
    "piste.readers",
    {
        "explanation": "piste.data.unit_tables:read",
        "comparison": "piste.comparison:read",
        "concepts": "piste.concepts.report:read",
        "results": "piste.evaluation.results:read",
        "run": "piste.evaluation.benchmark.run_store:read_results",
        "vocabulary": "piste.vocabulary.table:read",
    },
)
_FIELD = "piste"
MOST_BYTES = 300_000_000
"""Of a stored result that is no folder."""
_WHAT = "it is no result, or one of very many inputs that a corpus run should hold"
_RUN_FILES = ("run.json", "manifest.json")
"""What a run folder says of itself: of an evaluation, and of a corpus."""


def read(path: str | Path) -> Any:
    """A stored result, of the type that was stored.

    Explanations (.json, .csv, .parquet), comparisons, concept reports and evaluation results
    (.json), vocabularies (.parquet), and the folder of an evaluation.

    >>> import piste, tempfile, os
    >>> e = piste.explain(piste.load(lambda texts: [len(t) for t in texts]), "one two three")
    >>> file = os.path.join(tempfile.mkdtemp(), "e.json")
    >>> _ = e.to_json(file)
    >>> piste.read(file).units == e.units
    True
    """
    kind = kind_of(path)
    if kind not in READERS:
        hint = " Use piste.corpus.explanations(folder)." if kind == "corpus" else ""
        raise PisteError(
            f"{str(path)!r} holds {kind!r}, expected one of {', '.join(READERS)}.{hint}"
        )
    return READERS[kind](Path(path))


def kind_of(path: str | Path) -> str:
    """The kind that a file or folder says it is; only reading it shows whether that is true."""
    if not isinstance(path, (str, Path)):
        raise PisteError(f"Expected the path of a stored result, got {shorten(path)}.")
    file = Path(path)
    if file.is_dir():
        inside = [file / name for name in _RUN_FILES if (file / name).is_file()]
        if not inside:
            raise PisteError(
                f"The folder {str(path)!r} holds no run: expected {' or '.join(_RUN_FILES)} in it."
            )
        return _named(inside[0], _json(inside[0]))
    if not file.is_file():
        raise PisteError(f"There is no file {str(path)!r}.")
    ending = file.suffix.lower()
    if ending == ".csv":
        return "explanation"
    return _parquet_kind(file) if ending == ".parquet" else _named(file, _json(file))


def _json(file: Path) -> Any:
    try:
        check_size(repr(str(file)), file.stat().st_size, MOST_BYTES, "bytes", _WHAT)
        return json.loads(file.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as problem:
        raise PisteError(f"{str(file)!r} is not UTF-8 text.") from problem
    except OSError as problem:
        raise PisteError(f"{str(file)!r} could not be read: {problem.strerror}.") from problem
    except PisteError:
        raise
    except READING_ERRORS as problem:
        raise PisteError(f"{str(file)!r} is not JSON ({one_line(problem)}).") from problem


def _named(file: Path, content: Any) -> str:
    names = list(content) if isinstance(content, dict) else []
    for name in names:
        if name == _FIELD:
            return "explanation"
        if name.startswith(f"{_FIELD}_"):
            return name.removeprefix(f"{_FIELD}_")
    raise PisteError(f"{str(file)!r} is not a stored result: it has no field {_FIELD!r}.")


def _parquet_kind(file: Path) -> str:
    parquet: Any = need("pyarrow.parquet", "tables", "A Parquet file")
    try:
        metadata = parquet.read_schema(file).metadata or {}
        own = json.loads(metadata.get(b"piste", b"{}"))
    except READING_ERRORS as problem:
        raise PisteError(f"{str(file)!r} could not be read: {one_line(problem)}.") from problem
    return "vocabulary" if "piste_vocabulary" in own else "explanation"
