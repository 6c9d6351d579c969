"""Cutting an image into units: the model's patches, groups of them, or regions of one colour."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from piste.errors import PisteError, need, shorten
from piste.image import ImageInput
from piste.subject import IMAGE_UNITS, Unit, UnitChoice
from piste.types import Ints

Labels = NDArray[np.int32]

MOST_PATCHES = 64
"""More patches than this are put into groups unless the user says otherwise: the questions a
method needs grow with the number of units."""
_GROUPS = 7


@dataclass(frozen=True, slots=True)
class Patches:
    """The grid in which a model cuts an image: its size in patches, and a patch's in pixels."""

    rows: int
    columns: int
    height: int
    width: int

    def __len__(self) -> int:
        return self.rows * self.columns

    def areas(self, height: int, width: int) -> Labels:
        """The patch of every pixel, row by row, −1 where there is none."""
        return _blocks(
            _steps(height, self.height, self.rows), _steps(width, self.width, self.columns)
        )


@dataclass(frozen=True)
class Segmentation:
    """Units of an image; ``patch_units`` is the unit of every patch, where none is divided."""

    name: str
    units: tuple[Unit, ...]
    areas: Labels
    patch_units: Ints | None

    @cached_property
    def digest(self) -> bytes:
        """Another one for other areas."""
        return sha256(self.areas.tobytes()).digest()


def cut_image(
    image: ImageInput, units: UnitChoice, patches: Patches | None, *, whole_patches: bool
) -> Segmentation:
    """Cut a prepared image; with ``whole_patches`` no patch is divided between two units."""
    kind, number = _chosen(units, patches)
    if kind != "superpixels":
        return _regular(kind, number, patches, image.height, image.width)
    areas = _superpixels(image, number)
    if not whole_patches or patches is None:
        return _cut(f"{kind}:{number}", areas, None, 0)
    own = patches.areas(image.height, image.width)
    return _by_patch(f"{kind}:{number}", _majority(areas, own, len(patches)), own, 0)


@lru_cache(maxsize=32)  # one for all images of a size
def _regular(
    kind: str, number: int, patches: Patches | None, height: int, width: int
) -> Segmentation:
    if patches is None:
        areas = _blocks(_groups(number, height, "pixels"), _groups(number, width, "pixels"))
        return _cut(f"grid:{number}", areas, None, number)
    own = patches.areas(height, width)
    if kind == "patches":
        return _by_patch(kind, np.arange(len(patches)), own, patches.columns)
    rows = _groups(number, patches.rows, "patches")
    columns = _groups(number, patches.columns, "patches")
    owners = _blocks(rows, columns).ravel().astype(np.int64)
    return _by_patch(f"grid:{number}", owners, own, number)


def read_units(units: UnitChoice) -> tuple[str, int] | None:
    """A kind of cut and its number, None if it is left to the image; unknown ones are refused.

    >>> read_units("grid:7")
    ('grid', 7)
    """
    if units is None:
        return None
    if units == "patches":
        return "patches", 0
    found = re.fullmatch(r"(grid|superpixels):(\d{1,4})", str(units))
    if found is None or int(found[2]) < 2:
        raise PisteError(
            f"units: expected one of {', '.join(IMAGE_UNITS)} for an image, with K of at least "
            f"2, such as grid:7, got {shorten(units)}."
        )
    return found[1], int(found[2])


def _chosen(units: UnitChoice, patches: Patches | None) -> tuple[str, int]:
    found = read_units(units)
    if found is None:
        few = patches is not None and len(patches) <= MOST_PATCHES
        return ("patches", 0) if few else ("grid", _GROUPS)
    if found[0] == "patches" and patches is None:
        raise PisteError(
            "units='patches' needs a model that cuts images into patches, and this one does "
            "not: choose units='grid:7' or 'superpixels:50'."
        )
    return found


def _groups(number: int, size: int, what: str) -> Labels:
    """For each of ``size`` places the one of ``number`` groups of about equal size it is in."""
    if number > size:
        raise PisteError(
            f"units='grid:{number}' wants {number} parts of an image that is only {size} {what} "
            "wide or high: choose a smaller number."
        )
    return (np.arange(size) * number // size).astype(np.int32)


def _steps(size: int, step: int, count: int) -> Labels:
    places = (np.arange(size) // step).astype(np.int32)
    return np.where(places < count, places, -1).astype(np.int32)


def _blocks(rows: Labels, columns: Labels) -> Labels:
    """Numbers of blocks, row by row, from the row and the column of each place; −1 where none."""
    numbers = rows[:, None] * (columns.max() + 1) + columns[None, :]
    return np.where((rows[:, None] < 0) | (columns[None, :] < 0), -1, numbers).astype(np.int32)


def _superpixels(image: ImageInput, number: int) -> Labels:
    segmentation = need("skimage.segmentation", "vision", "units='superpixels:K'")
    found = segmentation.slic(
        image.pixels, n_segments=number, compactness=10, start_label=0, channel_axis=-1
    )
    return np.asarray(found, dtype=np.int32)


def _majority(areas: Labels, patches: Labels, count: int) -> Ints:
    """The region that covers most of every patch."""
    inside = patches >= 0
    shares = np.zeros((count, int(areas.max()) + 1), dtype=np.int64)
    np.add.at(shares, (patches[inside], areas[inside]), 1)
    return shares.argmax(axis=1)


def _by_patch(name: str, owners: Ints, patches: Labels, across: int) -> Segmentation:
    """Units of whole patches, from the unit of every patch and the patch of every pixel."""
    _, owners = np.unique(owners, return_inverse=True)  # regions may have no patch at all
    spread = np.append(owners, -1).astype(np.int32)
    return _cut(name, spread[patches], owners.astype(np.int64), across)


def _cut(name: str, areas: Labels, patch_units: Ints | None, across: int) -> Segmentation:
    count = int(areas.max()) + 1
    if count < 2:
        raise PisteError(
            "The image is a single unit to this model, so there is nothing to tell apart: choose "
            "more units, such as units='grid:7', or a larger image."
        )
    tokens = np.ones(count, dtype=int) if patch_units is None else np.bincount(patch_units)
    units = tuple(
        Unit(_name(number, across, box, areas.shape), 0, 0, 0, int(tokens[number]), box)
        for number, box in enumerate(_boxes(areas, count))
    )
    areas.setflags(write=False)  # many images may share it
    return Segmentation(name, units, areas, patch_units)


def _boxes(areas: Labels, count: int) -> Sequence[tuple[int, int, int, int]]:
    """Left, top, right, bottom of every area."""
    rows, columns = np.nonzero(areas >= 0)
    labels = areas[rows, columns]
    low, high = np.full((count, 2), areas.size), np.zeros((count, 2), dtype=np.int64)
    places = np.stack([columns, rows], axis=1)
    np.minimum.at(low, labels, places)
    np.maximum.at(high, labels, places + 1)
    return [(int(a), int(b), int(c), int(d)) for (a, b), (c, d) in zip(low, high, strict=True)]


def _name(number: int, across: int, box: tuple[int, int, int, int], shape: tuple[int, ...]) -> str:
    """By row and column; regions have none, so by the third of the image their middle is in."""
    if across:
        row, column = divmod(number, across)
        return f"row {row + 1}, column {column + 1}"
    left, top, right, bottom = box
    high = ("top", "middle", "bottom")[min(3 * (top + bottom) // (2 * shape[0]), 2)]
    wide = (" left", "", " right")[min(3 * (left + right) // (2 * shape[1]), 2)]
    return f"region {number + 1}, {high}{wide}"
