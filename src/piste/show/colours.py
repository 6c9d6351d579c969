"""One colour scale for terminal, figures and pages: blue speaks for the target, orange against.

Blue and orange stay apart under every common colour blindness. Strength grows with the score and
is clipped at a high quantile, so that one extreme word doesn't bleach all others. On images,
scores without a direction have a third colour, which says how much and never which way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from rich.console import Console

from piste.types import Floats

RGB = tuple[int, int, int]

FOR: RGB = (33, 113, 196)
AGAINST: RGB = (222, 98, 12)
WEIGHT: RGB = (120, 28, 129)
WHITE: RGB = (255, 255, 255)

CLIP = 0.97
"""Quantile of |score| that gets full strength."""
STRONGEST = 0.7
"""Opacity of full strength: text on it stays readable on light and on dark grounds."""
VISIBLE = 0.04
"""Strength below which a unit is left unmarked."""


def scale(scores: ArrayLike) -> float:
    """The |score| that gets full strength; 1 where all scores are zero or unknown."""
    sizes = np.abs(np.asarray(scores, dtype=np.float64).ravel())
    sizes = sizes[np.isfinite(sizes)]
    if not sizes.size or sizes.max() == 0:
        return 1.0
    clipped = float(np.quantile(sizes, CLIP, method="higher"))
    return clipped if clipped > 0 else float(sizes.max())


def strengths(scores: ArrayLike) -> Floats:
    """Scores as signed strengths from −1 (all orange) to 1 (all blue); unknown ones are 0.

    >>> strengths([2.0, -1.0, 0.0]).tolist()
    [1.0, -0.5, 0.0]
    """
    array = np.nan_to_num(np.asarray(scores, dtype=np.float64))
    return np.clip(array / scale(scores), -1.0, 1.0)


def hue(strength: float, directed: bool = True) -> RGB:
    """The full colour of a sign, or of any weight."""
    if not directed:
        return WEIGHT
    return FOR if strength >= 0 else AGAINST


def tint(strength: float, ground: RGB = WHITE, directed: bool = True) -> RGB:
    """The colour of a strength laid over an opaque ground."""
    share = min(STRONGEST * abs(strength), 1.0)
    red, green, blue = (
        round(share * top + (1 - share) * under)
        for top, under in zip(hue(strength, directed), ground, strict=True)
    )
    return red, green, blue


def to_hex(colour: RGB) -> str:
    """A colour as #rrggbb.

    >>> to_hex(WHITE)
    '#ffffff'
    """
    return "#{:02x}{:02x}{:02x}".format(*colour)


def css(strength: float, directed: bool = True) -> str:
    """A translucent CSS colour, right on light and on dark grounds; "transparent" if too weak."""
    if abs(strength) < VISIBLE:
        return "transparent"
    red, green, blue = hue(strength, directed)
    return f"rgba({red},{green},{blue},{STRONGEST * min(abs(strength), 1.0):.2f})"


# A terminal's ground may be light or dark, so strength is told by saturation, not by lightness.
GROUNDS = {
    1: ("#8fa3b8", "#5d9ad6", "#1f78d1"),
    -1: ("#b8a38f", "#dc9350", "#ea6a00"),
}
_BASIC = {1: "black on cyan", -1: "black on yellow"}
_STEPS = (0.12, 0.35, 0.7)
"""Strengths at which the three grounds begin."""


@dataclass(frozen=True)
class TerminalCapabilities:
    """What a console can show: no colours at all, sixteen of them, or every shade."""

    plain: bool
    basic: bool

    @staticmethod
    def of(console: Console) -> TerminalCapabilities:
        return TerminalCapabilities(
            plain=console.color_system is None or console.no_color,
            basic=console.color_system in ("standard", "windows"),
        )

    def style(self, strength: float) -> str:
        """The style of a text of this strength; none without colours."""
        steps = step(strength)
        if not steps or self.plain:
            return ""
        sign = 1 if strength > 0 else -1
        if self.basic:  # 16 colours have no shades: mark the clear ones
            return _BASIC[sign] if steps > 1 else ""
        ground = GROUNDS[sign][steps - 1]
        return f"{'bold ' if steps == 3 else ''}#000000 on {ground}"


def step(strength: float) -> int:
    """0 for an unmarked unit, up to 3."""
    return int(np.searchsorted(_STEPS, abs(strength), side="right"))
