from __future__ import annotations

import numpy as np
import pytest

from piste.show import colours


def test_one_extreme_word_does_not_bleach_the_rest():
    scores = np.append(np.ones(100), 1000.0)
    assert colours.strengths(scores)[0] == 1.0


def test_signs_keep_their_side_and_unknown_scores_have_none():
    strengths = colours.strengths([2.0, -2.0, np.nan, 0.0])
    assert strengths.tolist() == [1.0, -1.0, 0.0, 0.0]
    assert colours.strengths([0.0, 0.0]).tolist() == [0.0, 0.0]
    assert colours.css(0.0) == "transparent"


def luminance(colour: colours.RGB) -> float:
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in np.array(colour) / 255
    ]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


@pytest.mark.parametrize("strength", [-1.0, -0.5, 0.5, 1.0])
@pytest.mark.parametrize(
    ("ground", "ink"), [((255, 255, 255), (29, 33, 38)), ((25, 29, 35), (230, 233, 237))]
)
def test_text_stays_readable_on_every_strength(strength, ground, ink):
    """WCAG AA asks for a contrast of 4.5."""
    dark, light = sorted((luminance(colours.tint(strength, ground)), luminance(ink)))
    assert (light + 0.05) / (dark + 0.05) >= 4.5
