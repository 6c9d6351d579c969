"""Metrics by name, with their options, and what their figures mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeAlias

from piste.errors import PisteError, shorten
from piste.evaluation.metrics import METRICS
from piste.evaluation.metrics.base import RUNTIME, BaseMetric, Figure
from piste.options import named_options

MetricOption: TypeAlias = str | BaseMetric


def model_metrics() -> tuple[str, ...]:
    """Names of the metrics that need nothing but the model."""
    return tuple(name for name, metric in METRICS.items() if metric.needs == "model")


def make(
    metrics: MetricOption | Iterable[MetricOption],
    fit: Callable[[type[BaseMetric]], BaseMetric] | None = None,
) -> tuple[BaseMetric, ...]:
    """Metrics by name, with options in brackets or without; a metric stays as it is.

    ``fit`` makes a metric that needs labels.

    >>> [metric.name for metric in make(["deletion[steps=10]", "stability"])]
    ['deletion', 'stability']
    """
    listed = [metrics] if isinstance(metrics, (str, BaseMetric)) else list(metrics)
    made = tuple(one if isinstance(one, BaseMetric) else _named(one, fit) for one in listed)
    owners: dict[str, str] = {}
    for metric in made:
        for figure in metric.figures:
            if figure.name in owners:
                raise PisteError(
                    f"The metrics {owners[figure.name]!r} and {metric.name!r} both give the figure "
                    f"{figure.name!r}: choose one of them."
                )
            owners[figure.name] = metric.name
    return made


def metric_class(text: str) -> type[BaseMetric]:
    """The class of a metric by its name, with options in brackets or without."""
    return METRICS[_split(text)[0]]


def figures_of(metrics: Iterable[BaseMetric]) -> dict[str, Figure]:
    """What the figures of rows mean: those of the metrics, and the runtime."""
    found = [figure for metric in metrics for figure in metric.figures]
    return {figure.name: figure for figure in (*found, *RUNTIME)}


def read_figure(stored: Mapping[str, Any]) -> Figure:
    """A figure from its stored fields; early files have no titles, so ours are taken."""
    if "title" in stored:
        return Figure(**stored)
    name, better, about = stored["name"], stored["better"], stored["about"]
    title = name.replace("_", " ")
    unknown = Figure(name, better, title, f"{title} ({about})", about)
    known = {figure.name: figure for metric in METRICS.values() for figure in metric.figures}
    known |= {figure.name: figure for figure in RUNTIME}
    return replace(known.get(name, unknown), better=better, average=stored["average"])


def _split(text: str) -> tuple[str, dict[str, Any]]:
    found = named_options(text) if isinstance(text, str) else None
    if found is None or found[0] not in METRICS:
        raise PisteError(f"Unknown metric {shorten(text)}: expected one of {', '.join(METRICS)}.")
    return found


def _named(text: str, fit: Callable[[type[BaseMetric]], BaseMetric] | None) -> BaseMetric:
    name, options = _split(text)
    kind = METRICS[name]
    if not (isinstance(kind, type) and issubclass(kind, BaseMetric)):
        raise PisteError(f"The metric {name!r} must be a subclass of Metric, got {shorten(kind)}.")
    known: list[str] = [one.name for one in fields(kind)] if is_dataclass(kind) else []
    for option in options:
        if option not in known:
            raise PisteError(
                f"The metric {name!r} has no option {option!r}: it has "
                f"{', '.join(known) or 'none'}."
            )
    if fit is not None and kind.needs == "labels" and not options:
        return fit(kind)
    return kind(**options)
