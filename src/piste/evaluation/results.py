"""What an evaluation found: one row per example, method and figure, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from piste.evaluation.metrics.base import Figure


@dataclass(frozen=True)
class Row:
    """One method on one example."""

    example: str
    """Identifies the example: its number in the data, or a file name."""
    method: str
    """The method's name, with its score behind a colon if it isn't its own ranking."""
    figures: Mapping[str, float]
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
    problem: str = ""
    """Why there are no figures, if the method refused or failed."""


@dataclass(frozen=True)
class Interval:
    """A mean over examples with its bootstrap interval."""

    mean: float
    low: float
    high: float
    examples: int


@dataclass(frozen=True)
class Difference:
    """Method minus other method on the examples both have, paired."""

    figure: str
    method: str
    other: str
    interval: Interval

    @property
    def clear(self) -> bool:
        """Whether the interval leaves zero out: only then the two are called different."""
        return self.interval.low > 0 or self.interval.high < 0


@dataclass(frozen=True)
class Results:
    """Everything an evaluation found, ready for tables, plots and pages."""

    rows: tuple[Row, ...]
    figures: Mapping[str, Figure]
    methods: tuple[str, ...]
    """In the order they were asked for."""
    settings: Mapping[str, Any]
    """Model, data, budget, seed, versions, command."""

    def values(self, method: str, figure: str) -> dict[str, float]:
        """A figure of a method by example; those without a number are left out."""
        return {
            row.example: row.figures[figure]
            for row in self.rows
            if row.method == method
            and row.figures.get(figure) is not None
            and row.figures[figure] == row.figures[figure]  # not NaN
        }
