"""One colour scale for terminal, figures and pages: blue speaks for the target, orange against.

Blue and orange stay apart under every common colour blindness. Strength grows with the score and
is clipped at a high quantile, so that one extreme word doesn't bleach all others. On images,
scores without a direction have a third colour, which says how much and never which way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

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
