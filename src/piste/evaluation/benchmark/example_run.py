"""One example of a run: explained by every method once, judged by every score that is wanted."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from piste.classifiers import Classifier
from piste.data.examples import Example
from piste.data.storage import make_folder
from piste.engine import AnswerCache
from piste.errors import PisteError
from piste.evaluation.benchmark.entries import Entry
from piste.evaluation.benchmark.explainers import Teller
from piste.evaluation.benchmark.metric_set import Panel
from piste.evaluation.judging import judge
from piste.evaluation.results import Row
from piste.evaluation.seeds import derive
from piste.explanation import Explanation


@dataclass(frozen=True)
class Court:
    """What is the same for all examples of a run."""

    classifier: Classifier
    entries: Sequence[Entry]
    panel: Panel
    teller: Teller
    seed: int
    cache: AnswerCache | None = None


class Trial:
    """One example before the court."""

    def __init__(self, court: Court, example: Example) -> None:
        self.court, self.example = court, example
        self._told: dict[str, Explanation | PisteError] = {}

    def rows(self, step: Callable[[], None]) -> list[Row]:
        """A row per entry; ``step`` is called after every explanation."""
        for entry in self.court.entries:
            if entry.telling not in self._told:
                try:
                    self._told[entry.telling] = self.court.teller.tell(self.example, entry)
                except PisteError as problem:
                    self._told[entry.telling] = problem
                step()
        rows = self._judged()
        again: dict[str, dict[str, list[Explanation] | PisteError]] = {}
        for entry in self.court.entries:
            row, first = rows[entry.label], self._told[entry.telling]
            if row.problem or isinstance(first, PisteError):
                continue
            if entry.telling not in again:
                again[entry.telling] = self._again(entry, first)
            rows[entry.label] = self._with_retellings(entry, row, first, again[entry.telling])
        return [rows[entry.label] for entry in self.court.entries]

    def _judged(self) -> dict[str, Row]:
        """Rows by label, of refused entries too; all questions are asked together."""
        rows: dict[str, Row] = {}
        labels, explanations = [], []
        for entry in self.court.entries:
            try:
                explanation = self._told[entry.telling]
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
        court, marks = self.court, self.example.rationale
        if not court.panel.asking:
            return [
                Row("", "", {"seconds": e.seconds, "calls": float(e.calls)}) for e in explanations
            ]
        try:
            return judge(
                court.classifier,
                explanations,
                court.panel.asking,
                rationales=[None if marks is None else marks.units(e) for e in explanations],
                seed=derive(court.seed, self.example.id, "judging"),
                progress=False,
                cache=court.cache,
            )
        except PisteError as problem:
            if len(explanations) == 1:
                return [self._refused(problem)]
            return [row for one in explanations for row in self._judge([one])]

    def _again(self, entry: Entry, first: Explanation) -> dict[str, list[Explanation] | PisteError]:
        """Further explanations by metric, or why there are none."""
        found: dict[str, list[Explanation] | PisteError] = {}
        for metric in self.court.panel.retelling:
            try:
                found[metric.name] = metric.tell(self.court.teller.told(self.example, entry, first))
            except PisteError as problem:
                found[metric.name] = problem
        return found

    def _with_retellings(
        self,
        entry: Entry,
        row: Row,
        first: Explanation,
        again: Mapping[str, list[Explanation] | PisteError],
    ) -> Row:
        figures, notes = dict(row.figures), [_reading(first)]
        for metric in self.court.panel.retelling:
            others = again[metric.name]
            if isinstance(others, PisteError):
                notes.append(f"{metric.name}: {others}")
                figures |= {figure.name: math.nan for figure in metric.figures}
            else:
                figures |= metric.compare(first, others, entry.score)
        ordered = {name: figures[name] for name in self.court.panel.figures if name in figures}
        return replace(row, figures=ordered, note="; ".join(filter(None, notes)))

    def _refused(self, problem: PisteError) -> Row:
        return Row(self.example.id, "", {}, problem=str(problem))

    def save(self, folder: Path) -> None:
        """Write all explanations: a folder per method, a file per example."""
        for telling, explanation in self._told.items():
            if isinstance(explanation, PisteError):
                continue
            place = make_folder(folder / _file_name(telling))
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
