"""Who was right? Units are really removed, and every explanation has to predict the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from piste.classifiers import load
from piste.data.storage import number, numbers
from piste.engine import CacheOption, Engine, Progress, ProgressOption, opened
from piste.errors import PisteError, shorten
from piste.evaluation.judging import bind
from piste.explanation import Explanation, listed_explanations
from piste.target import probabilities


@dataclass(frozen=True)
class Check:
    """The model's real answer without some units, beside what explanations expected of it.

    >>> import piste
    >>> clf = piste.load("piste:reviews")
    >>> e = piste.explain(clf, "A slow start, but a wonderful ending.")
    >>> [one] = piste.check(clf, [e], [[6]])  # without "wonderful"
    >>> one.label, abs(one.answer - one.expected["slalom"]) < 1
    ('negative', True)
    """

    removed: tuple[int, ...]
    answer: float
    """The explained number, as the model really gave it."""
    label: str
    """What the model answers now."""
    probability: float | None
    expected: Mapping[str, float]
    """What each method said the number would be."""

    def to_dict(self) -> dict[str, Any]:
        """Plain parts that JSON can hold: None for NaN, "inf" for infinity."""
        return {
            "removed": list(self.removed),
            "answer": numbers(self.answer),
            "label": self.label,
            "probability": numbers(self.probability),
            "expected": {name: numbers(value) for name, value in self.expected.items()},
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Check:
        """The check that :meth:`to_dict` described."""
        chance = data["probability"]
        return Check(
            removed=tuple(int(unit) for unit in data["removed"]),
            answer=number(data["answer"]),
            label=str(data["label"]),
            probability=None if chance is None else float(chance),
            expected=MappingProxyType(
                {str(name): number(value) for name, value in data["expected"].items()}
            ),
        )


def check(
    classifier: Any,
    explanations: Explanation | Sequence[Explanation],
    removed: Sequence[Sequence[int]],
    *,
    progress: ProgressOption = None,
    cache: CacheOption = None,
) -> list[Check]:
    """Ask the classifier about its input without some units, one answer per list of units.

    The explanations must be of the same input, cut into the same units, with the same target;
    where every class is explained, the predicted one is checked.
    """
    loaded = load(classifier)
    given = listed_explanations(explanations)
    if not given:
        raise PisteError("There is nothing to check: give at least one explanation.")
    first = given[0]
    loaded = loaded.explained(first)
    for other in given[1:]:
        if other.input != first.input or other.units != first.units or other.target != first.target:
            raise PisteError(
                f"{other.method} explains another input, target or other units than "
                f"{first.method}: only explanations of the same can be checked together."
            )
    subject = bind(loaded, first)
    masks = [_kept(one, len(first), subject.can_be_empty) for one in removed]
    if not masks:
        return []
    with Progress(progress) as shown, opened(cache) as kept:
        engine = Engine(loaded, shown, kept)
        [logits] = engine.ask([(subject, [np.flatnonzero(mask) for mask in masks])])
    column = int(np.argmax(first.output.logits))
    answers = _column(first.target(logits), column)
    expected = {e.method: _column(np.asarray(e.predict(np.stack(masks))), column) for e in given}
    chances = probabilities(logits, loaded.kind)
    return [
        Check(
            removed=tuple(sorted({int(unit) for unit in removed[row]})),
            answer=float(answers[row]),
            label=_label(first, logits[row]),
            probability=None if chances is None else float(np.max(chances[row])),
            expected=MappingProxyType(
                {name: float(found[row]) for name, found in expected.items()}
            ),
        )
        for row in range(len(masks))
    ]


def _label(e: Explanation, logits: Any) -> str:
    """What the model says; an answer of a language model stays what it is."""
    return e.output.label if e.answer is not None else e.output.labels[int(np.argmax(logits))]


def _kept(removed: Any, n: int, can_be_empty: bool) -> Any:
    mask = np.ones(n, dtype=bool)
    if isinstance(removed, str) or not isinstance(removed, Iterable):
        raise PisteError(
            f"removed: expected lists of units, as [[0], [1, 2]], got {shorten(removed)} in it."
        )
    for unit in removed:
        if not isinstance(unit, (int, np.integer)) or not 0 <= unit < n:
            raise PisteError(
                f"There is no unit {unit!r} to remove: they are numbered 0 to {n - 1}."
            )
        mask[unit] = False
    if not mask.any() and not can_be_empty:
        raise PisteError("This model can't be asked about nothing at all: keep at least one unit.")
    return mask


def _column(numbers: Any, column: int) -> Any:
    """One number per question; of all classes the predicted one's."""
    return cast(Any, numbers)[:, column] if np.ndim(numbers) > 1 else numbers
