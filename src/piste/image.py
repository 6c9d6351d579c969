"""An image as an input: its pixels, and which unit every pixel belongs to."""

from __future__ import annotations

import base64
import hashlib
import io
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from piste.errors import PisteError, shorten
from piste.types import Floats
from piste.validation import check_size

_MOST_PIXELS = 100_000_000
"""Larger images are refused: nobody means to decode them into memory."""
MOST_BYTES = 200_000_000
"""Larger files are not read."""
_SMALLER = "make the image smaller"


@dataclass(frozen=True, eq=False)
class ImageInput:
    """RGB pixels (height × width × 3, bytes).

    An image as a user gave it has no ``areas``. One that a result holds is ``prepared``: cut and
    scaled to what the model sees, so that it is only normalised when it is asked about again, and
    ``areas`` (height × width) tells the unit of every pixel, −1 for none.

    >>> ImageInput.of(np.zeros((2, 3), dtype=np.uint8)).pixels.shape
    (2, 3, 3)
    """

    pixels: NDArray[np.uint8]
    name: str = "image"
    prepared: bool = False
    areas: NDArray[np.int32] | None = field(default=None, repr=False)

    @staticmethod
    def of(source: Any) -> ImageInput:
        """An image from a file, its bytes, a PIL image, or an array of bytes or of 0 … 1."""
        if isinstance(source, ImageInput):
            return source
        if isinstance(source, (str, Path)):
            path = Path(source).expanduser()
            try:
                size = path.stat().st_size
                check_size(repr(str(source)), size, MOST_BYTES, "bytes", _SMALLER)
                return ImageInput(_decode(path.read_bytes(), repr(str(source))), path.name)
            except OSError as problem:
                reason = problem.strerror or str(problem)
                raise PisteError(f"{str(source)!r} could not be read: {reason}.") from problem
        if isinstance(source, (bytes, bytearray, memoryview)):
            check_size("The input", len(source), MOST_BYTES, "bytes", _SMALLER)
            return ImageInput(_decode(bytes(source), "The input"))
        if isinstance(source, Image.Image):
            name = Path(getattr(source, "filename", "") or "image").name
            _check_pixels(source, "The image")
            return ImageInput(_rgb(source), name)
        if hasattr(source, "detach"):
            source = source.detach().cpu().numpy()
        if isinstance(source, np.ndarray):
            return ImageInput(_from_array(source))
        raise PisteError(
            f"Expected an image (a file, its bytes, a PIL image or an array), got "
            f"{shorten(source)} of type {type(source).__name__}."
        )

    @property
    def height(self) -> int:
        return int(self.pixels.shape[0])

    @property
    def width(self) -> int:
        return int(self.pixels.shape[1])

    @cached_property
    def digest(self) -> str:
        """Equal for equal pixels that are read the same way."""
        shape = f"{self.pixels.shape}{self.prepared}".encode()
        return hashlib.sha256(shape + np.ascontiguousarray(self.pixels).tobytes()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ImageInput) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<image {self.name!r}, {self.width} × {self.height}>"

    def to_pil(self) -> Image.Image:
        return Image.fromarray(self.pixels)

    def png(self) -> bytes:
        return _png(self.to_pil())

    def painted(self, scores: Floats) -> Floats:
        """One number per unit, spread over the unit's pixels; NaN where no unit is."""
        if self.areas is None:
            raise PisteError("This image has not been cut into units: explain it first.")
        spread = np.append(np.asarray(scores, dtype=np.float64), np.nan)
        return spread[self.areas]

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it: lossless PNGs in base64."""
        areas = None
        if self.areas is not None:
            shifted = (self.areas + 1).astype(np.uint16)
            areas = _text(_png(Image.fromarray(shifted)))
        return {
            "picture": _text(self.png()),
            "name": self.name,
            "prepared": self.prepared,
            "areas": areas,
        }

    @staticmethod
    def from_dict(data: dict[str, Any]) -> ImageInput:
        """What :meth:`to_dict` wrote."""
        pixels = _decode(base64.b64decode(data["picture"]), "The stored image")
        areas = None
        if data["areas"] is not None:
            with Image.open(io.BytesIO(base64.b64decode(data["areas"]))) as image:
                areas = np.asarray(image).astype(np.int32) - 1
        return ImageInput(pixels, data["name"], bool(data["prepared"]), areas)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _decode(content: bytes, source: str) -> NDArray[np.uint8]:
    try:
        with warnings.catch_warnings():  # our own limit is lower than the one that is warned of
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content)) as image:
                _check_pixels(image, source)
                return _rgb(image)
    except Image.DecompressionBombError as problem:
        raise PisteError(
            f"{source} has more pixels than can be read: {_SMALLER}, to at most {_MOST_PIXELS:,}."
        ) from problem
    except UnidentifiedImageError as problem:
        raise PisteError(
            f"{source} is not an image that can be read: expected PNG, JPEG, WebP, GIF or BMP."
        ) from problem
    except (OSError, SyntaxError, ValueError) as problem:
        if isinstance(problem, PisteError):
            raise
        raise PisteError(f"{source} is a broken image ({problem}).") from problem


def _check_pixels(image: Image.Image, source: str) -> None:
    if image.width * image.height > _MOST_PIXELS:
        raise PisteError(
            f"{source} has {image.width} × {image.height} pixels: {_SMALLER}, to at most "
            f"{_MOST_PIXELS:,}."
        )


def _rgb(image: Image.Image) -> NDArray[np.uint8]:
    """Upright, on white where it is transparent, 16-bit greys scaled to bytes."""
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith(("I", "F")):
        numbers = np.asarray(image, dtype=np.float64)
        numbers = numbers / 257.0 if numbers.max(initial=0) > 255 else numbers
        return _from_array(np.clip(np.round(numbers), 0, 255).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        paper = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(paper, image)
    return np.asarray(image.convert("RGB"))


def _from_array(array: NDArray[Any]) -> NDArray[np.uint8]:
    if array.ndim == 3 and array.shape[0] in (1, 3) and array.shape[2] not in (1, 3):
        array = np.moveaxis(array, 0, 2)
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] not in (1, 3) or 0 in array.shape:
        raise PisteError(
            f"Expected an array of height × width, height × width × 1 or height × width × 3 for an "
            f"image, got the shape {array.shape}."
        )
    if array.dtype.kind == "f":
        if not np.isfinite(array).all() or array.min() < 0 or array.max() > 1:
            raise PisteError(
                "An image's numbers must lie in 0 … 1, or be bytes in 0 … 255: scale them first."
            )
        array = np.round(array * 255)
    elif array.dtype.kind not in "iub" or array.min() < 0 or array.max() > 255:
        raise PisteError("An image's whole numbers must lie in 0 … 255: scale them first.")
    return np.repeat(array, 4 - array.shape[2], axis=2)[:, :, :3].astype(np.uint8)
