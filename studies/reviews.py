"""Labelled reviews: made-up ones that come with the package, and those of a data file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from piste.concepts import sentences
from piste.data.rationales import Marks
from piste.errors import PisteError, need
from piste.evaluation import Example

LABELS = ("negative", "positive")
_OPINIONS = ("blame", "praise")
"""Whose sentences make a review's label."""
_FACTS = ("acting", "everyday", "music")


def made_up(count: int, seed: int = 0) -> list[Example]:
    """Short reviews, half of them positive: two opinions among two facts.

    The words that only one kind of opinion has are marked, as people would mark them.

    >>> review = made_up(2)[1]
    >>> review.label
    1
    >>> review.text[:65]
    'It was a delight, and I smiled all day. He plays the saxophone in'
    """
    rng = np.random.default_rng(seed)
    opinions = [sentences(name) for name in _OPINIONS]
    facts = [sentence for name in _FACTS for sentence in sentences(name)]
    telling = _telling_words()
    found = []
    for number in range(count):
        label = number % 2
        chosen = [*rng.choice(opinions[label], 2, replace=False), *rng.choice(facts, 2)]
        text = " ".join(map(str, rng.permutation(chosen)))
        words = text.split()
        marks = tuple(_bare(word) in telling for word in words)
        found.append(Example(str(number), text, label=label, rationale=Marks(tuple(words), marks)))
    return found


def _telling_words() -> set[str]:
    """Words that one kind of opinion has and neither the other kind nor any fact."""
    blame, praise = ({*map(_bare, " ".join(sentences(name)).split())} for name in _OPINIONS)
    facts = {_bare(word) for name in _FACTS for word in " ".join(sentences(name)).split()}
    return (blame ^ praise) - facts


def _bare(word: str) -> str:
    return re.sub(r"\W", "", word).lower()


def balanced(path: Path, split: str, limit: int | None, seed: int) -> list[Example]:
    """Texts of a split of a Parquet file, each once, at most ``limit``, as many of every class."""
    pandas: Any = need("pandas", "tables", "Reading labelled texts")
    table = pandas.read_parquet(path, columns=["text", "label", "split"])
    there = sorted(map(str, table["split"].unique()))
    table = table[table["split"] == split].drop_duplicates("text")
    if table.empty:
        raise PisteError(f"{path.name} has no split {split!r}: expected one of {', '.join(there)}.")
    if limit is not None:
        share = limit // table["label"].nunique()
        groups = [group for _, group in table.groupby("label")]
        parts = [group.sample(min(share, len(group)), random_state=seed) for group in groups]
        table = pandas.concat(parts)
    rows = zip(table.index, table["text"], table["label"], strict=True)
    return [Example(str(number), text, label=int(label)) for number, text, label in rows]
