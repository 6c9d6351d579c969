"""Clothes drawn by hand, for trying ``piste:fashion`` without any data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from piste.validation import choose

if TYPE_CHECKING:
    from piste.image import ImageInput

Points = tuple[tuple[float, float], ...]

SIZE = 28
_FINER = 8
"""Drawn larger and scaled down, so that edges are soft as in photographs."""

# Half outlines from the collar down to the hem, mirrored; across and down in 28ths.
_HALVES: dict[str, Points] = {
    "trousers": ((14, 2), (18.5, 2), (19.5, 26), (16, 26), (14.3, 9)),
    "dress": ((14, 4), (15.5, 1), (17.5, 1.5), (17.5, 8), (16.5, 12), (20.5, 27), (14, 27)),
}
_WHOLES: dict[str, tuple[Points, ...]] = {
    "boot": (((12, 2), (22, 2), (22, 26), (16, 26), (15, 24), (4, 26), (3, 22), (11, 17)),),
    "bag": (
        ((3, 12), (25, 12), (26, 25), (2, 25)),
        ((8, 12), (9, 5), (19, 5), (20, 12), (18, 12), (17.5, 7), (10.5, 7), (10, 12)),
    ),
}
CLOTHES: tuple[str, ...] = (*_HALVES, *_WHOLES)


def draw_clothes(kind: str) -> ImageInput:
    """A grey 28 × 28 image on black, as those that ``piste:fashion`` was trained with.

    >>> draw_clothes("boot").pixels.shape
    (28, 28, 3)
    """
    from PIL import Image, ImageDraw

    from piste.image import ImageInput

    choose("kind", kind, CLOTHES)
    large = Image.new("L", (SIZE * _FINER, SIZE * _FINER))
    brush = ImageDraw.Draw(large)
    for points in _outlines(kind):
        brush.polygon([(_FINER * x, _FINER * y) for x, y in points], fill=190)
    grey = np.asarray(large.resize((SIZE, SIZE), Image.Resampling.LANCZOS), dtype=np.float64)
    rng = np.random.default_rng(0)
    cloth = grey * (1 + 0.12 * rng.normal(size=grey.shape))  # cloth is not even
    pixels = np.round(np.clip(cloth, 0, 255)).astype(np.uint8)
    return ImageInput.of(np.repeat(pixels[..., None], 3, axis=2))


def _outlines(kind: str) -> tuple[Points, ...]:
    if kind in _WHOLES:
        return _WHOLES[kind]
    half = _HALVES[kind]
    return ((*half, *((SIZE - x, y) for x, y in reversed(half))),)
