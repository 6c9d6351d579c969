"""What knows nothing of the model must come out at the bottom of every metric of faithfulness."""

from __future__ import annotations

from typing import Any

import numpy as np

import piste
from piste.evaluation import METRICS, judge
from piste.evaluation.metrics import model_metrics

REVIEWS = [
    "The start is slow and the jokes are awful, but the ending is wonderful and moving.",
    "I expected a dull sequel. Instead it is a clever, warm and beautifully acted little film.",
    "What a waste of talent: the plot is ridiculous, the acting is wooden and I was bored.",
    "The music is great, the cast is superb, and yet the story never comes to life at all.",
    "Nothing works here, not the script, not the pictures; only the child is a joy to watch.",
]
METHODS = ("slalom", "lime", "kernel_shap", "integrated_gradients", "attnlrp", "random")


def test_random_scores_are_at_the_bottom_of_every_metric(reviews: Any) -> None:
    explanations = [e for m in METHODS for e in piste.explain(reviews, REVIEWS, method=m)]
    rows = judge(reviews, explanations, model_metrics())
    for metric in model_metrics():
        for figure in METRICS[metric].figures:
            way = 1 if figure.better == "higher" else -1
            average = np.mean if figure.average == "mean" else np.median
            found = {
                method: way * average([r.figures[figure.name] for r in rows if r.method == method])
                for method in METHODS
            }
            assert min(found, key=lambda method: found[method]) == "random", (figure.name, found)
