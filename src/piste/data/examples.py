"""The examples an evaluation runs on: texts with labels and human rationales, chosen by seed."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from piste.data.image_rationales import Region, read_region
from piste.data.rationales import Marks, read_marks
from piste.data.tables import Table, read_table
from piste.errors import PisteError, shorten
from piste.image import Picture
from piste.subject import Input
from piste.validation import check_count

SPLIT = "split"
"""The column that says which part of the data a row belongs to."""

DataOption: TypeAlias = "str | Path | Sequence[Example] | Sequence[Input]"


@dataclass(frozen=True)
class Example:
    """One text, a pair of texts or a picture, and what is known about it."""

    id: str
    """Its number in the file, counted from 0 before anything was left out."""
    text: str = ""
    pair: str | None = None
    label: int | str | None = None
    rationale: Marks | Region | None = None
    split: str | None = None
    picture: Picture | None = None

    @property
    def input(self) -> Input:
        if self.picture is not None:
            return self.picture
        return self.text if self.pair is None else (self.text, self.pair)

    @property
    def digest(self) -> str:
        """The same for equal examples only, to recognise them in a later run."""
        parts = [self.id, self.text, self.pair, self.label, repr(self.rationale)]
        if self.picture is not None:
            parts.append(self.picture.digest)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def read_data(
    path: str | Path,
    *,
    text: str = "text",
    label: str = "label",
    rationale: str | None = None,
    words_column: str | None = None,
    pair: str | None = None,
    image: str | None = None,
    split: str | None = None,
    examples: int | None = None,
    seed: int = 0,
    shuffle: bool = True,
    words: tuple[int, int | None] = (0, None),
) -> list[Example]:
    r"""Examples from a CSV, JSON-lines or Parquet file; ``text``, ``label`` … name its columns.

    The ``rationale`` column holds a list of 0/1, one for each word of ``words_column`` (without
    one: of the text, split at white space), or a list of [start, end] spans of characters. Only
    rows of one ``split`` and with a number of ``words`` between least and most are taken, and of
    these the first ``examples`` of a shuffled order that depends on the seed alone: a larger
    number takes the same examples and more.

    ``image`` names the column with pictures instead: their bytes, or the names of files, which are
    looked for beside the data; the rationale then is a mask (bytes of a PNG, or rows of 0/1).

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "few.csv"
    >>> _ = file.write_text("text,label\nwhat a mess,0\na wonderful film,1\n")
    >>> [(example.id, example.label) for example in read_data(file, shuffle=False)]
    [('0', 0), ('1', 1)]
    """
    _check(examples, seed)
    columns = _Columns(text, label, rationale, words_column, pair, image)
    table = read_table(path, columns.wanted)
    columns.check(table)
    numbers = _of_split(table, split)
    if image is None:
        numbers = _with_words(table, numbers, columns, words)
    if shuffle:
        order = np.random.default_rng(seed).permutation(len(numbers))
        numbers = [numbers[place] for place in order]
    return [columns.example(table, number) for number in numbers[:examples]]


def as_examples(data: DataOption, examples: int | None, seed: int) -> list[Example]:
    """Whatever holds the data as examples: a file, examples, or plain texts; the first of them."""
    _check(examples, seed)
    if isinstance(data, (str, Path)):
        return read_data(data, examples=examples, seed=seed)
    found = []
    for number, one in enumerate(data):
        if isinstance(one, Example):
            found.append(one)
        elif isinstance(one, str):
            found.append(Example(str(number), one))
        elif isinstance(one, tuple) and len(one) == 2:
            found.append(Example(str(number), *one))
        elif isinstance(one, Picture):
            found.append(Example(str(number), picture=one))
        else:
            raise PisteError(
                f"Data is a file, or a list of examples, texts, pairs or pictures, but "
                f"{shorten(one)} of type {type(one).__name__} came."
            )
    if not found:
        raise PisteError("The data is empty: give at least one text.")
    if len({example.id for example in found}) < len(found):
        raise PisteError("Two examples have the same id: give every example one of its own.")
    return found[:examples]


@dataclass(frozen=True)
class _Columns:
    """Which column holds what."""

    text: str
    label: str
    rationale: str | None
    words: str | None
    pair: str | None
    image: str | None = None

    @property
    def wanted(self) -> tuple[str, ...]:
        content = self.image or self.text
        names = (content, self.label, self.rationale, self.words, self.pair, SPLIT)
        return tuple(name for name in names if name)

    def check(self, table: Table) -> None:
        table.need(self.image or self.text, "text" if self.image is None else "pictures")
        if self.label != "label":  # the usual name may be missing, one that was chosen may not
            table.need(self.label, "label")
        for meaning in ("rationale", "words", "pair"):
            if getattr(self, meaning) is not None:
                table.need(getattr(self, meaning), meaning)

    def texts(self, table: Table, number: int) -> tuple[str, str | None]:
        row = table.rows[number]
        first = _text(row.get(self.text), self.text, table, number)
        if self.pair is None:
            return first, None
        return first, _text(row.get(self.pair), self.pair, table, number)

    def example(self, table: Table, number: int) -> Example:
        row = table.rows[number]
        split, place = row.get(SPLIT), f"Row {number} of {table.file!r}"
        cell = None if self.rationale is None else row.get(self.rationale)
        if self.image is not None:
            return Example(
                id=str(number),
                label=_label(row.get(self.label)),
                rationale=read_region(cell, place),
                split=None if split is None else str(split),
                picture=_picture(row.get(self.image), place, Path(table.file).parent),
            )
        text, pair = self.texts(table, number)
        rationale = None
        if self.rationale is not None:
            words = None if self.words is None else row.get(self.words)
            rationale = read_marks(cell, words, text, place)
        return Example(
            id=str(number),
            text=text,
            pair=pair,
            label=_label(row.get(self.label)),
            rationale=rationale,
            split=None if split is None else str(split),
        )


def _of_split(table: Table, split: str | None) -> list[int]:
    """Numbers of the rows of one split, or of all."""
    if split is None:
        return list(range(len(table.rows)))
    table.need(SPLIT, "split")
    chosen = [n for n, row in enumerate(table.rows) if str(row.get(SPLIT)) == split]
    if not chosen:
        there = dict.fromkeys(str(row.get(SPLIT)) for row in table.rows)
        raise PisteError(
            f"{table.file!r} has no split {split!r}: it has {shorten(', '.join(there), 200)}."
        )
    return chosen


def _with_words(
    table: Table, numbers: list[int], columns: _Columns, words: tuple[int, int | None]
) -> list[int]:
    """Those rows whose texts have a number of words within the bounds."""
    least, most = words
    if least < 0 or (most is not None and most < max(least, 1)):
        raise PisteError(
            f"words={words!r} is wrong: (least, most) with 0 ≤ least ≤ most is wanted."
        )
    chosen = []
    for number in numbers:
        texts = columns.texts(table, number)
        count = sum(len(text.split()) for text in texts if text is not None)
        if least <= count <= (math.inf if most is None else most):
            chosen.append(number)
    if not chosen:
        bounds = f"{least} or more" if most is None else f"{least} to {most}"
        raise PisteError(
            f"None of the {len(numbers)} texts in {table.file!r} has {bounds} words: choose other "
            "bounds."
        )
    return chosen


def _check(examples: object, seed: object) -> None:
    if examples is not None:
        check_count("examples", examples)
    check_count("seed", seed, least=0)


def _text(cell: object, column: str, table: Table, number: int) -> str:
    """A missing text is an empty one, which methods refuse by name, so that it is not lost."""
    if cell is None:
        return ""
    if not isinstance(cell, str):
        raise PisteError(
            f"Row {number} of {table.file!r} holds {shorten(cell)} in the column {column!r}: a "
            "text is wanted, so name the column that has the texts."
        )
    return cell


def _picture(cell: object, place: str, folder: Path) -> Picture:
    """A picture from its bytes, from what data sets keep of it, or from a file beside the data."""
    if isinstance(cell, Mapping):  # {"bytes": …, "path": …}
        cell = cell.get("bytes") or cell.get("path")
    if not isinstance(cell, (bytes, str)):
        raise PisteError(
            f"{place} holds {shorten(cell)} where a picture is wanted: its bytes, or the name of "
            "its file."
        )
    try:
        return Picture.of(folder / cell if isinstance(cell, str) else cell)
    except PisteError as problem:
        raise PisteError(f"{place}: {problem}") from problem


def _label(cell: Any) -> int | str | None:
    """A class by number where it is one, else by name."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, str) and cell.isascii() and cell.isdigit():
        return int(cell)
    whole = isinstance(cell, int) or (isinstance(cell, float) and cell.is_integer())
    return int(cell) if whole else str(cell)
