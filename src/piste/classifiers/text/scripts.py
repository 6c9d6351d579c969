"""Scripts that put no blanks between words: where a unit may begin inside them.

One rule per script, without a dictionary:

- Chinese and Japanese: every character.
- Thai and Lao: a consonant with the vowels and marks written around it. Vowels that are written
  before their consonant (เ แ โ ใ ไ) begin the unit, vowels behind it (ะ า ำ) end it.
- Khmer: a consonant with those stacked below it, its vowels and marks.
- Burmese: a written syllable. A consonant that is stacked or killed (asat) ends the one before.

Digits of one script stay together, and a combining mark stays with the character before it.
"""

from __future__ import annotations

import re
import unicodedata

_CJK = (
    r"\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    r"\U00020000-\U0003ffff"
)
_CLUSTERED = (
    r"\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17dd\u17e0-\u17e9\ua9e0-\ua9ff\uaa60-\uaa7f"
)
_EACH = re.compile(f"[{_CJK}]")
_CLUSTER = re.compile(f"[{_CLUSTERED}]")
UNSPACED = re.compile(f"[{_CJK}{_CLUSTERED}]")
"""A character of a script that puts no blanks between words."""

_VOWELS_BEFORE = frozenset("เแโใไເແໂໃໄ")
_BEHIND = frozenset("ะาำๅฯๆະາຳຽໆ")
"""Vowels behind their consonant, and signs that repeat or shorten what stands before them."""
_STACKS = frozenset("\u17d2\u1039")
"""Khmer coeng and Burmese virama: the next consonant is written below this one."""
_BURMESE_FINAL = re.compile("[\u1000-\u1021\u103f\u1075-\u1081](?:\u1037?\u103a|\u1039)")


def unit_begins(text: str, place: int) -> bool | None:
    """Whether a unit begins at a place inside a run of letters; None if no such script is there.

    >>> text = "ภาษาไทย"
    >>> [place for place in range(1, len(text)) if unit_begins(text, place)]
    [2, 4, 6]
    >>> unit_begins("film", 2) is None, unit_begins("電影", 1)
    (True, True)
    """
    before, after = text[place - 1], text[place]
    if not (UNSPACED.match(before) or UNSPACED.match(after)):
        return None
    if unicodedata.category(after)[0] == "M":
        return False
    if _EACH.match(before) or _EACH.match(after):
        return True
    if before in _VOWELS_BEFORE or before in _STACKS or after in _BEHIND:
        return False
    if before.isdigit() and after.isdigit():
        return not (_CLUSTER.match(before) and _CLUSTER.match(after))
    return _BURMESE_FINAL.match(text, place) is None
