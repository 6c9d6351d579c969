"""The metrics of a run: those that ask, those that explain again, and what their figures mean."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from piste.classifiers import Classifier
from piste.data.examples import Example
from piste.errors import PisteError, shorten
from piste.evaluation.metrics import (
    METRICS,
    BaseMetric,
    Figure,
    Metric,
    MetricOption,
    ReexplainingMetric,
    figures_of,
    make,
)


@dataclass(frozen=True)
class MetricSet:
    """All metrics of a run."""

    metrics: tuple[BaseMetric, ...]

    @property
    def asking(self) -> list[Metric]:
        return [metric for metric in self.metrics if isinstance(metric, Metric)]

    @property
    def reexplaining(self) -> list[ReexplainingMetric]:
        return [metric for metric in self.metrics if isinstance(metric, ReexplainingMetric)]

    @property
    def figures(self) -> dict[str, Figure]:
        """Everything that is measured, costs last."""
        return figures_of(self.metrics)

    def describe(self) -> dict[str, dict[str, Any]]:
        """Names and options, to tell whether two runs measure the same."""
        return {metric.name: _options(metric) for metric in self.metrics}


def make_metric_set(
    metrics: MetricOption | Iterable[MetricOption],
    classifier: Classifier,
    labelled: Callable[[], Sequence[Example]],
) -> MetricSet:
    """Metrics by name or as they are; those that need labels are fitted to ``labelled`` texts."""
    made = make(metrics, lambda kind: _fitted(kind, classifier, labelled()))
    if not made:
        raise PisteError(f"No metric was given: expected at least one of {', '.join(METRICS)}.")
    return MetricSet(made)


def _fitted(
    kind: type[BaseMetric], classifier: Classifier, examples: Sequence[Example]
) -> BaseMetric:
    known = [example for example in examples if example.label is not None]
    if not known:
        raise PisteError(
            f"The metric {kind.name!r} needs labels, but the data has no labels: name the column "
            "that has them, or leave the metric out."
        )
    texts = [f"{example.text} {example.pair or ''}" for example in known]
    labels = [_class(example.label, classifier.labels) for example in known]
    return kind.fitted(texts, labels, classes=max(len(classifier.labels), 2))


def _class(label: int | str | None, names: Sequence[str]) -> int:
    """The number of a class that may be given by name."""
    if isinstance(label, int):
        return label
    lowered = [name.lower() for name in names]
    if str(label).lower() not in lowered:
        raise PisteError(
            f"The label {label!r} in the data is no class of the model: expected one of "
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
