"""What people marked in an image: an object's mask or its box."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from piste.errors import PisteError, shorten
from piste.explanation import Explanation
from piste.image import ImageInput
from piste.subject import Subject
from piste.types import Flags


@dataclass(frozen=True, eq=False)
class Region:
    """A mask (height × width) over what the model sees of an image, at any resolution."""

    mask: Flags

    def units(self, cut: Subject | Explanation, least: float = 0.5) -> Flags:
        """The units of which at least so large a share of the pixels is marked."""
        image = cut.input
        if not isinstance(image, ImageInput) or image.areas is None:
            raise PisteError("Expected an image to mark regions in, got a text.")
        rows, columns = self.mask.shape
        height, width = image.areas.shape
        seen = self.mask[np.arange(height) * rows // height][:, np.arange(width) * columns // width]
        inside = image.areas >= 0
        units = image.areas[inside]
        marked = np.bincount(units, seen[inside], minlength=len(cut.units))
        return marked >= least * np.maximum(np.bincount(units, minlength=len(cut.units)), 1)

    def __repr__(self) -> str:  # enters the digest of an example
        content = hashlib.sha256(np.packbits(self.mask).tobytes()).hexdigest()[:16]
        return f"<region {self.mask.shape} {content}>"


def read_region(cell: Any, place: str) -> Region | None:
    """A mask from the bytes of an image (whatever is not black is marked), or from a list of rows.

    ``place`` says where the cell is, for errors.

    >>> read_region([[0, 1], [0, 1]], "Row 0").mask.tolist()
    [[False, True], [False, True]]
    """
    if cell is None:
        return None
    if isinstance(cell, (bytes, bytearray)):
        try:
            with Image.open(io.BytesIO(bytes(cell))) as image:
                array: NDArray[Any] = np.asarray(image)
        except (OSError, ValueError, SyntaxError) as problem:
            raise PisteError(f"{place} holds a mask that is no readable image.") from problem
        array = np.asarray(array.any(axis=2)) if array.ndim == 3 else array
    else:
        try:
            array = np.array([list(row) for row in cell])
        except (TypeError, ValueError) as problem:
            raise PisteError(
                f"{place}: expected the bytes of a PNG, or rows of 0 and 1, as mask, got "
                f"{shorten(cell)}."
            ) from problem
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "biuf":
        raise PisteError(
            f"{place}: expected a mask of height × width, got the shape {array.shape}."
        )
    return Region(array.astype(bool))
