"""The scores of an explanation side by side, one column per score and class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from piste.explanation import Explanation
from piste.show import score_terms, wording
from piste.types import Floats

MOST_CLASSES = 10
"""Classes offered when all are explained: the most probable ones."""


@dataclass(frozen=True)
class Column:
    """One score of every unit, of one class where each class has its own."""

    name: str
    label: str | None
    scores: Floats
    errors: Floats
    places: int
    meaning: str
    sides: tuple[str, str]
    """What positive and negative scores mean."""

    @property
    def title(self) -> str:
        return self.name if self.label is None else f"{self.name}, {self.label}"

    def shown(self, unit: int) -> str:
        """A unit's score with its error, as a reader wants it."""
        return wording.with_error(float(self.scores[unit]), float(self.errors[unit]), self.places)


def columns(e: Explanation, label: str | None = None) -> list[Column]:
    """Every score to show, the ranking one first; class-wise for ``label`` or the likely classes.

    A score that doesn't depend on the class (importance) is one column.
    """
    logits = np.asarray(e.output.logits)
    likely = [int(index) for index in np.argsort(-logits, kind="stable")[:MOST_CLASSES]]
    classes = likely if label is None else [e.output.labels.index(label)]
    result = []
    for name in sorted(score_terms.shown(e), key=lambda name: name != e.ranking):
        wanted: list[int | None] = list(classes) if e.scores[name].ndim > 1 else [None]
        result += [_column(e, name, index) for index in wanted]
    return result


def _column(e: Explanation, name: str, index: int | None) -> Column:
    scores = e.score(name, index)
    return Column(
        name=name,
        label=None if index is None else e.output.labels[index],
        scores=scores,
        errors=e.error(name, index),
        places=wording.digits(scores),
        meaning=score_terms.how_to_read(e, name, index),
        sides=score_terms.sides(e, name, index),
    )
