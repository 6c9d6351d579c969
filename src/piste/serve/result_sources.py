"""Results of other commands, opened to be browsed: what a path holds, and what is shown of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

from piste.comparison import Comparison
from piste.concepts import ConceptReport
from piste.errors import PisteError
from piste.evaluation.results import Results
from piste.explanation import Explanation
from piste.readers import READERS, kind_of
from piste.serve.corpus_results import CorpusRun
from piste.serve.path_redaction import redact_paths
from piste.serve.result_views import comparison_view, view_answer
from piste.serve.schemas import ResultKind, ViewAnswer
from piste.show.html import concept_html, explanation_html, page_shell, words_html
from piste.show.report import evaluation_html
from piste.vocabulary import Vocabulary

KNOWN = (
    "the folder of a corpus run or of an evaluation, a vocabulary (.parquet), a concept report, "
    "a comparison or evaluation results (.json), or an explanation (.json, .csv or .parquet)"
)
_PRIVATE = ("command", "data_file")
"""Settings of an evaluation that tell where files lie."""


@dataclass(frozen=True)
class _Reading:
    """What a file or folder held when it was read."""

    kind: ResultKind
    about: str
    answer: ViewAnswer


class StoredResult:
    """A result whose view is made when the server starts, and again when its files have changed.

    Where they can't be read any more, or not yet, the view stays as it was.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self.name = self._path.name
        self._lock = Lock()
        self._stamp = _stamp(self._path)
        self._held = _read(self._path)

    @property
    def kind(self) -> ResultKind:
        return self._now().kind

    @property
    def about(self) -> str:
        return self._now().about

    @property
    def answer(self) -> ViewAnswer:
        return self._now().answer

    def _now(self) -> _Reading:
        with self._lock:
            stamp = _stamp(self._path)
            if stamp != self._stamp:
                self._stamp = stamp
                with suppress(PisteError):
                    self._held = _read(self._path)
            return self._held


Result: TypeAlias = StoredResult | CorpusRun


def open_results(paths: Sequence[str | Path]) -> list[Result]:
    """What the paths hold, or why one of them can't be browsed."""
    return [_opened(Path(path)) for path in paths]


def _opened(path: Path) -> Result:
    if not path.exists():
        raise PisteError(f"There is no file or folder {str(path)!r}: expected {KNOWN}.")
    with _browsable(path):
        return CorpusRun(path) if kind_of(path) == "corpus" else StoredResult(path)


def _stamp(path: Path) -> object:
    """Something that changes with a file, or with the files of a folder."""
    try:
        found = sorted(path.iterdir()) if path.is_dir() else [path]
        return [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in found]
    except OSError:  # just being replaced
        return None


def _read(path: Path) -> _Reading:
    with _browsable(path):
        kind = kind_of(path)
        if kind not in VIEWERS:
            raise PisteError(f"{str(path)!r} can't be browsed: expected {KNOWN}.")
        shown, about, view = VIEWERS[kind](READERS[kind](path))
        return _Reading(shown, about, view_answer(view))


@contextmanager
def _browsable(path: Path) -> Iterator[None]:
    try:
        yield
    except PisteError:
        raise
    except (OSError, LookupError, TypeError, ValueError, AttributeError) as problem:
        raise PisteError(f"{str(path)!r} can't be browsed: expected {KNOWN}.") from problem


Shown: TypeAlias = tuple[ResultKind, str, page_shell.View]


def _vocabulary(found: Vocabulary) -> Shown:
    found = replace(found, about=redact_paths(found.about))
    about = f"{len(found):,} words of {found.about['documents']:,} documents"
    return "vocabulary", about, words_html.of_vocabulary(found)


def _concepts(report: ConceptReport) -> Shown:
    own = {name: redact_paths(getattr(report, name)) for name in ("settings", "classifier")}
    report = replace(report, notes=redact_paths(report.notes), **own)
    about = f"{len(report.concepts):,} concepts in {report.classifier.get('name')}"
    return "concepts", about, concept_html.view(report)


def _explanation(e: Explanation) -> Shown:
    e = _without_paths(e)
    about = f"one input, by {e.method}, of {e.classifier.get('name') or 'a model'}"
    return "explanation", about, explanation_html.view(e)


def _comparison(found: Comparison) -> Shown:
    explanations = {name: _without_paths(e) for name, e in found.explanations.items()}
    found = replace(found, explanations=explanations, skipped=redact_paths(found.skipped))
    first = next(iter(explanations.values()))
    model = first.classifier.get("name") or "a model"
    many = len(explanations)
    about = f"one input, by {many} method{'s' if many != 1 else ''}, of {model}"
    return "comparison", about, comparison_view(found)


def _evaluation(results: Results) -> Shown:
    settings = {name: one for name, one in results.settings.items() if name not in _PRIVATE}
    rows = tuple(
        replace(row, problem=redact_paths(row.problem), note=redact_paths(row.note))
        for row in results.rows
    )
    results = replace(results, rows=rows, settings=redact_paths(settings))
    about = f"{len(results.methods):,} methods on {len(results.examples):,} examples"
    return "evaluation", about, evaluation_html.view(results)


def _without_paths(e: Explanation) -> Explanation:
    return replace(e, settings=redact_paths(e.settings), classifier=redact_paths(e.classifier))


VIEWERS: Mapping[str, Callable[[Any], Shown]] = {
    "vocabulary": _vocabulary,
    "concepts": _concepts,
    "explanation": _explanation,
    "comparison": _comparison,
    "results": _evaluation,
    "run": _evaluation,
}
"""What is shown of a result, by the kind that :func:`piste.readers.kind_of` names."""
