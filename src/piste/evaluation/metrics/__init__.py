"""Metrics, one file per family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from piste.errors import PisteError, shorten
from piste.evaluation.metrics.agreement import (
    NaiveBayes,
    Rationale,
    SingleRemoval,
    naive_bayes_table,
    rationale_units,
)
from piste.evaluation.metrics.base import Answers, Case, Figure, Measured, Metric
from piste.evaluation.metrics.fidelity import Fidelity
from piste.evaluation.metrics.removal import GRID, Deletion, Eraser, Insertion

METRICS: Mapping[str, type[Any]] = {
    metric.name: metric
    for metric in (
        Deletion,
        Insertion,
        Eraser,
        Fidelity,
        SingleRemoval,
        Rationale,
        NaiveBayes,
    )
}

FAITHFULNESS = ("deletion", "insertion", "eraser", "fidelity", "single")
"""The metrics that need nothing but the model."""

__all__ = [
    "FAITHFULNESS",
    "GRID",
    "METRICS",
    "Answers",
    "Case",
    "Deletion",
    "Eraser",
    "Fidelity",
    "Figure",
    "Insertion",
    "Measured",
    "Metric",
    "NaiveBayes",
    "Rationale",
    "SingleRemoval",
    "make",
    "naive_bayes_table",
    "rationale_units",
]


def make(names: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Metrics by name with their usual options; a metric with options of yours stays as it is.

    >>> [metric.name for metric in make(["deletion", Eraser(bins="eggen")])]
    ['deletion', 'eraser']
    """
    listed = [names] if isinstance(names, (str, Metric)) else list(names)
    metrics: list[Metric] = []
    owners: dict[str, str] = {}
    for one in listed:
        if not isinstance(one, Metric) and one not in METRICS:
            raise PisteError(f"The metric {shorten(one)} is unknown: choose {', '.join(METRICS)}.")
        metric: Metric = one if isinstance(one, Metric) else METRICS[one]()
        for figure in metric.figures:
            if figure.name in owners:
                raise PisteError(
                    f"Two metrics give the figure {figure.name!r}, {owners[figure.name]} and "
                    f"{metric.name}: ask for one of them at a time."
                )
            owners[figure.name] = metric.name
        metrics.append(metric)
    return tuple(metrics)
