"""How faithful explanations are: metrics, and the benchmark that runs them."""

from piste.evaluation.benchmark.running import evaluate
from piste.evaluation.benchmark.saved import evaluate_saved
from piste.evaluation.benchmark.store import read_results
from piste.evaluation.bootstrap import difference, differences, interval, summary
from piste.evaluation.classes import class_f1
from piste.evaluation.examples.data import Example, read_data
from piste.evaluation.examples.regions import Region
from piste.evaluation.judging import judge
from piste.evaluation.metrics import (
    METRICS,
    Alone,
    Deletion,
    Eraser,
    Fidelity,
    Figure,
    Insertion,
    Metric,
    NaiveBayes,
    Pointing,
    Rationale,
    SingleRemoval,
    naive_bayes_table,
    rationale_units,
)
from piste.evaluation.recovery import recovery
from piste.evaluation.results import Difference, Interval, Results, Row

__all__ = [
    "METRICS",
    "Alone",
    "Deletion",
    "Difference",
    "Eraser",
    "Example",
    "Fidelity",
    "Figure",
    "Insertion",
    "Interval",
    "Metric",
    "NaiveBayes",
    "Pointing",
    "Rationale",
    "Region",
    "Results",
    "Row",
    "SingleRemoval",
    "class_f1",
    "difference",
    "differences",
    "evaluate",
    "evaluate_saved",
    "interval",
    "judge",
    "naive_bayes_table",
    "rationale_units",
    "read_data",
    "read_results",
    "recovery",
    "summary",
]
