"""Metrics, one file per family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
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
from piste.evaluation.metrics.pointing_game import Pointing
from piste.evaluation.metrics.removal import GRID, Alone, Deletion, Eraser, Insertion
from piste.evaluation.option_syntax import named_options

METRICS: Mapping[str, type[Any]] = {
    metric.name: metric
    for metric in (
        Deletion,
        Insertion,
        Eraser,
        Alone,
        Fidelity,
        SingleRemoval,
        Rationale,
        Pointing,
        NaiveBayes,
    )
}

FAITHFULNESS = ("deletion", "insertion", "eraser", "fidelity", "single")
"""The metrics that need nothing but the model."""

__all__ = [
    "FAITHFULNESS",
    "GRID",
    "METRICS",
    "Alone",
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
    "Pointing",
    "Rationale",
    "SingleRemoval",
    "is_metric",
    "make",
    "naive_bayes_table",
    "rationale_units",
]


def make(names: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Metrics by name with their usual options; a metric with options of yours stays as it is.

    >>> [metric.name for metric in make(["deletion[steps=10]", Eraser(bins="eggen")])]
    ['deletion', 'eraser']
    """
    listed = [names] if isinstance(names, (str, Metric)) else list(names)
    metrics: list[Metric] = []
    owners: dict[str, str] = {}
    for one in listed:
        metric = one if isinstance(one, Metric) else _named(one)
        for figure in metric.figures:
            if figure.name in owners:
                raise PisteError(
                    f"Two metrics give the figure {figure.name!r}, {owners[figure.name]} and "
                    f"{metric.name}: ask for one of them at a time."
                )
            owners[figure.name] = metric.name
        metrics.append(metric)
    return tuple(metrics)


def is_metric(name: object) -> bool:
    """Whether a name, with or without options in brackets, is one of :data:`METRICS`."""
    return isinstance(name, str) and name.split("[")[0] in METRICS


def _named(text: str) -> Metric:
    found = named_options(text) if is_metric(text) else None
    if found is None:
        raise PisteError(f"The metric {shorten(text)} is unknown: choose {', '.join(METRICS)}.")
    name, options = found
    kind = METRICS[name]
    known = [field.name for field in fields(kind)]
    for option in options:
        if option not in known:
            raise PisteError(
                f"The metric {name!r} has no option {option!r}: it has "
                f"{', '.join(known) or 'none'}."
            )
    metric: Metric = kind(**options)
    return metric
