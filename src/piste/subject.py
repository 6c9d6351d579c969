"""What is explained: one input bound to a classifier, cut into units that can be asked about."""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import IOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from piste.errors import PisteError, shorten
from piste.image import ImageInput
from piste.types import Floats, Ints
from piste.validation import choose

if TYPE_CHECKING:
    from piste.classifier import Classifier

TextInput: TypeAlias = str | tuple[str, str]
Input: TypeAlias = TextInput | ImageInput
RawInput: TypeAlias = Input | Path | bytes | Image.Image | NDArray[Any]
"""What a user may give for an input; :meth:`ImageInput.of` reads images."""


def listed_inputs(given: Any) -> list[Any] | None:
    """Several inputs as a list, whatever holds them; None if one input was given.

    Lists, Series of pandas and polars, columns of datasets, arrays of texts, generators.

    >>> listed_inputs(np.array(["a", "b"])), listed_inputs(text for text in "ab")
    ([np.str_('a'), np.str_('b')], ['a', 'b'])
    """
    if isinstance(given, list):
        return given
    if isinstance(given, np.ndarray):
        return list(given) if given.ndim == 1 and given.dtype.kind in "UOT" else None
    if hasattr(given, "columns") or hasattr(given, "column_names"):
        raise PisteError(
            f"Expected texts, got a table ({type(given).__name__}): give the column with the "
            "texts, as table['text']."
        )
    if isinstance(given, (str, bytes, bytearray, memoryview, tuple, Path, Mapping, IOBase)):
        return None
    if hasattr(given, "to_list"):
        return list(given.to_list())
    return list(given) if isinstance(given, (Iterator, Sequence)) else None


UnitKind: TypeAlias = Literal["words", "tokens", "sentences", "paragraphs"]
"""What a text is cut into."""
UNIT_KINDS: tuple[str, ...] = ("words", "tokens", "sentences", "paragraphs")
PROMPT_UNITS: tuple[str, ...] = ("parts", *UNIT_KINDS)
"""What a prompt is cut into: its named parts (documents, fields, turns) are units too."""
IMAGE_UNITS: tuple[str, ...] = ("patches", "grid:K", "superpixels:K")
"""What an image is cut into: the model's own patches, K × K groups of them, about K regions."""
Spans: TypeAlias = Sequence[Sequence[int]]
"""Spans of one's own: (start, end) of a text, or (segment, start, end) of a pair of texts."""
SpanFunction: TypeAlias = Callable[[str], Spans]
Cut: TypeAlias = str | Spans | SpanFunction | None
"""What an input is cut into at once: one of :data:`UNIT_KINDS`, or of :data:`IMAGE_UNITS` with a
number for K, spans, or a function from a text to spans. None is "words" for a text, and for an
image "patches" if there are few, else "grid:7"."""
UnitChoice: TypeAlias = Cut | Sequence[str | SpanFunction]
"""A :data:`Cut`, or levels: a list of them, from coarse to fine. A string may hold levels
("paragraphs,words") or spans ("0-12,13-40") too, as on the command line."""
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

    units: Cut = None
    long: LongChoice = "error"
    removal: Removal = "delete"


Sequence1D: TypeAlias = Sequence[int] | NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Unit:
    """A player: a piece of the input that is present or absent as a whole.

    ``text == input[start:end]``; for a pair of texts ``segment`` says which of the two the span
    counts in. ``tokens`` is the number of model tokens it covers. A unit of an image has a
    ``box`` instead (left, top, right, bottom in pixels of what the model sees), and its text is a
    name, such as "row 3, column 7". ``part`` is the name of the part of the input it belongs to,
    where parts have names: a document of a context, a turn of a chat, a field of a template.
    """

    text: str
    start: int
    end: int
    segment: int = 0
    tokens: int = 1
    box: tuple[int, int, int, int] | None = None
    part: str | None = None


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
    cut: str | Spans = "words"
    """What the input was cut into, by the name or the spans that do it again."""

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


def check_choices(
    units: UnitChoice, long: str, removal: str, kinds: Sequence[str] = UNIT_KINDS
) -> None:
    """Refuse unknown names of what a text is cut into, and how; ``kinds`` are the known ones."""
    check_levels(levels_of(units), kinds)
    for name, choice, known in (("long", long, LONG_CHOICES), ("removal", removal, REMOVALS)):
        choose(name, choice, known)


_EXPECTED = (
    "one of {}, a list of them from coarse to fine, spans such as (0, 12), or a function from a "
    "text to spans"
)
_COARSE_TO_FINE = ("parts", "paragraphs", "sentences", "words", "tokens")
_SPAN = re.compile(r"(?:(\d{1,9}):)?(\d{1,9})-(\d{1,9})")


def check_levels(levels: Sequence[Cut], known: Sequence[str] = UNIT_KINDS) -> None:
    """Refuse kinds of units that a text doesn't have, and levels that do not get finer."""
    kinds = [level for level in levels if isinstance(level, str)]
    for kind in kinds:
        if kind not in known:
            expected = _EXPECTED.format(", ".join(known))
            raise PisteError(f"units: expected {expected}, got {shorten(kind)}.")
    ranks = [_COARSE_TO_FINE.index(kind) for kind in kinds]
    if sorted(set(ranks)) != ranks:
        raise PisteError(
            f"units: expected levels from coarse to fine, in the order of "
            f"{', '.join(_COARSE_TO_FINE)}, got {', '.join(kinds)}."
        )


def levels_of(units: UnitChoice) -> list[Cut]:
    """What an input is cut into, one level after the other; mostly there is only one.

    Spans become tuples of integers. Anything else than names, spans and functions is refused;
    names are not checked yet.

    >>> levels_of("words"), levels_of([(4, 9), (0, 3)]), levels_of("0-3,4-9")
    (['words'], [((4, 9), (0, 3))], [((0, 3), (4, 9))])
    >>> levels_of(["paragraphs", "words"]) == levels_of("paragraphs, words")
    True
    """
    if units is None or callable(units):
        return [units]
    if isinstance(units, str):
        return _read_levels(units)
    try:
        items: list[Any] = list(units)
    except TypeError:
        items = []
    if items and all(isinstance(item, str) or callable(item) for item in items):
        return [item.strip() if isinstance(item, str) else item for item in items]
    return [read_spans(items, units)]


def _read_levels(text: str) -> list[Cut]:
    items = [item.strip() for item in text.split(",")]
    found = [_SPAN.fullmatch(item) for item in items]
    if not any(found):
        return list(items)
    spans = [[int(n) for n in one.groups() if n is not None] for one in found if one]
    return [read_spans(spans if all(found) else [], text)]


def read_spans(items: Any, given: object) -> tuple[tuple[int, ...], ...]:
    """Spans as tuples of integers; what is none is refused, ``given`` is what the user gave."""
    try:
        spans = tuple(tuple(operator.index(number) for number in span) for span in items)
    except TypeError:
        spans = ()
    if not spans or any(len(span) not in (2, 3) for span in spans):
        expected = _EXPECTED.format(", ".join(UNIT_KINDS))
        raise PisteError(f"units: expected {expected}, got {shorten(given)}.")
    return spans


def text_units(units: Cut) -> str | Spans | SpanFunction:
    """What a text is cut into: words, unless something else was chosen.

    >>> text_units(None)
    'words'
    """
    return "words" if units is None else units
