"""Subjects of classifiers that read images: units with their places, and what is left of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from piste.classifier import Classifier
from piste.classifiers.base import EngineSubject
from piste.classifiers.image.preprocessing import fill
from piste.classifiers.image.units import Segmentation, read_units
from piste.errors import PisteError, shorten
from piste.image import ImageInput
from piste.subject import (
    IMAGE_REMOVALS,
    LONG_CHOICES,
    Parts,
    Question,
    Removal,
    Sequence1D,
    UnitChoice,
)
from piste.types import Flags, Floats, Ints

Kept: TypeAlias = Flags


class BaseImageClassifier(Classifier):
    """A classifier of images."""

    reads = "images"

    def check_choices(self, units: UnitChoice, long: str, removal: str) -> None:
        check_image_choices(units, long, removal)


class ImageSubject(EngineSubject):
    """An image as the model sees it, cut into units that are there or not, in their places.

    With the removals "delete" and "attention" a question is about tokens, with all others about
    pixels. A question's payload is the subject and which of its units are kept.

    Which of the two it is may have to be tried out, so :meth:`settle` says it, before the first
    question. ``token_units`` is the unit of every token of the whole image then, −1 for those that
    are no patch; None where questions are about pixels.
    """

    only_drops = True

    def __init__(
        self,
        classifier: Classifier,
        image: ImageInput,
        cut: Segmentation,
        removal: Removal,
        notes: Mapping[str, Any],
        *,
        cost: int = 1,
    ) -> None:
        self.classifier = classifier
        self.image = image
        self.input = replace(image, areas=cut.areas)
        self.units, self.cut = cut.units, cut.name
        self.types = np.arange(len(cut.units))
        self.removal, self.notes = removal, notes
        self.can_be_empty = True
        self.limit = None
        self.token_units: Ints | None = None
        self.is_settled = False
        self.areas, self.patch_units = cut.areas, cut.patch_units
        self._cost = cost
        self._key = bytes.fromhex(image.digest) + cut.digest

    def settle(
        self, removal: Removal, token_units: Ints | None, tokens: int | None, instead: str
    ) -> None:
        """How it is asked: what removal really is, and the tokens of the whole image, if known.

        ``instead`` says why removal is another one than was asked for; empty if it is not.
        """
        self.removal, self.token_units, self.is_settled = removal, token_units, True
        self._cost = tokens or self._cost
        if instead:
            self.notes = {**self.notes, "instead": instead}

    @cached_property
    def fill(self) -> NDArray[np.uint8]:
        """What is seen in the place of removed units."""
        return fill(self.image, self.removal)

    def encode(self, sequence: Sequence1D) -> Parts:
        return self.encode_all([sequence])[0]

    def encode_all(self, sequences: Sequence[Sequence1D]) -> list[Parts]:
        return [[(self._question(self._kept(sequence)), 1.0)] for sequence in sequences]

    def _kept(self, sequence: Sequence1D) -> Kept:
        """Which units are kept; behind the last stands what is no unit, and always stays."""
        kept = np.zeros(len(self.units) + 1, dtype=bool)
        kept[self.check(sequence)] = True
        kept[-1] = True
        return kept

    def _question(self, kept: Kept) -> Question:
        how = b"whole" if kept.all() else self.removal.encode()
        length = self._cost
        if self.removal == "delete" and self.token_units is not None:
            length = int(np.count_nonzero(kept[self.token_units]))
        return Question(self._key + how + np.packbits(kept).tobytes(), length, (self, kept))

    def tree(self) -> Floats:
        """Neighbours are units whose middles lie near each other."""
        from scipy.cluster.hierarchy import ward

        boxes = np.array([unit.box for unit in self.units], dtype=np.float64)
        return ward((boxes[:, :2] + boxes[:, 2:]) / 2)

    def pixels(self, kept: Kept) -> NDArray[np.uint8]:
        """The image with everything painted over that is not kept."""
        if kept.all():
            return self.image.pixels
        return np.where(kept[self.areas][..., None], self.image.pixels, self.fill)


def check_image_choices(units: UnitChoice, long: str, removal: str) -> None:
    """Refuse unknown names early."""
    read_units(units)
    for name, choice, known in (
        ("long", long, LONG_CHOICES),
        ("removal", removal, IMAGE_REMOVALS),
    ):
        if choice not in known:
            raise PisteError(
                f"{name}: expected one of {', '.join(known)} for an image, got {choice!r}."
            )


def read_image(input: object) -> ImageInput:
    """An image from whatever was given, or a clear refusal; a text is no image."""
    if isinstance(input, (tuple, list)):
        raise PisteError(
            f"Expected an image, got {shorten(input)} of type {type(input).__name__}: give one "
            "image, or a list of them to explain."
        )
    if isinstance(input, str) and not _is_file(input):
        raise PisteError(
            f"Expected an image, got the text {shorten(input)}, which is no file: give the path "
            "of an image, or load a text classifier."
        )
    return ImageInput.of(input)


def token_cost(image: ImageInput) -> int:
    """What a question costs in tokens, for a model that has none: one for 16 × 16 pixels."""
    return max(image.width * image.height // 256, 1)


def _is_file(name: str) -> bool:
    try:
        return Path(name).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):  # too long, a null character, no such user
        return False
