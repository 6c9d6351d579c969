"""Fidelity: does the explanation predict what the model says when units are removed?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from piste.evaluation.metrics.base import Answers, Case, Figure, Measured, Metric
from piste.explanation import r_squared
from piste.subject import Sequence1D
from piste.types import Flags, Floats
from piste.validation import check_count

Masks = Flags

_MOST = 10
_FEW = 5


@dataclass(frozen=True)
class Fidelity(Metric):
    """Random removals: the model's number against the number the explanation expects.

    Two kinds of questions are drawn, the same for every method. *Few*: for each k = 1 … 10
    below the number of units n, ``per_size`` removals of k random units. *All sizes*:
    ``all_sizes`` removals whose sizes are spread evenly over 1 … n − 1. No removal of one size
    is drawn twice within a kind; where there are fewer removals of a size than wanted, all are
    asked. At least one unit stays.

    With y the model's number (log-odds) and ŷ = ``explanation.predict`` of the units kept, the
    changes are Δy = y − y(whole) and Δŷ = ŷ − ŷ(whole). The figures are:

    ============  ============================================================================
    ``mse_k``     mean of (Δy − Δŷ)² over the removals of k units, k = 1 … 10
    ``mse_few``   mean of mse_1 … mse_5, those that there are
    ``mse_all``   mean of (Δy − Δŷ)² over the removals of all sizes
    ``r2_few``    1 − Σ(Δy − Δŷ)² / Σ(Δy − mean Δy)² over the removals of 1 … 5 units together
    ``r2_all``    1 − Σ(y − ŷ)² / Σ(y − mean y)² over the removals of all sizes, not shifted
    ============  ============================================================================

    An R² is NaN where the model's number does not change at all (unless that is predicted
    exactly, which gives 1), and everything is NaN for a single unit. The curve
    ``mse_by_removed`` lists mse_1 … mse_10.
    """

    per_size: int = 10
    all_sizes: int = 60

    name: ClassVar[str] = "fidelity"
    about: ClassVar[str] = "how well the explanation predicts the number after random removals"
    figures = (
        Figure(
            "r2_all",
            "higher",
            title="R², all sizes",
            skill="predicting removals of every size",
            about="how well the explanation predicts the model when any number of units is "
            "removed: 1 is perfect, 0 no better than a constant",
            average="median",
            role="main",
        ),
        Figure(
            "mse_few",
            "lower",
            title="error, few removed",
            skill="predicting removals of few units",
            about="mean squared error of the change that the explanation predicts for one to five "
            "removed units",
            average="median",
            role="main",
        ),
        Figure(
            "mse_all",
            "lower",
            title="error, all sizes",
            skill="a small error over removals of every size",
            about="mean squared error of the change that the explanation predicts, over removals "
            "of every size",
            average="median",
        ),
        Figure(
            "r2_few",
            "higher",
            title="R², few removed",
            skill="predicting what few removals change",
            about="how well the explanation predicts what removing one to five units changes: 1 "
            "is perfect, 0 no better than a constant",
            average="median",
        ),
        *(
            Figure(
                f"mse_{k}",
                "lower",
                title=f"error, {k} removed",
                skill=f"predicting removals of {k} unit{'s' if k > 1 else ''}",
                about="mean squared error of the change that the explanation predicts for "
                f"{k} removed unit{'s' if k > 1 else ''}",
                average="median",
                role="detail",
            )
            for k in range(1, _MOST + 1)
        ),
    )

    def __post_init__(self) -> None:
        check_count("per_size", self.per_size)
        check_count("all_sizes", self.all_sizes, least=2)

    def plan(self, case: Case) -> list[Sequence1D]:
        few, spread = self._draw(case)
        kept = np.concatenate([*few, spread])
        return [case.subject.whole, *(np.nonzero(row)[0] for row in kept)]

    def measure(self, case: Case, answers: Answers) -> Measured:
        few, spread = self._draw(case)
        kept = np.concatenate([np.ones((1, case.n), dtype=bool), *few, spread])
        expected = case.predict(kept)
        changes = answers.numbers - answers.numbers[0]
        predicted = expected - expected[0]
        errors = (changes - predicted) ** 2
        edges = np.cumsum([1, *(len(masks) for masks in few)])
        by_size = [_mean(part) for part in np.split(errors, edges)[1 : _MOST + 1]]
        there = [error for error in by_size[:_FEW] if not math.isnan(error)]
        pooled, rest = slice(1, edges[_FEW]), slice(edges[-1], None)
        figures = {f"mse_{k}": error for k, error in enumerate(by_size, start=1)}
        figures |= {
            "mse_few": _mean(np.array(there)),
            "mse_all": _mean(errors[rest]),
            "r2_few": r_squared(predicted[pooled], changes[pooled]),
            "r2_all": r_squared(expected[rest], answers.numbers[rest]),
        }
        return Measured(figures, {"mse_by_removed": by_size})

    def _draw(self, case: Case) -> tuple[list[Masks], Masks]:
        """Masks of kept units: for every k of few, and of all sizes."""
        rng, n = case.rng(), case.n
        few = [
            _masks(rng, n, size, self.per_size if size < n else 0) for size in range(1, _MOST + 1)
        ]
        if n == 1:
            return few, np.empty((0, 1), dtype=bool)
        sizes = np.linspace(1, n - 1, self.all_sizes).round().astype(np.int64)
        counted = zip(*np.unique(sizes, return_counts=True), strict=True)
        spread = [_masks(rng, n, int(size), int(count)) for size, count in counted]
        return few, np.concatenate(spread)


def _masks(rng: np.random.Generator, n: int, size: int, count: int) -> Masks:
    """At most ``count`` different masks with ``size`` units removed; all if there are no more."""
    drawn: dict[tuple[int, ...], None] = {}
    if 0 < math.comb(n, size) <= count:
        drawn = dict.fromkeys(combinations(range(n), size))
    while len(drawn) < min(count, math.comb(n, size)):
        drawn[tuple(sorted(rng.choice(n, size, replace=False).tolist()))] = None
    kept = np.ones((len(drawn), n), dtype=bool)
    for row, removed in zip(kept, drawn, strict=True):
        row[list(removed)] = False
    return kept


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan
