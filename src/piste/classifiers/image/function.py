"""Any Python function of pixels as a classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from piste.classifiers.image.subject import (
    BaseImageClassifier,
    ImageSubject,
    read_image,
    token_cost,
)
from piste.classifiers.image.units import cut_image
from piste.classifiers.outputs import OutputReader, as_matrix, call
from piste.classifiers.text.function import FunctionOutputs
from piste.errors import PisteError
from piste.image import ImageInput
from piste.subject import Binding, Question
from piste.types import Floats


class PixelFunction(FunctionOutputs, BaseImageClassifier):
    """A function from images (bytes, rows × height × width × 3) to scores.

    An image is explained in its own size, and parts that are removed are painted over; "delete"
    becomes "mean", because pixels can't be absent.

    >>> import piste
    >>> bright = piste.load(lambda pixels: pixels.mean(axis=(1, 2, 3)), inputs="pixels")
    >>> subject = bright.subject(np.eye(4), units="grid:2")
    >>> subject.ask([subject.whole, [0, 3]]).ravel().round().tolist()
    [64.0, 96.0]
    """

    budget = 32768  # in pieces of 16 × 16 pixels: large images come in small batches
    paced = False

    def __init__(
        self,
        function: Callable[[NDArray[np.uint8]], Any],
        reader: OutputReader,
        *,
        name: str | None = None,
    ) -> None:
        self.function = function
        self._reader = reader
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    def bind(self, input: Any, how: Binding) -> ImageSubject:
        removal = how.removal
        given = read_image(input)
        image = ImageInput(given.pixels, given.name, prepared=True)
        notes: dict[str, Any] = {"long": "fits", "size": [image.width, image.height]}
        if removal == "attention":
            raise PisteError(
                "removal='attention' needs a model whose attention can be changed, and a function "
                "of pixels is none: choose 'mean', 'blur' or 'noise'."
            )
        if removal == "delete":
            removal = "mean"
            notes["instead"] = (
                "pixels can't be absent: they are painted over with the image's mean colour"
            )
        cut = cut_image(image, how.units, None, whole_patches=False)
        return ImageSubject(self, image, cut, removal, notes, cost=token_cost(image))

    def _raw(self, questions: Sequence[Question]) -> Floats:
        pixels = [subject.pixels(kept) for subject, kept in (q.payload for q in questions)]
        return as_matrix(call(self.function, self.name, np.stack(pixels)), len(pixels))
