"""The metrics of a run: those that ask, those that explain again, and what their figures mean."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeAlias

from piste.classifiers import Classifier
from piste.data.examples import Example
from piste.errors import PisteError, shorten
from piste.evaluation.judging import figures_of
from piste.evaluation.metrics import (
    METRICS,
    Figure,
    Metric,
    NaiveBayes,
    is_metric,
    make,
    naive_bayes_table,
)
from piste.evaluation.metrics.robustness import RETELLINGS, Retelling

MetricOption: TypeAlias = str | Metric | Retelling


@dataclass(frozen=True)
class Panel:
    """All metrics of a run."""

    asking: tuple[Metric, ...]
    retelling: tuple[Retelling, ...]

    @property
    def figures(self) -> dict[str, Figure]:
        """Everything that is measured, costs last."""
        again = {figure.name: figure for metric in self.retelling for figure in metric.figures}
        asked = figures_of(self.asking)
        costs = {name: asked.pop(name) for name in ("seconds", "calls")}
        return {**asked, **again, **costs}

    def describe(self) -> dict[str, dict[str, Any]]:
        """Names and options, to tell whether two runs measure the same."""
        asking = {metric.name: _options(metric) for metric in self.asking}
        return asking | {metric.name: _options(metric) for metric in self.retelling}


def make_panel(
    metrics: MetricOption | Iterable[MetricOption],
    classifier: Classifier,
    labelled: Callable[[], Sequence[Example]],
) -> Panel:
    """Metrics by name or as they are; ``naive_bayes`` counts the words of ``labelled`` texts."""
    listed = [metrics] if isinstance(metrics, (str, Metric, Retelling)) else list(metrics)
    if not listed:
        raise PisteError(f"No metric came: name at least one of {', '.join(_known())}.")
    asking: list[str | Metric] = []
    retelling: list[Retelling] = []
    for one in listed:
        if isinstance(one, Retelling):
            retelling.append(one)
        elif isinstance(one, str) and one in RETELLINGS:
            retelling.append(RETELLINGS[one]())
        elif one == NaiveBayes.name:
            asking.append(_naive_bayes(classifier, labelled()))
        elif isinstance(one, Metric) or is_metric(one):
            asking.append(one)
        else:
            raise PisteError(f"The metric {shorten(one)} is unknown: choose {', '.join(_known())}.")
    names = [metric.name for metric in retelling]
    for name in names:
        if names.count(name) > 1:
            raise PisteError(f"The metric {name!r} came twice: name every metric once.")
    return Panel(make(asking), tuple(retelling))


def _known() -> tuple[str, ...]:
    return (*METRICS, *RETELLINGS)


def _naive_bayes(classifier: Classifier, examples: Sequence[Example]) -> NaiveBayes:
    known = [example for example in examples if example.label is not None]
    if not known:
        raise PisteError(
            "The metric 'naive_bayes' counts words by label, but the data has no labels: name the "
            "column that has them, or leave the metric out."
        )
    texts = [f"{example.text} {example.pair or ''}" for example in known]
    labels = [_class(example.label, classifier.labels) for example in known]
    return NaiveBayes(naive_bayes_table(texts, labels, classes=max(len(classifier.labels), 2)))


def _class(label: int | str | None, names: Sequence[str]) -> int:
    """The number of a class that may be given by name."""
    if isinstance(label, int):
        return label
    lowered = [name.lower() for name in names]
    if str(label).lower() not in lowered:
        raise PisteError(
            f"The label {label!r} in the data is no class of the model: it has "
            f"{shorten(', '.join(names), 200)}."
        )
    return lowered.index(str(label).lower())


def _options(metric: object) -> dict[str, Any]:
    if not is_dataclass(metric):
        return {}
    return {field.name: _short(getattr(metric, field.name)) for field in fields(metric)}


def _short(value: Any) -> Any:
    """An option as it can be compared in a later run: a large table by its digest."""
    if isinstance(value, Mapping):
        return hashlib.sha256(repr(sorted(value.items())).encode()).hexdigest()[:16]
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)
