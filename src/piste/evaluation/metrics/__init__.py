"""Metrics, one file per family. A new one needs its class and a line in :data:`METRICS`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from piste.registry import Registry, lazy_names

if TYPE_CHECKING:
    from piste.evaluation.metrics.base import (
        Answers,
        BaseMetric,
        Case,
        Figure,
        Measured,
        Metric,
        ReexplainingMetric,
    )
    from piste.evaluation.metrics.named_metrics import (
        MetricOption,
        figures_of,
        make,
        metric_class,
        model_metrics,
        read_figure,
    )
else:  # a list of metrics needs none of them
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "piste.evaluation.metrics.base": [
                "Answers",
                "BaseMetric",
                "Case",
                "Figure",
                "Measured",
                "Metric",
                "ReexplainingMetric",
            ],
            "piste.evaluation.metrics.named_metrics": [
                "MetricOption",
                "figures_of",
                "make",
                "metric_class",
                "model_metrics",
                "read_figure",
            ],
        },
    )

METRICS: Registry[type[BaseMetric]] = Registry(
    "metric",
    "piste.metrics",
    {
        "deletion": "piste.evaluation.metrics.removal:Deletion",
        "insertion": "piste.evaluation.metrics.removal:Insertion",
        "eraser": "piste.evaluation.metrics.removal:Eraser",
        "alone": "piste.evaluation.metrics.removal:Alone",
        "fidelity": "piste.evaluation.metrics.fidelity:Fidelity",
        "single": "piste.evaluation.metrics.agreement:SingleRemoval",
        "rationale": "piste.evaluation.metrics.agreement:Rationale",
        "pointing": "piste.evaluation.metrics.pointing_game:Pointing",
        "naive_bayes": "piste.evaluation.metrics.agreement:NaiveBayes",
        "stability": "piste.evaluation.metrics.robustness:Stability",
        "equal_inputs": "piste.evaluation.metrics.robustness:EqualInputs",
        "sanity": "piste.evaluation.metrics.robustness:Sanity",
    },
)

__all__ = [
    "METRICS",
    "Answers",
    "BaseMetric",
    "Case",
    "Figure",
    "Measured",
    "Metric",
    "MetricOption",
    "ReexplainingMetric",
    "figures_of",
    "make",
    "metric_class",
    "model_metrics",
    "read_figure",
]
