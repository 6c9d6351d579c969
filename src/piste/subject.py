"""What is explained: one input bound to a classifier, cut into units that can be asked about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from piste.errors import PisteError
from piste.image import ImageInput
from piste.types import Floats, Ints

if TYPE_CHECKING:
    from piste.classifier import Classifier

TextInput: TypeAlias = str | tuple[str, str]
Input: TypeAlias = TextInput | ImageInput
RawInput: TypeAlias = Input | Path | bytes | Image.Image | NDArray[Any]
"""What a user may give for an input; :meth:`ImageInput.of` reads images."""
UnitKind: TypeAlias = Literal["words", "tokens", "sentences"]
"""What a text is cut into."""
UNIT_KINDS: tuple[str, ...] = ("words", "tokens", "sentences")
IMAGE_UNITS: tuple[str, ...] = ("patches", "grid:K", "superpixels:K")
"""What an image is cut into: the model's own patches, K × K groups of them, about K regions."""
UnitChoice: TypeAlias = str | None
"""One of :data:`UNIT_KINDS` or :data:`IMAGE_UNITS` with a number for K. None is "words" for a
text, and for an image "patches" if there are few, else "grid:7"."""
LongChoice: TypeAlias = Literal["error", "truncate", "windows"]
LONG_CHOICES: tuple[str, ...] = ("error", "truncate", "windows")
Removal: TypeAlias = Literal["delete", "mask", "pad", "attention", "mean", "blur", "noise"]
"""What "removed" means: the unit's tokens are taken out, replaced by the mask token, replaced by
the padding token, or stay where they are but hidden from attention. A unit of an image can also
be painted over: with the image's mean colour, a blurred copy, or noise."""
REMOVALS: tuple[str, ...] = ("delete", "mask", "pad", "attention")
IMAGE_REMOVALS: tuple[str, ...] = ("delete", "attention", "mean", "blur", "noise")


@dataclass(frozen=True)
class Binding:
    """How an input is bound to a classifier: see :func:`piste.explain` for what each means."""

    units: UnitChoice = None
    long: LongChoice = "error"
    removal: Removal = "delete"


Sequence1D: TypeAlias = Sequence[int] | NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Unit:
    """A player: a piece of the input that is present or absent as a whole.

    ``text == input[start:end]``; for a pair of texts ``segment`` says which of the two the span
    counts in. ``tokens`` is the number of model tokens it covers. A unit of an image has a
    ``box`` instead (left, top, right, bottom in pixels of what the model sees), and its text is a
    name, such as "row 3, column 7".
    """

    text: str
    start: int
    end: int
    segment: int = 0
    tokens: int = 1
    box: tuple[int, int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """One model input, as the classifier that made it understands it.

    ``key`` identifies it (equal keys have equal answers), ``length`` is its cost in tokens.
    """

    key: bytes | str
    length: int
    payload: Any


Parts: TypeAlias = list[tuple[Question, float]]
"""Questions and their weights, whose weighted sum answers a sequence."""


class Subject(ABC):
    """One input of one classifier: its units, and answers about any sequence of them."""

    classifier: Classifier
    input: Input
    units: tuple[Unit, ...]
    types: Ints
    """For every unit the number of its kind: units with the same content share one."""
    can_be_empty: bool
    """Whether the sequence without any unit can be asked."""
    limit: int | None
    """The largest number of body tokens one question may hold, None if unlimited."""
    notes: Mapping[str, Any]
    """What was done to the input (truncated, cut into windows …), for the result."""
    removal: Removal = "delete"
    """What becomes of units that are not asked about."""
    only_drops: bool = False
    """Whether units have their places, so that sequences may leave some out but nothing else."""
    cut: str = "words"
    """What the input was cut into, by the name that does it again."""

    def __len__(self) -> int:
        return len(self.units)

    @property
    def is_image(self) -> bool:
        """Whether units are parts of an image."""
        return any(unit.box is not None for unit in self.units)

    @property
    def whole(self) -> Ints:
        """The sequence of all units in order: the input itself."""
        return np.arange(len(self.units))

    @property
    def fits(self) -> bool:
        """Whether the whole input can be asked in one question."""
        return self.limit is None or sum(u.tokens for u in self.units) <= self.limit

    @abstractmethod
    def ask(self, sequences: Sequence[Sequence1D]) -> Floats:
        """The classifier's logits for sequences of unit indices, questions × outputs.

        A sequence may drop, repeat and reorder units; units that have their places
        (``only_drops``: those of images, and of texts with any ``removal`` but "delete") can
        only be dropped. The sequence of all units in order gives exactly the model's own output
        for the input.

        >>> import piste
        >>> subject = piste.load(lambda texts: [len(t) for t in texts]).subject("one two three")
        >>> subject.ask([[0, 1, 2], [0, 2]]).ravel().tolist()
        [13.0, 9.0]
        """

    def tree(self) -> Floats | None:
        """Which units belong together, as scipy's linkage matrix; None if it is for their texts."""
        return None

    def check(self, sequence: Sequence1D) -> Ints:
        """A sequence as an index array, refused if it names a unit that isn't there."""
        try:
            indices = np.asarray(sequence)
        except ValueError as problem:
            raise PisteError("A sequence must be a flat list of unit indices.") from problem
        if indices.size == 0:
            if not self.can_be_empty:
                raise PisteError(
                    "An empty sequence was asked, but this classifier reads nothing besides the "
                    "units, so nothing would be left to read: keep at least one unit."
                )
            return np.empty(0, dtype=np.int64)
        if indices.ndim != 1 or indices.dtype.kind not in "iu":
            raise PisteError(
                f"A sequence must be a flat list of unit indices, but it has the shape "
                f"{indices.shape} and the type {indices.dtype}."
            )
        if indices.min() < 0 or indices.max() >= len(self.units):
            wrong = int(indices.max() if indices.min() >= 0 else indices.min())
            raise PisteError(
                f"Unit {wrong} was asked, but the input has the units 0 to {len(self.units) - 1}."
            )
        if self.only_drops and (np.diff(indices) <= 0).any():
            raise PisteError(
                f"{self._placed} can only be dropped: a sequence must hold every unit at most "
                "once, in order."
            )
        return indices.astype(np.int64, copy=False)

    @property
    def _placed(self) -> str:
        if isinstance(self.input, ImageInput):
            return "The units of an image"
        return f"With removal={self.removal!r} units"

    @abstractmethod
    def encode(self, sequence: Sequence1D) -> Parts:
        """The model inputs whose weighted mean answers a sequence: one, or one per window."""

    def encode_all(self, sequences: Sequence[Sequence1D]) -> list[Parts]:
        """Many sequences at once, which a subject may do faster than one by one."""
        return [self.encode(sequence) for sequence in sequences]


def check_choices(units: UnitChoice, long: str, removal: str) -> None:
    """Refuse unknown names of what a text is cut into, and how."""
    for name, choice, known in (
        ("units", text_units(units), UNIT_KINDS),
        ("long", long, LONG_CHOICES),
        ("removal", removal, REMOVALS),
    ):
        if choice not in known:
            raise PisteError(f"{name}: expected one of {', '.join(known)}, got {choice!r}.")


def text_units(units: UnitChoice) -> UnitKind:
    """What a text is cut into: words, unless something else was chosen.

    >>> text_units(None)
    'words'
    """
    kind: Any = "words" if units is None else units
    chosen: UnitKind = kind
    return chosen
