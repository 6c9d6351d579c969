"""Results of other commands, opened to be browsed: what a path holds, and what is shown of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from piste.concepts import report_file
from piste.data import storage
from piste.errors import PisteError, need
from piste.serve.corpus_results import Run
from piste.serve.path_redaction import pathless
from piste.serve.result_schemas import ResultKind
from piste.serve.result_views import answered
from piste.serve.schemas import ViewAnswer
from piste.show.html import concept_html, explanation_html, page_shell, words_html
from piste.vocabulary import Vocabulary

KNOWN = (
    "the folder of a corpus run, a vocabulary (.parquet), a concept report (.json) or an "
    "explanation (.json, .csv or .parquet)"
)


@dataclass(frozen=True)
class Stored:
    """A result in one file: its view is made once, when the server starts."""

    name: str
    kind: ResultKind
    about: str
    answer: ViewAnswer


Result: TypeAlias = Stored | Run


def open_results(paths: Sequence[str | Path]) -> list[Result]:
    """What the paths hold, or why one of them can't be browsed."""
    return [_opened(Path(path)) for path in paths]


def _opened(path: Path) -> Result:
    if path.is_dir():
        return Run(path)
    if not path.is_file():
        raise PisteError(f"There is no file or folder {str(path)!r}: --results wants {KNOWN}.")
    try:
        return _read(path, _kind(path))
    except PisteError:
        raise
    except (OSError, LookupError, TypeError, ValueError, AttributeError) as problem:
        raise PisteError(f"{str(path)!r} can't be browsed: --results wants {KNOWN}.") from problem


def _read(path: Path, kind: ResultKind) -> Stored:
    if kind == "vocabulary":
        found = Vocabulary.read(path)
        found = replace(found, about=pathless(found.about))
        about = f"{len(found):,} words of {found.about['documents']:,} documents"
        return _stored(path, kind, about, words_html.of_vocabulary(found))
    if kind == "concepts":
        report = report_file.read(path)
        own = {name: pathless(getattr(report, name)) for name in ("settings", "classifier")}
        report = replace(report, notes=pathless(report.notes), **own)
        about = f"{len(report.concepts):,} concepts in {report.classifier.get('name')}"
        return _stored(path, kind, about, concept_html.view(report))
    e = storage.read(path)
    e = replace(e, settings=pathless(e.settings), classifier=pathless(e.classifier))
    about = f"one input, by {e.method}, of {e.classifier.get('name') or 'a model'}"
    return _stored(path, kind, about, explanation_html.view(e))


def _stored(path: Path, kind: ResultKind, about: str, view: page_shell.View) -> Stored:
    return Stored(path.resolve().name, kind, about, answered(view))


def _kind(path: Path) -> ResultKind:
    """What a file says that it is; reading it in earnest shows whether that is true."""
    ending = path.suffix.lower()
    if ending == ".parquet":
        parquet: Any = need("pyarrow.parquet", "tables", "Reading results")
        metadata = parquet.read_schema(path).metadata or {}
        own = json.loads(metadata.get(b"piste", b"{}"))
        return "vocabulary" if "piste_vocabulary" in own else "explanation"
    if ending == ".csv":
        return "explanation"
    content = json.loads(path.read_bytes().decode("utf-8-sig"))
    if isinstance(content, dict) and "piste_concepts" in content:
        return "concepts"
    if isinstance(content, dict) and "piste" in content:
        return "explanation"
    raise PisteError(f"{str(path)!r} can't be browsed: --results wants {KNOWN}.")
