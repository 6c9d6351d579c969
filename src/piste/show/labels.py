"""How methods and metrics appear in tables and charts: colours, sentences, numbers.

One colour per family of methods, so that thirteen of them can still be told apart.
SLALOM has the strongest accent; the shades within a family come with markers of their own, so
that no reader depends on colours. Controls are grey and dashed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from piste.evaluation.metrics import Figure
from piste.methods import METHODS
from piste.methods.controls import ControlMethod
from piste.show import wording
from piste.types import Floats

FAMILIES: Mapping[str, str] = {
    "slalom": "SLALOM",
    "black-box": "other black-box methods",
    "white-box": "white-box methods",
    "control": "controls",
}
"""What the families are called."""

# Shades on a light ground, and the same on a dark one.
_SHADES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "slalom": (("#0b57a4", "#66b2ff"), ("#3b86d6", "#9cc9ff"), ("#6a63c9", "#a9a4ff")),
    "black-box": (
        ("#c24e00", "#ff9450"),
        ("#e58a2c", "#ffb866"),
        ("#7a3a0c", "#d98a5a"),
        ("#b8911b", "#e6c657"),
        ("#db5f45", "#ff8f75"),
        ("#9c6b3f", "#cda27a"),
    ),
    "white-box": (
        ("#00795c", "#33c79c"),
        ("#33a884", "#7fe0c0"),
        ("#0f4f45", "#5aa898"),
        ("#7a9d26", "#b5d96a"),
        ("#5a8f7b", "#93c2b1"),
    ),
    "control": (("#7b838c", "#98a1ab"), ("#a0a7af", "#737b84")),
}
_MARKERS = {"slalom": "", "black-box": "osD^vP<", "white-box": "osD^vP<", "control": ""}
_DOTS = {"slalom": "o", "black-box": "o", "white-box": "D", "control": "X"}
_DASHES: Mapping[str, tuple[Any, ...]] = {
    "slalom": ("-", (0, (6, 1.5)), (0, (2, 1))),
    "control": ((0, (5, 3)), (0, (1, 2))),
}

DARK: Mapping[str, str] = {light: dark for shades in _SHADES.values() for light, dark in shades}
"""Every colour used here with its counterpart on a dark ground."""


@dataclass(frozen=True)
class Style:
    """How a method is drawn."""

    family: str
    colour: str
    base: str
    """The family's own colour, for dots that have their names beside them."""
    marker: str
    """Along a line; the empty string for none."""
    dot: str
    """As a dot: its shape tells the family."""
    dashes: Any
    width: float


def family(method: str) -> str:
    """The family of a method by its name, which may have options and a score behind it.

    >>> [family(name) for name in ("slalom:value", "lime", "gradient", "random[seed=3]", "my")]
    ['slalom', 'black-box', 'white-box', 'control', 'black-box']
    """
    name = re.split(r"[:\[]", method)[0]
    known = METHODS.get(name)
    if name.startswith("slalom"):
        return "slalom"
    if known is None:
        return "black-box"
    if issubclass(known, ControlMethod):
        return "control"
    return "black-box" if known.needs == "answers" else "white-box"


def styles(methods: Sequence[str]) -> dict[str, Style]:
    """A style for every method; the same method among the same others looks the same."""
    counts: dict[str, int] = {}
    found = {}
    for method in methods:
        kind = family(method)
        number = counts.get(kind, 0)
        counts[kind] = number + 1
        shades, markers, dashes = _SHADES[kind], _MARKERS[kind], _DASHES.get(kind, ("-",))
        found[method] = Style(
            family=kind,
            colour=shades[number % len(shades)][0],
            base=shades[0][0],
            marker=markers[number % len(markers)] if markers else "",
            dot=_DOTS[kind],
            dashes=dashes[number % len(dashes)],
            width={"slalom": 2.8, "control": 1.4}.get(kind, 1.5),
        )
    return found


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
