"""Another text with the same meaning: contractions, spellings and words that can be exchanged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NOT: tuple[str, ...] = (
    *("do", "does", "did", "is", "are", "was", "were", "has", "have", "had"),
    *("could", "would", "should", "must", "need"),
)

# Exchanged in both directions.
_PAIRS: tuple[tuple[str, str], ...] = (
    *((f"{verb}n't", f"{verb} not") for verb in _NOT),
    ("can't", "cannot"),
    ("won't", "will not"),
    ("film", "movie"),
    ("films", "movies"),
    ("okay", "ok"),
    ("percent", "per cent"),
    ("mum", "mom"),
    *(
        (f"{stem}our{end}", f"{stem}or{end}")
        for stem in ("col", "hon", "hum", "flav", "fav", "rum", "behavi", "neighb")
        for end in ("", "s")
    ),
    ("favourite", "favorite"),
    ("favourites", "favorites"),
    *(
        (f"{stem}is{end}", f"{stem}iz{end}")
        for stem in ("real", "organ", "recogn", "apolog", "summar", "critic")
        for end in ("e", "es", "ed", "ing")
    ),
    *((f"{stem}re", f"{stem}er") for stem in ("theat", "cent")),
    ("theatres", "theaters"),
    ("grey", "gray"),
    ("cosy", "cozy"),
    ("defence", "defense"),
    ("offence", "offense"),
    ("analyse", "analyze"),
    ("travelling", "traveling"),
    ("travelled", "traveled"),
    ("sceptical", "skeptical"),
    ("jewellery", "jewelry"),
    ("moustache", "mustache"),
    ("pyjamas", "pajamas"),
)
# Exchanged in this direction only: the way back would not always be English.
_ONE_WAY: tuple[tuple[str, str], ...] = (
    ("i'm", "i am"),
    *((f"{who}'re", f"{who} are") for who in ("we", "you", "they")),
    *((f"{who}'ve", f"{who} have") for who in ("i", "we", "you", "they")),
    *((f"{who}'ll", f"{who} will") for who in ("i", "we", "you", "they", "he", "she", "it")),
    ("whilst", "while"),
)
SWAPS: dict[str, str] = dict(_PAIRS) | {b: a for a, b in _PAIRS} | dict(_ONE_WAY)

_KNOWN = re.compile(
    r"(?<![\w'’])("
    + "|".join(
        re.escape(known).replace("'", "['’]").replace(r"\ ", r"\s+")
        for known in sorted(SWAPS, key=len, reverse=True)
    )
    + r")(?![\w'’])",
    re.IGNORECASE,
)
_BLANK = re.compile(r"(?<=\S) (?=\S)")


@dataclass(frozen=True)
class Paraphrase:
    """A text and what was exchanged in it: (start, end) of the original → other words."""

    original: str
    edits: tuple[tuple[int, int, str], ...]

    @property
    def text(self) -> str:
        pieces, place = [], 0
        for start, end, other in self.edits:
            pieces += [self.original[place:start], other]
            place = end
        return "".join([*pieces, self.original[place:]])

    def moved(self, start: int, end: int) -> tuple[int, int] | None:
        """Where a stretch of the original stands now; None if something in it was exchanged."""
        if any(first < end and start < last for first, last, _ in self.edits):
            return None
        shift = sum(len(new) - (last - first) for first, last, new in self.edits if last <= start)
        return start + shift, end + shift


def swap(text: str) -> Paraphrase:
    """Everything exchanged that can be; if no word can, a blank in the middle is doubled.

    >>> swap("I don't like this film.").text
    'I do not like this movie.'
    >>> swap("How dull it is").text
    'How dull  it is'
    >>> swap("Dull").edits
    ()
    """
    edits = tuple(_edits(text))
    blanks = [found.start() for found in _BLANK.finditer(text)]
    if not edits and blanks:
        place = blanks[len(blanks) // 2]
        edits = ((place, place, " "),)
    return Paraphrase(text, edits)


def _edits(text: str) -> Iterator[tuple[int, int, str]]:
    for found in _KNOWN.finditer(text):
        words = found[1]
        plain = " ".join(words.lower().replace("’", "'").split())
        yield found.start(1), found.end(1), _cased(SWAPS[plain], words)


def _cased(new: str, old: str) -> str:
    """The new words with capitals where the old ones had them."""
    letters = [letter for letter in old if letter.isalpha()]
    if len(letters) > 1 and all(letter.isupper() for letter in letters):
        return new.upper()
    return new[0].upper() + new[1:] if old[0].isupper() else new
