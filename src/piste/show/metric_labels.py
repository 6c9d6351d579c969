"""Figures of metrics for a reader: what they mean in a sentence, how their numbers are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from piste.evaluation.metrics import Figure
from piste.show import wording
from piste.types import Floats

SPAN = 15.0
"""Errors and times that differ by more than this factor are drawn on a log scale."""


_WAYS = {"higher": " Higher is better.", "lower": " Lower is better.", "neither": ""}


def meaning(figure: Figure) -> str:
    """What a figure means and which way is better, in sentences."""
    return f"{figure.about[:1].upper()}{figure.about[1:]}.{_WAYS[figure.better]}"


def sorting(figure: Figure) -> Literal["ascending", "descending"]:
    """The order of a table that has the best methods at the top."""
    return "ascending" if figure.better == "lower" else "descending"


@dataclass(frozen=True)
class Places:
    """How the numbers of a figure are written, so that all of them can be told apart."""

    decimals: int | None
    """None: as many as give two significant digits."""

    def of(self, value: float) -> int:
        """Decimal places of one number."""
        if self.decimals is not None:
            return self.decimals
        size = abs(value) if np.isfinite(value) and value else 1.0
        return int(np.clip(1 - np.floor(np.log10(size)), 0, 9))


def places(name: str, values: Iterable[float]) -> Places:
    """Numbers of one size share their places; those that span several have two digits each."""
    known = np.array([value for value in values if np.isfinite(value)], dtype=np.float64)
    if name == "calls":
        return Places(0)
    return Places(None if spans(name, known) else wording.digits(known))


def spans(name: str, values: Floats) -> bool:
    """Whether the numbers are sizes (errors, times) so different that ratios tell more.

    >>> spans("seconds", np.array([0.01, 2.0])), spans("aopc", np.array([0.01, 0.9]))
    (True, False)
    """
    sized = name.startswith("mse") or name in ("seconds", "calls")
    return bool(sized and values.size and 0 < values.min() < values.max() / SPAN)


def shown(value: float, rule: Places) -> str:
    """A number without a plus sign, thousands apart; a dash where unknown.

    >>> [shown(value, places("aopc", [0.9, 0.2])) for value in (0.9, -0.25, float("nan"))]
    ['0.90', '−0.25', '–']
    >>> [shown(value, places("mse_few", [0.004, 5.0])) for value in (0.004, 0.31, 1234.5)]
    ['0.0040', '0.31', '1,234']
    """
    if not np.isfinite(value):
        return wording.number(value)
    text = f"{value:,.{rule.of(value)}f}"
    if not float(text.replace(",", "")):
        text = text.lstrip("-")
    return text.replace("-", "−")
