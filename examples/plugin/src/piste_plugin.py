"""One addition of each kind to Piste: a method, a metric, a classifier and a view.

The entry points in pyproject.toml name them, so that Piste finds them once this package is
installed. None of Piste's own files changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure as Drawing

import piste
from piste.classifiers.loading import Loading
from piste.evaluation.metrics import Answers, Case, Figure, Measured, Metric
from piste.explanation import Explanation
from piste.methods import Solution, Task
from piste.methods.additive import CheckedMethod
from piste.show.figures.canvas import canvas
from piste.subject import Sequence1D

# -- a method: piste.explain(classifier, text, method="plugin_method") ---------------------------


@dataclass(frozen=True)
class UnitAlone(CheckedMethod):
    """The answer to each unit alone, minus the mean of these answers: one question per unit.

    The fields of the dataclass are the method's options. ``CheckedMethod`` brings the option
    ``held_out`` and asks further questions, by which the fidelity of the result is measured.
    """

    scale: float = 1.0

    name: ClassVar[str] = "plugin_method"
    about: ClassVar[str] = "the answer to each unit alone"

    def questions(self, task: Task) -> list[Sequence1D]:
        return [[unit] for unit in range(len(task.subject))]

    def solve(self, task: Task) -> Solution:
        alone = task.target(task.logits[task.held_out or 0 :])
        scores = self.scale * (alone - alone.mean(axis=0))
        return self.solution(task, self.around_whole_input(task, scores))


# -- a metric: piste evaluate --metrics plugin_metric --------------------------------------------


@dataclass(frozen=True)
class TopLoss(Metric):
    """How much the explained number falls when the unit with the highest score is removed."""

    name: ClassVar[str] = "plugin_metric"
    about: ClassVar[str] = "what the answer loses without the top unit"
    figures = (
        Figure(
            "top_loss",
            "higher",
            title="top loss",
            skill="finding the one unit that matters most",
            about="what the answer loses without the top unit",
        ),
    )

    def plan(self, case: Case) -> list[Sequence1D]:
        whole = case.subject.whole
        return [whole, np.delete(whole, case.order[0])] if case.n > 1 else []

    def measure(self, case: Case, answers: Answers) -> Measured:
        if case.n == 1:  # nothing would be left to ask about
            return Measured({"top_loss": math.nan})
        return Measured({"top_loss": float(answers.numbers[0] - answers.numbers[1])})


# -- a classifier: piste.load(PluginSource({"good": 2.0, "bad": -2.0})) --------------------------


@dataclass(frozen=True)
class PluginSource:
    """Something that Piste does not know: a table of words and their weights."""

    weights: dict[str, float]

    def logits(self, texts: Sequence[str]) -> list[float]:
        """The sum of the weights of the words of each text."""
        split = (text.lower().replace(".", " ").split() for text in texts)
        return [sum(self.weights.get(word, 0.0) for word in words) for words in split]


class KeywordLoader:
    """Makes a classifier of a :class:`PluginSource`.

    A function of texts is enough here. A source that needs its own units or batches returns a
    subclass of ``piste.Classifier`` instead.
    """

    def accepts(self, source: Any, how: Any) -> bool:
        """Whether this loader knows the source; it must be quick and change nothing."""
        return isinstance(source, PluginSource)

    def load(self, source: PluginSource, how: Loading) -> piste.Classifier:
        """The classifier; ``how`` holds the options of ``piste.load``."""
        return piste.load(source.logits, name=how.name or "keywords", outputs="logits")


# -- a view: explanation.plot("plugin_view", "waterfall.png") ------------------------------------


def waterfall(e: Explanation, *, label: str | int | None = None) -> Drawing:
    """The scores in the order of the text, each bar starting where the last one ended."""
    scores = e.score(None, label)
    ends = np.cumsum(scores)
    figure, axes = canvas((7.5, 1.5 + 0.27 * len(e)))
    places = np.arange(len(e))[::-1]
    colours = np.where(scores >= 0, "#2b6cb0", "#c05621")
    axes.barh(places, scores, left=ends - scores, color=colours.tolist(), height=0.72)
    axes.set_yticks(places, [unit.text for unit in e.units])
    axes.set_xlabel(f"{e.ranking}, summed from the top: {e.target.name}")
    return figure
