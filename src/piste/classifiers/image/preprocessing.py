"""From an image to what an image model sees, and back: scaled, cropped, normalised.

What a processor does to the size of an image does not matter here. What it does to the numbers
must be undone to show and to change what the model sees, so that is learned by trying: every
channel is scaled and shifted. Parts removed from the pixels are painted over: :func:`fill`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from piste.errors import PisteError
from piste.image import ImageInput
from piste.types import Floats

Pixels = NDArray[np.uint8]
Values = NDArray[np.float32]

_TRIED = (0, 255, 128)
_TRIED_SIZE = 512  # larger than what is cropped out of it, so that no border comes in
_SAME = 1e-3
"""The largest error in grey levels by which an image counts as kept exactly."""


class Preparation:
    """An image processor, as two steps: to the bytes the model sees, and to its numbers.

    ``channels`` is 3, or 1 for a model that reads greys.
    """

    def __init__(self, processor: Any, channels: int) -> None:
        self.processor, self.channels = processor, channels
        seen = []
        for grey in _TRIED:
            plain = np.full((_TRIED_SIZE, _TRIED_SIZE, 3), grey, dtype=np.uint8)
            values = self._process(plain)
            seen.append(values[:, values.shape[1] // 2, values.shape[2] // 2])
        black, white, middle = np.array(seen, dtype=np.float64)
        self.offset = black
        self.scale = (white - black) / 255
        expected = self.offset + 128 * self.scale
        if not (np.abs(self.scale) > 0).all() or not np.allclose(expected, middle, atol=1e-4):
            raise PisteError(
                f"{type(processor).__name__} does not only scale and shift the numbers of an "
                "image, so parts of one can't be changed: load a function of pixels instead."
            )

    def prepare(self, image: ImageInput) -> tuple[ImageInput, float]:
        """What the model sees, and by how many grey levels it was rounded at most."""
        if image.prepared:
            return ImageInput(image.pixels, image.name, prepared=True), 0.0
        values = self._process(image.pixels)
        column = (slice(None), None, None)
        grey = (values - self.offset[column]) / self.scale[column]
        pixels = np.clip(np.round(grey), 0, 255).astype(np.uint8)
        rounded = float(np.abs(grey - pixels).max())
        pixels = np.ascontiguousarray(np.moveaxis(pixels, 0, 2))
        if self.channels == 1:
            pixels = np.repeat(pixels, 3, axis=2)
        return ImageInput(pixels, image.name, prepared=True), 0.0 if rounded < _SAME else rounded

    def values(self, pixels: Pixels) -> Values:
        """The model's numbers, rows × channels × height × width, of rows of RGB pixels."""
        if self.channels == 1:
            pixels = _grey(pixels)
        first = np.moveaxis(pixels, -1, 1)
        column = (None, slice(None), None, None)
        values = first * self.scale.astype(np.float32)[column]
        values += self.offset.astype(np.float32)[column]
        return np.ascontiguousarray(values)

    def describe(self) -> str:
        """What answers depend on, beside the bytes of the image."""
        return f"{self.scale.round(9).tolist()} {self.offset.round(7).tolist()}"

    def _process(self, pixels: Pixels) -> Floats:
        image = Image.fromarray(pixels)
        image = image.convert("L") if self.channels == 1 else image
        try:
            values: Any = self.processor(images=image, return_tensors="pt")["pixel_values"]
        except (ValueError, TypeError, KeyError, AttributeError, RuntimeError) as problem:
            raise PisteError(
                f"{type(self.processor).__name__} could not prepare an image of "
                f"{pixels.shape[1]} × {pixels.shape[0]} pixels ({problem})."
            ) from problem
        if not isinstance(values, torch.Tensor) or values.shape[:2] != (1, self.channels):
            shape = tuple(values.shape) if isinstance(values, torch.Tensor) else type(values)
            raise PisteError(
                f"{type(self.processor).__name__} makes {shape} of an image, expected 1 × "
                f"{self.channels} × height × width: load a function of pixels instead."
            )
        return values[0].cpu().double().numpy()


def _grey(pixels: Pixels) -> Pixels:
    """One channel, as PIL makes it; greys keep their value."""
    wide = pixels.astype(np.uint32)
    mixed = (wide @ np.array([19595, 38470, 7471], dtype=np.uint32) + 0x8000) >> 16
    return mixed.astype(np.uint8)[..., None]


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
