"""How faithful explanations are: metrics, and the benchmark that runs them."""

from typing import TYPE_CHECKING

from piste.registry import lazy_names

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "piste.data.examples": ["Example", "read_data"],
            "piste.data.rationales": ["Region"],
            "piste.evaluation.benchmark.evaluation_run": ["evaluate"],
            "piste.evaluation.benchmark.run_store": ["read_results"],
            "piste.evaluation.benchmark.saved_explanations": ["evaluate_saved"],
            "piste.evaluation.bootstrap": ["difference", "differences", "interval", "summary"],
            "piste.evaluation.ground_truth": ["recovery"],
            "piste.evaluation.judging": ["judge"],
            "piste.evaluation.metrics": [
                "METRICS",
                "Answers",
                "Case",
                "Figure",
                "Measured",
                "Metric",
                "ReexplainingMetric",
            ],
            "piste.evaluation.metrics.agreement": [
                "NaiveBayes",
                "Rationale",
                "SingleRemoval",
                "naive_bayes_table",
                "rationale_units",
            ],
            "piste.evaluation.metrics.fidelity": ["Fidelity"],
            "piste.evaluation.metrics.pointing_game": ["Pointing"],
            "piste.evaluation.metrics.removal": ["Alone", "Deletion", "Eraser", "Insertion"],
            "piste.evaluation.results": ["Difference", "Interval", "Results", "Row", "class_f1"],
        },
    )

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
