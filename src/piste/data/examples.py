"""The examples an evaluation runs on: texts with labels and human rationales, chosen by seed."""

from __future__ import annotations

import hashlib
import json
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from piste.data.rationales import Marks, Region, read_marks, read_region
from piste.data.tables import (
    TableFile,
    TableRow,
    check_columns,
    need_columns,
    read_rows,
    table_files,
)
from piste.errors import PisteError, shorten
from piste.image import ImageInput
from piste.subject import Input
from piste.validation import check_count

SPLIT = "split"
"""The column that says which part of the data a row belongs to."""

DataOption: TypeAlias = "str | Path | Sequence[Example] | Sequence[Input]"


@dataclass(frozen=True)
class Example:
    """One text, a pair of texts or an image, and what is known about it."""

    id: str
    """Its number in the file or folder, counted from 0 before anything was left out."""
    text: str = ""
    pair: str | None = None
    label: int | str | None = None
    rationale: Marks | Region | None = None
    split: str | None = None
    image: ImageInput | None = None

    @property
    def input(self) -> Input:
        if self.image is not None:
            return self.image
        return self.text if self.pair is None else (self.text, self.pair)

    @property
    def digest(self) -> str:
        """The same for equal examples only, to recognise them in a later run."""
        parts = [self.id, self.text, self.pair, self.label, repr(self.rationale)]
        if self.image is not None:
            parts.append(self.image.digest)
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
    r"""Examples from a table; ``text``, ``label`` … name its columns.

    The table is a CSV, JSON-lines, Parquet or Arrow file, or a folder of such files. A row that
    can't be read is refused. Rows are read one after the other: only those taken are kept.

    The ``rationale`` column holds a list of 0/1, one for each word of ``words_column`` (without
    one: of the text, split at white space), or a list of [start, end] spans of characters. Only
    rows of one ``split`` and with a number of ``words`` between least and most are taken, and of
    these the first ``examples`` of a shuffled order that depends on the seed alone: a larger
    number takes the same examples and more.

    ``image`` names the column with images instead: their bytes, or the names of files, which are
    looked for beside the data; the rationale then is a mask (bytes of a PNG, or rows of 0/1).

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "few.csv"
    >>> _ = file.write_text("text,label\nwhat a mess,0\na wonderful film,1\n")
    >>> [(example.id, example.label) for example in read_data(file, shuffle=False)]
    [('0', 0), ('1', 1)]
    """
    _check(examples, seed)
    _check_words(words)
    columns = _Columns(text, label, rationale, words_column, pair, image)
    files = table_files(path)
    check_columns(files, columns.needed(split))
    numbers = _suitable(path, files, columns, split, words)
    if shuffle:
        numbers = numbers[np.random.default_rng(seed).permutation(len(numbers))]
    chosen = numbers[:examples].tolist()
    left, found = set(chosen), dict[int, Example]()
    for number, row in enumerate(read_rows(files, columns.wanted, bad_rows="refuse")):
        if number in left:
            found[number] = columns.example(number, row)
            left.remove(number)
        if not left:
            break
    return [found[number] for number in chosen]


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
        elif isinstance(one, ImageInput):
            found.append(Example(str(number), image=one))
        else:
            raise PisteError(
                f"Expected a file, or a list of examples, texts, pairs or images, got "
                f"{shorten(one)} of type {type(one).__name__}."
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

    def needed(self, split: str | None) -> tuple[str, ...]:
        """Those that must be there: the label's usual name need not, one that was chosen must."""
        names = [self.image or self.text, self.rationale, self.words, self.pair]
        names.append(None if self.label == "label" else self.label)
        names.append(None if split is None else SPLIT)
        return tuple(name for name in names if name)

    def example(self, number: int, row: TableRow) -> Example:
        split, marks = _cell(row, SPLIT), _cell(row, self.rationale)
        known: dict[str, Any] = {
            "id": str(number),
            "label": _label(_cell(row, self.label)),
            "split": None if split is None else str(split),
        }
        if self.image is not None:
            region = read_region(marks, row.place)
            return Example(image=_image(row, self.image), rationale=region, **known)
        text = _text(row, self.text)
        pair = None if self.pair is None else _text(row, self.pair)
        rationale = None
        if self.rationale is not None:
            rationale = read_marks(marks, _cell(row, self.words), text, row.place)
        return Example(text=text, pair=pair, rationale=rationale, **known)


def _suitable(
    path: str | Path,
    files: Sequence[TableFile],
    columns: _Columns,
    split: str | None,
    words: tuple[int, int | None],
) -> NDArray[np.int64]:
    """The numbers of rows of the split whose texts have so many words. No more of them is kept."""
    least, most = words[0], math.inf if words[1] is None else words[1]
    texts = () if columns.image else (columns.text, *filter(None, [columns.pair]))
    names: dict[str, None] = {}
    splits: dict[str, None] = {}
    wrong: PisteError | None = None
    rows = of_split = 0
    chosen = array("q")
    for rows, row in enumerate(read_rows(files, (*texts, SPLIT), bad_rows="refuse"), start=1):
        names.update(dict.fromkeys(row.cells))
        if split is not None:
            splits[own := str(_cell(row, SPLIT))] = None
            if own != split:
                continue
        of_split += 1
        try:
            count = sum(len(_text(row, name).split()) for name in texts)
        except PisteError as problem:
            wrong = wrong or problem  # a missing column is told first
            continue
        if columns.image or least <= count <= most:
            chosen.append(rows - 1)
    if not rows:
        raise PisteError(f"{str(path)!r} has no rows: a table with at least one is expected.")
    if all(file.columns() is None for file in files):
        need_columns(str(path), names, columns.needed(split))
    if split is not None and not of_split:
        there = shorten(", ".join(splits), 200)
        raise PisteError(f"{str(path)!r} has no split {split!r}: it has {there}.")
    if wrong is not None:
        raise wrong
    if not chosen:
        bounds = f"{least} or more" if words[1] is None else f"{least} to {most}"
        raise PisteError(
            f"None of the {of_split} texts in {str(path)!r} has {bounds} words: choose other "
            "bounds."
        )
    return np.array(chosen)


def _check_words(words: tuple[int, int | None]) -> None:
    least, most = words
    if least < 0 or (most is not None and most < max(least, 1)):
        raise PisteError(f"words: expected (least, most) with 0 ≤ least ≤ most, got {words!r}.")


def _check(examples: object, seed: object) -> None:
    if examples is not None:
        check_count("examples", examples)
    check_count("seed", seed, least=0)


def _cell(row: TableRow, column: str | None) -> Any:
    """None where nothing stands; CSV files have no other sign for it than an empty cell."""
    cell = None if column is None else row.cells.get(column)
    return None if cell == "" else cell


def _text(row: TableRow, column: str) -> str:
    """A missing text is an empty one, which methods refuse by name, so that it is not lost."""
    cell = row.cells.get(column)
    if cell is None:
        return ""
    if not isinstance(cell, str):
        raise PisteError(
            f"{row.place} holds {shorten(cell)} in the column {column!r}: a text is expected, so "
            "name the column that has the texts."
        )
    return cell


def _image(row: TableRow, column: str) -> ImageInput:
    """An image from its bytes, from what data sets keep of it, or from a file beside the data."""
    cell = _cell(row, column)
    if isinstance(cell, Mapping):  # {"bytes": …, "path": …}
        cell = cell.get("bytes") or cell.get("path")
    if not isinstance(cell, (bytes, str)):
        raise PisteError(
            f"{row.place}: expected the bytes of an image, or the name of its file, got "
            f"{shorten(cell)}."
        )
    try:
        return ImageInput.of(row.file.path.parent / cell if isinstance(cell, str) else cell)
    except PisteError as problem:
        raise PisteError(f"{row.place}: {problem}") from problem


def _label(cell: Any) -> int | str | None:
    """A class by number where it is one, else by name."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, str) and cell.isascii() and cell.isdigit():
        return int(cell)
    whole = isinstance(cell, int) or (isinstance(cell, float) and cell.is_integer())
    return int(cell) if whole else str(cell)
