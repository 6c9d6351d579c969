"""Does the strongest unit lie on what people marked? The pointing game."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.evaluation.metrics.base import Answers, Case, Figure, Measured, Metric


@dataclass(frozen=True)
class Pointing(Metric):
    """1 if the unit with the highest score is marked (Zhang et al., 2016); ties in expectation.

    Also the share of all positive score that lies on marked units. NaN without marks, and where
    every unit is marked or none is; the share also where no score is above zero. Objects tend to
    stand in the middle of an image: compare with the control ``centre``, not with chance.
    """

    name: ClassVar[str] = "pointing"
    about: ClassVar[str] = "whether the strongest unit is one that people marked"
    needs = "marks"
    figures = (
        Figure(
            "pointing",
            "higher",
            title="pointing game",
            skill="pointing at what people marked",
            about="share of inputs whose strongest unit is one that people marked",
        ),
        Figure(
            "mass_inside",
            "higher",
            title="score on people's marks",
            skill="laying the score on what people marked",
            about="share of all positive score that lies on units people marked",
        ),
    )

    def measure(self, case: Case, answers: Answers) -> Measured:
        marked = case.rationale
        if marked is None or not marked.any() or marked.all():
            return Measured({"pointing": math.nan, "mass_inside": math.nan})
        scores = case.scores
        top = scores == scores.max()
        positive = np.maximum(scores, 0.0)
        total = float(positive.sum())
        inside = float(positive[marked].sum()) / total if total > 0 else math.nan
        return Measured({"pointing": float(marked[top].mean()), "mass_inside": inside})
