"""Functions whose truth is known, and how near to it the methods come."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from piste.classifiers import Classifier
from piste.classifiers.base import EngineSubject
from piste.errors import PisteError
from piste.evaluation.metrics.ranking import agreement
from piste.explanation import Explanation
from piste.pipeline import explain
from piste.slalom.shapley import shapley
from piste.slalom.surrogate import Slalom
from piste.subject import (
    Binding,
    Parts,
    Question,
    Sequence1D,
    Subject,
    Unit,
)
from piste.types import Floats
from piste.validation import check_count

_MOST_UNITS = 14  # every subset is asked


class KnownFunction(Classifier):
    """A function of the units w0, w1, … that is written down, so every truth about it is known."""

    kind = "regression"
    labels = ("score",)
    budget = 4096
    paced = False
    reads_nothing: bool
    """Whether it has a number for the input without any unit."""

    def __init__(self, name: str, units: int) -> None:
        self.name, self.units = name, units
        self.text = " ".join(f"w{unit}" for unit in range(units))

    @abstractmethod
    def numbers(self, counts: Floats) -> Floats:
        """The function of how often every unit is there (questions × units)."""

    @abstractmethod
    def shapley(self, empty: float) -> Floats:
        """Its exact Shapley values; ``empty`` is its number for nothing, if it has none itself."""

    def bind(self, input: Any, how: Binding) -> Subject:
        if how.removal != "delete" or input != self.text:
            raise PisteError(f"{self.name!r} only knows its own words, to keep or to delete.")
        return _KnownSubject(self)

    def answer(self, questions: Sequence[Question]) -> Floats:
        counts = np.array([np.bincount(q.payload, minlength=self.units) for q in questions])
        return self.numbers(counts.astype(np.float64))[:, None]


class _KnownSubject(EngineSubject):
    def __init__(self, function: KnownFunction) -> None:
        self.classifier = function
        self.input = function.text
        starts = np.cumsum([0, *(len(word) + 1 for word in function.text.split())])
        self.units = tuple(
            Unit(word, int(start), int(start) + len(word))
            for word, start in zip(function.text.split(), starts, strict=False)
        )
        self.types = np.arange(len(self.units))
        self.can_be_empty = function.reads_nothing
        self.limit = None
        self.notes = {"long": "fits"}

    def encode(self, sequence: Sequence1D) -> Parts:
        units = self.check(sequence)
        return [(Question(units.tobytes(), 1, units), 1.0)]


class Additive(KnownFunction):
    """f(S) = b + Σ_{i∈S} w_i: its Shapley values are its weights."""

    reads_nothing = True

    def __init__(self, units: int = 10, seed: int = 0) -> None:
        super().__init__("additive", units)
        rng = np.random.default_rng(seed)
        self.weights, self.base = rng.normal(size=units), float(rng.normal())

    def numbers(self, counts: Floats) -> Floats:
        return self.base + counts @ self.weights

    def shapley(self, empty: float) -> Floats:
        return self.weights


class SoftMean(KnownFunction):
    """f(S) = Σ_{i∈S} e^{s_i} v_i / Σ_{i∈S} e^{s_i}, a SLALOM; it has no number for nothing.

    Methods take one or another number for that, which moves all Shapley values alike: the truth
    takes the same as the method it is held against.
    """

    reads_nothing = False

    def __init__(self, units: int = 10, seed: int = 0) -> None:
        super().__init__("slalom", units)
        rng = np.random.default_rng(seed)
        self.values, importances = rng.normal(size=units), rng.normal(size=units)
        self.importances = importances - importances.mean()

    def numbers(self, counts: Floats) -> Floats:
        return Slalom(self.values, self.importances).predict(counts)

    def shapley(self, empty: float) -> Floats:
        return shapley(self.values, self.importances, empty=empty)


@dataclass(frozen=True)
class Recovery:
    """One method on one known function: how far it is from the truth.

    ====================  ====================================================================
    ``score_error``       ‖φ̂ − φ‖ / ‖φ‖, scores against exact Shapley values
    ``score_agreement``   their Pearson correlation, for scores of another scale
    ``prediction_error``  Σ(f − f̂)² / Σ(f − mean f)² over all subsets but the empty one
    ``value_error``       root mean squared error of the values (SLALOM on a SLALOM, else NaN)
    ``importance_error``  the same of the importances
    ====================  ====================================================================
    """

    function: str
    method: str
    score: str
    """Which score was held against the Shapley values: the one of that name, or the ranking."""
    figures: Mapping[str, float]
    calls: int


def recovery(
    method: str, *, units: int = 10, seed: int = 0, **options: Any
) -> tuple[Recovery, Recovery]:
    """Let a method explain an additive function and an exact SLALOM, and compare with the truth.

    ``options`` are the method's own, ``samples`` among them.

    >>> additive, soft_mean = recovery("kernel_shap", samples=2000)
    >>> round(additive.figures["score_error"], 6), soft_mean.figures["prediction_error"] > 0.1
    (0.0, True)
    """
    check_count("units", units, least=2)
    if units > _MOST_UNITS:
        raise PisteError(
            f"units: expected at most {_MOST_UNITS}, because every subset is asked, got {units}."
        )
    additive, soft_mean = Additive(units, seed), SoftMean(units, seed)
    return (
        _measure(additive, method, seed, options),
        _measure(soft_mean, method, seed, options),
    )


def _measure(
    function: KnownFunction, method: str, seed: int, options: Mapping[str, Any]
) -> Recovery:
    e: Explanation = explain(
        function, function.text, method=method, seed=seed, progress=False, **options
    )
    score = "shapley" if "shapley" in e.scores else e.ranking
    found, truth = e.score(score), function.shapley(float(e.predict([])))
    kept = np.array(list(product((False, True), repeat=function.units))[1:])
    numbers = function.numbers(kept.astype(np.float64))
    missed = numbers - np.asarray(e.predict(kept))
    figures = {
        "score_error": float(np.linalg.norm(found - truth) / np.linalg.norm(truth)),
        "score_agreement": agreement(found, truth),
        "prediction_error": float((missed**2).sum() / ((numbers - numbers.mean()) ** 2).sum()),
        "value_error": math.nan,
        "importance_error": math.nan,
    }
    if isinstance(function, SoftMean) and "value" in e.scores:
        figures["value_error"] = _rmse(e.score("value"), function.values)
        figures["importance_error"] = _rmse(e.score("importance"), function.importances)
    return Recovery(function.name, method, score, figures, e.calls)


def _rmse(first: Floats, second: Floats) -> float:
    return float(np.sqrt(np.mean((first - second) ** 2)))
