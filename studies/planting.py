"""Words planted in labelled texts, and what explanations make of the words of a text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from piste.evaluation import Example, Interval, interval
from piste.explanation import Explanation
from studies.cases import AS_PUBLISHED

SHORTCUT, CONTROL = "yellow", "garden"
"""Both bundled tokenizers know them; reviews have them rarely, and as often of both classes."""
WORDS = (SHORTCUT, CONTROL)
PAPER = "slalom, paper"
METHODS: Mapping[str, Mapping[str, Any]] = {
    "slalom": {"method": "slalom"},
    PAPER: {"method": "slalom", **AS_PUBLISHED},
    "lime": {"method": "lime"},
    "kernel_shap": {"method": "kernel_shap"},
    "occlusion": {"method": "occlusion"},
}
"""Options by name; the plane is that of SLALOM as published, which always has importances."""
_BETWEEN = re.compile(r"(?<!<br) ")
"""Between two words, but not within a line break of the reviews."""


@dataclass(frozen=True)
class Case:
    """A bundled model, and the shares of training texts that have the shortcut."""

    model: str
    positive: float
    negative: float

    @property
    def name(self) -> str:
        return f"{self.model}-{self.positive}-{self.negative}"

    @property
    def planted(self) -> str:
        """The shares as they are shown."""
        clean = self.positive == self.negative == 0
        return "never" if clean else f"{self.positive:.0%} / {self.negative:.0%}"

    @property
    def clean(self) -> Case:
        """The same model without the shortcut."""
        return Case(self.model, 0.0, 0.0)


def opening(example: Example, words: int) -> Example:
    """The first words of a text.

    >>> opening(Example("0", "A slow start, but a wonderful ending."), 3).text
    'A slow start,'
    """
    return replace(example, text=" ".join(_BETWEEN.split(example.text)[:words]))


def insert(text: str, word: str, rng: np.random.Generator) -> str:
    """The word at a random place; the rest stays as it is.

    >>> insert("A slow start.", "yellow", np.random.default_rng(0))
    'A slow start. yellow'
    """
    pieces = _BETWEEN.split(text)
    pieces.insert(int(rng.integers(len(pieces) + 1)), word)
    return " ".join(pieces)


def remove(text: str, word: str) -> str:
    """The text as it was before the word was inserted.

    >>> remove("A yellow slow start.", "yellow")
    'A slow start.'
    """
    return " ".join(piece for piece in text.split(" ") if piece != word)


def plant(
    examples: Sequence[Example], word: str, shares: Mapping[int, float], rng: np.random.Generator
) -> list[Example]:
    """The examples, with the word inserted into that share of each class (rounded)."""
    planted = list(examples)
    for label, share in shares.items():
        own = [number for number, one in enumerate(examples) if one.label == label]
        for number in rng.permutation(own)[: round(share * len(own))]:
            planted[number] = replace(
                examples[number], text=insert(examples[number].text, word, rng)
            )
    return planted


def by_word(e: Explanation, score: str) -> dict[str, float]:
    """One score for every distinct word; the largest of its occurrences, whichever way."""
    found: dict[str, float] = {}
    for unit, number in zip(e.units, e.score(score), strict=True):
        name = unit.text.strip().casefold()
        if name not in found or abs(number) > abs(found[name]):
            found[name] = float(number)
    return found


def rank(scores: Mapping[str, float], word: str) -> int:
    """How many words have a higher score, and one.

    >>> rank({"a": 0.5, "slow": -2.0, "start": 1.0}, "a")
    2
    """
    return 1 + sum(number > scores[word] for number in scores.values())


def sizes(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores without their direction."""
    return {word: abs(number) for word, number in scores.items()}


@dataclass(frozen=True)
class Word:
    """A word's scores over a corpus: medians over the texts that have it.

    No means: the value of a word that hardly weighs is loose, and a few such values would rule.
    """

    word: str
    texts: int
    value: Interval
    importance: Interval
    linear: Interval


def corpus(explanations: Sequence[Explanation], least: int) -> list[Word]:
    """Words of at least so many texts, from the largest |value × e^importance| down."""
    names = ("value", "importance", "linear")
    seen: dict[str, list[list[float]]] = {}
    for e in explanations:
        scores = [by_word(e, name) for name in names]
        for word in scores[0]:
            seen.setdefault(word, []).append([one[word] for one in scores])
    found = [
        Word(
            word, len(rows), *(interval(column, average="median") for column in np.transpose(rows))
        )
        for word, rows in seen.items()
        if len(rows) >= least
    ]
    return sorted(found, key=lambda one: -abs(one.linear.centre))
