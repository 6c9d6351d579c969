"""Results of other commands, opened to be browsed: what a path holds, and what is shown of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from piste.comparison import Comparison
from piste.concepts import ConceptReport
from piste.errors import PisteError
from piste.evaluation.results import Results
from piste.explanation import Explanation
from piste.readers import READERS, kind_of
from piste.serve.corpus_results import CorpusRun
from piste.serve.path_redaction import redact_paths
from piste.serve.result_schemas import ResultKind
from piste.serve.result_views import comparison_view, view_answer
from piste.serve.schemas import ViewAnswer
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
class StoredResult:
    """A result whose view is made once, when the server starts."""

    name: str
    kind: ResultKind
    about: str
    answer: ViewAnswer


Result: TypeAlias = StoredResult | CorpusRun


def open_results(paths: Sequence[str | Path]) -> list[Result]:
    """What the paths hold, or why one of them can't be browsed."""
    return [_opened(Path(path)) for path in paths]


def _opened(path: Path) -> Result:
    if not path.exists():
        raise PisteError(f"There is no file or folder {str(path)!r}: expected {KNOWN}.")
    try:
        kind = kind_of(path)
        if kind == "corpus":
            return CorpusRun(path)
        if kind not in VIEWERS:
            raise PisteError(f"{str(path)!r} can't be browsed: expected {KNOWN}.")
        shown, about, view = VIEWERS[kind](READERS[kind](path))
    except PisteError:
        raise
    except (OSError, LookupError, TypeError, ValueError, AttributeError) as problem:
        raise PisteError(f"{str(path)!r} can't be browsed: expected {KNOWN}.") from problem
    return StoredResult(path.resolve().name, shown, about, view_answer(view))


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
