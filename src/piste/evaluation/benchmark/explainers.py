"""Where the explanations of a run come from: the methods themselves, or files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from piste.classifiers import Classifier
from piste.data.examples import Example
from piste.engine import AnswerCache
from piste.errors import PisteError
from piste.evaluation.benchmark.entries import Entry
from piste.evaluation.metrics.base import RepeatableExplanation
from piste.evaluation.seeds import derive
from piste.explanation import Explanation
from piste.pipeline import explain
from piste.subject import Input


class Explainer(Protocol):
    """Gives an explanation of an example by an entry's method, or refuses."""

    def explain(self, example: Example, entry: Entry) -> Explanation:
        """The explanation."""

    def repeatable(
        self, example: Example, entry: Entry, explanation: Explanation
    ) -> RepeatableExplanation:
        """The explanation with the means to make more like it."""


class MethodExplainer:
    """Explains by methods. An example's seed depends on the run's seed and on its id only."""

    def __init__(
        self,
        classifier: Classifier,
        seed: int,
        how: Mapping[str, Any],
        cache: AnswerCache | None = None,
    ) -> None:
        self.classifier, self.seed, self.how, self.cache = classifier, seed, how, cache

    def explain(self, example: Example, entry: Entry) -> Explanation:
        return self._explain(self.classifier, example.input, entry, self._seed(example), None)

    def repeatable(
        self, example: Example, entry: Entry, explanation: Explanation
    ) -> RepeatableExplanation:
        first = self._seed(example)
        # Other texts and models may predict another class: the same one is explained.
        target = explanation.target.indices[0]

        def again(
            *,
            input: Input | None = None,
            seed: int | None = None,
            classifier: Classifier | None = None,
        ) -> Explanation:
            return self._explain(
                classifier or self.classifier,
                example.input if input is None else input,
                entry,
                first if seed is None else seed,
                target,
            )

        return RepeatableExplanation(explanation, self.classifier, first, again)

    def _seed(self, example: Example) -> int:
        return derive(self.seed, example.id)

    def _explain(
        self,
        classifier: Classifier,
        input: Input,
        entry: Entry,
        seed: int,
        target: int | None,
    ) -> Explanation:
        how: dict[str, Any] = {**self.how, **entry.options}
        return explain(
            classifier,
            input,
            method=entry.method,
            target=target,
            seed=seed,
            progress=False,
            cache=self.cache,
            **how,
        )


class SavedExplainer:
    """Hands out explanations that were made before, by label and example."""

    def __init__(self, saved: Mapping[tuple[str, str], Explanation]) -> None:
        self.saved = saved

    def explain(self, example: Example, entry: Entry) -> Explanation:
        found = self.saved.get((entry.variant, example.id))
        if found is None:
            raise PisteError("no explanation of this example was saved")
        return found

    def repeatable(
        self, example: Example, entry: Entry, explanation: Explanation
    ) -> RepeatableExplanation:
        raise PisteError("saved explanations can't be made again")
