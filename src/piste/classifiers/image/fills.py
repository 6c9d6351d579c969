"""What parts of an image are painted over with when they are removed from its pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from piste.image import ImageInput

Pixels = NDArray[np.uint8]

FILLS = ("mean", "blur", "noise")
_BLUR = 1 / 8  # of the shorter side: no shape survives, colours do


def fill(image: ImageInput, kind: str) -> Pixels:
    """The pixels that stand for nothing: the mean colour, a blurred copy, or noise.

    The same image always gets the same noise, drawn evenly from all greys of all channels.

    >>> fill(ImageInput.of(np.array([[0, 100]], dtype=np.uint8)), "mean")[0, :, 0].tolist()
    [50, 50]
    """
    pixels = image.pixels
    if kind == "mean":
        colour = np.round(pixels.mean(axis=(0, 1))).astype(np.uint8)
        return np.broadcast_to(colour, pixels.shape)
    if kind == "blur":
        radius = max(min(image.width, image.height) * _BLUR, 1.0)
        return np.asarray(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(radius)))
    rng = np.random.default_rng(int(image.digest[:16], 16))
    grey = (pixels == pixels[..., :1]).all()
    drawn = rng.integers(0, 256, (*pixels.shape[:2], 1 if grey else 3), dtype=np.uint8)
    return np.broadcast_to(drawn, pixels.shape)
