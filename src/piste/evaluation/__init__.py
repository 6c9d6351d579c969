"""How faithful explanations are: metrics, and the benchmark that runs them."""

from piste.data.examples import Example, read_data
from piste.data.rationales import Region
from piste.evaluation.benchmark.evaluation_run import evaluate
from piste.evaluation.benchmark.run_store import read_results
from piste.evaluation.benchmark.saved_explanations import evaluate_saved
from piste.evaluation.bootstrap import difference, differences, interval, summary
from piste.evaluation.ground_truth import recovery
from piste.evaluation.judging import judge
from piste.evaluation.metrics import (
    METRICS,
    Answers,
    Case,
    Figure,
    Measured,
    Metric,
    ReexplainingMetric,
)
from piste.evaluation.metrics.agreement import (
    NaiveBayes,
    Rationale,
    SingleRemoval,
    naive_bayes_table,
    rationale_units,
)
from piste.evaluation.metrics.fidelity import Fidelity
from piste.evaluation.metrics.pointing_game import Pointing
from piste.evaluation.metrics.removal import Alone, Deletion, Eraser, Insertion
from piste.evaluation.results import Difference, Interval, Results, Row, class_f1

__all__ = [
    "METRICS",
    "Alone",
    "Answers",
    "Case",
    "Deletion",
    "Difference",
    "Eraser",
    "Example",
    "Fidelity",
    "Figure",
    "Insertion",
    "Interval",
    "Measured",
    "Metric",
    "NaiveBayes",
    "Pointing",
    "Rationale",
    "ReexplainingMetric",
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
