"""One example of a run: explained by every method once, judged by every score asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from piste.classifiers import Classifier
from piste.data.examples import Example
from piste.data.files import make_folder
from piste.engine import AnswerCache
from piste.errors import PisteError, ServiceError
from piste.evaluation.benchmark.explainers import Entry, Explainer
from piste.evaluation.benchmark.metric_set import MetricSet
from piste.evaluation.judging import judge
from piste.evaluation.metrics.base import derive
from piste.evaluation.results import Row
from piste.explanation import Explanation


@dataclass(frozen=True)
class RunContext:
    """What is the same for all examples of a run."""

    classifier: Classifier
    entries: Sequence[Entry]
    metrics: MetricSet
    explainer: Explainer
    seed: int
    cache: AnswerCache | None = None


class ExampleRun:
    """One example, explained and judged."""

    def __init__(self, context: RunContext, example: Example) -> None:
        self.context, self.example = context, example
        self._explanations: dict[str, Explanation | PisteError] = {}

    def rows(self, step: Callable[[], None]) -> list[Row]:
        """A row per entry; ``step`` is called after every explanation."""
        for entry in self.context.entries:
            if entry.variant not in self._explanations:
                try:
                    self._explanations[entry.variant] = self.context.explainer.explain(
                        self.example, entry
                    )
                except ServiceError:
                    raise
                except PisteError as problem:
                    self._explanations[entry.variant] = problem
                step()
        rows = self._judged()
        again: dict[str, dict[str, list[Explanation] | PisteError]] = {}
        for entry in self.context.entries:
            row, first = rows[entry.label], self._explanations[entry.variant]
            if row.problem or isinstance(first, PisteError):
                continue
            if entry.variant not in again:
                again[entry.variant] = self._again(entry, first)
            rows[entry.label] = self._with_reexplained(entry, row, first, again[entry.variant])
        return [rows[entry.label] for entry in self.context.entries]

    def _judged(self) -> dict[str, Row]:
        """Rows by label, of refused entries too; all questions are asked together."""
        rows: dict[str, Row] = {}
        labels, explanations = [], []
        for entry in self.context.entries:
            try:
                explanation = self._explanations[entry.variant]
                if isinstance(explanation, PisteError):
                    raise explanation
                explanation.score(entry.score)
            except PisteError as problem:
                rows[entry.label] = self._refused(problem)
                continue
            labels.append(entry.label)
            # One call for all scores, so that no question is asked twice.
            explanations.append(replace(explanation, ranking=entry.score or explanation.ranking))
        rows |= dict(zip(labels, self._judge(explanations), strict=True))
        return {
            label: replace(row, example=self.example.id, method=label)
            for label, row in rows.items()
        }

    def _judge(self, explanations: list[Explanation]) -> list[Row]:
        """Rows in order; where one can't be judged, the others still are."""
        if not explanations:
            return []
        context, marks = self.context, self.example.rationale
        if not context.metrics.asking:
            return [
                Row("", "", {"seconds": e.seconds, "calls": float(e.calls)}) for e in explanations
            ]
        try:
            return judge(
                context.classifier,
                explanations,
                context.metrics.asking,
                rationales=[None if marks is None else marks.units(e) for e in explanations],
                seed=derive(context.seed, self.example.id, "judging"),
                progress=False,
                cache=context.cache,
            )
        except ServiceError:
            raise
        except PisteError as problem:
            if len(explanations) == 1:
                return [self._refused(problem)]
            return [row for one in explanations for row in self._judge([one])]

    def _again(self, entry: Entry, first: Explanation) -> dict[str, list[Explanation] | PisteError]:
        """Further explanations by metric, or why there are none."""
        found: dict[str, list[Explanation] | PisteError] = {}
        for metric in self.context.metrics.reexplaining:
            try:
                found[metric.name] = metric.reexplain(
                    self.context.explainer.repeatable(self.example, entry, first)
                )
            except ServiceError:
                raise
            except PisteError as problem:
                found[metric.name] = problem
        return found

    def _with_reexplained(
        self,
        entry: Entry,
        row: Row,
        first: Explanation,
        again: Mapping[str, list[Explanation] | PisteError],
    ) -> Row:
        figures, notes = dict(row.figures), [_reading(first)]
        for metric in self.context.metrics.reexplaining:
            others = again[metric.name]
            if isinstance(others, PisteError):
                notes.append(f"{metric.name}: {others}")
                figures |= {figure.name: math.nan for figure in metric.figures}
            else:
                figures |= metric.compare(first, others, entry.score)
        ordered = {name: figures[name] for name in self.context.metrics.figures if name in figures}
        return replace(row, figures=ordered, note="; ".join(filter(None, notes)))

    def _refused(self, problem: PisteError) -> Row:
        return Row(self.example.id, "", {}, problem=str(problem))

    def save(self, folder: Path) -> None:
        """Write all explanations: a folder per method, a file per example."""
        for variant, explanation in self._explanations.items():
            if isinstance(explanation, PisteError):
                continue
            place = make_folder(folder / _file_name(variant))
            explanation.to_json(place / f"{_file_name(self.example.id)}.json")


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.=,-]+", "_", text).strip("_") or "_"


def _reading(explanation: Explanation) -> str:
    """That the text was not read as it stands, or that the method had too few questions, if so."""
    if explanation.settings.get("underdetermined"):
        return f"too few questions for {explanation.method}: its scores are not determined"
    notes = explanation.settings.get("input", {})
    lost = notes.get("truncated_tokens")
    if lost:
        return f"text cut: {lost} of {notes['tokens']} tokens were not read"
    return "text read in windows" if notes.get("long") == "windows" else ""
