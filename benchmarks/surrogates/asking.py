"""The questions that surrogates are fitted to and judged by, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import piste
from piste.engine import Engine
from piste.methods.base import r_squared
from piste.slalom import sampling
from piste.subject import Sequence1D
from piste.target import resolve

Floats = NDArray[np.float64]
SIZES, FEW = 200, 100
"""How many removals of all sizes, and of 1 to 5 words, surrogates are judged by."""


@dataclass(frozen=True)
class Asked:
    """Counts (questions × types) with answers: to fit to with slopes, and to judge by."""

    counts: Floats
    answers: Floats
    slopes: Floats
    sizes: Floats
    sizes_answers: Floats
    few: Floats
    few_answers: Floats

    def judge(self, predict: Callable[[Floats], Floats]) -> tuple[float, float]:
        """R² over all sizes; mean squared error of the change by few removals."""
        changes = predict(self.few) - predict(self.counts[:1])
        errors = changes - (self.few_answers - self.answers[0])
        return r_squared(predict(self.sizes), self.sizes_answers), float((errors**2).mean())


def ask(classifier: piste.Classifier, text: str) -> Asked:
    """Draw all questions and ask them; the first one is the whole text."""
    subject = classifier.subject(text, long="truncate")
    n, types, rng = len(subject), subject.types, np.random.default_rng(0)
    seen = {sampling.key_of(types)}
    fixed: list[Sequence1D] = [subject.whole, *([[]] if subject.can_be_empty else [])]
    total = min(max(len(np.unique(types)), 100), 300)
    drawn = sampling.draw("subsets", n, total - len(fixed), rng, seen, types)
    sizes = sampling.draw("subsets", n, SIZES, rng, seen, types)
    few = sampling.draw("deletion", n, FEW, rng, seen, types)
    engine = Engine(classifier)
    (plain,) = engine.ask([(subject, [*fixed, *sizes, *few])])
    target = resolve(None, plain[0], classifier.labels, classifier.kind)
    steep, by_unit = engine.ask_slopes(subject, drawn, target)
    slopes = np.full((types.max() + 1, len(fixed) + len(drawn)), np.nan)
    slopes[:, len(fixed) :] = 0.0
    np.add.at(slopes[:, len(fixed) :], types, by_unit.T)
    numbers = np.split(target(plain), [len(fixed), len(fixed) + len(sizes)])
    answers = np.concatenate([numbers[0], target(steep)])
    counts = [_counts(questions, types) for questions in ([*fixed, *drawn], sizes, few)]
    return Asked(counts[0], answers, slopes.T, counts[1], numbers[1], counts[2], numbers[2])


def _counts(questions: Sequence[Sequence1D], types: NDArray[np.int64]) -> Floats:
    rows = [
        np.bincount(types[np.asarray(one, dtype=np.int64)], minlength=types.max() + 1)
        for one in questions
    ]
    return np.array(rows, dtype=np.float64)
