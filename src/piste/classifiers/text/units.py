"""Where words, sentences and paragraphs begin and end, in a text and over a tokenizer's tokens.

Scripts that put no blanks between words have one rule each, without a dictionary:

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
from bisect import bisect_right
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

Span = tuple[int, int]

# A word keeps single punctuation between letters (don't, well-made, 3.5); a run of punctuation
# stands alone, so that "good...but" is three units and not one.
_PLAIN_WORD = re.compile(r"\w+(?:[^\w\s]\w+)*|[^\w\s]+")
# The look behind keeps this and sentence ends linear: no run is tried from its middle again.
_CONTRACTION = re.compile(r"(?<!\w)\w+(?:['’]\w+)+")
_SENTENCE_END = re.compile(
    r"""(?<![.…])[.!?…]+["'”’)\]]*(?=\s|<br|$)|[。！？｡।॥።។။]+"""
    r"""|(?<!\s)(?:\s*<br\s*/?>\s*)+|\n\s*\n"""
)
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*|<br\s*/?>(?:\s*<br\s*/?>)+\s*", re.IGNORECASE)
_LINE_END = re.compile(r"\n\s*|<br\s*/?>\s*", re.IGNORECASE)
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|e\.g|i\.e|cf|no|vol|fig|approx|inc|ltd)"
    r"|\b[A-Za-z](?:\.[A-Za-z])*)\.$",
    re.IGNORECASE,
)
_LONGEST_ABBREVIATION = 40
"""Signs before a full stop that tell whether it ends a sentence."""

_CJK = (
    r"\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    r"\U00020000-\U0003ffff"
)
_CLUSTERED = (
    r"\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17dd\u17e0-\u17e9\ua9e0-\ua9ff\uaa60-\uaa7f"
)
_EACH = re.compile(f"[{_CJK}]")
_CLUSTER = re.compile(f"[{_CLUSTERED}]")
_UNSPACED = re.compile(f"[{_CJK}{_CLUSTERED}]")
"""A character of a script that puts no blanks between words."""

_VOWELS_BEFORE = frozenset("เแโใไເແໂໃໄ")
_BEHIND = frozenset("ะาำๅฯๆະາຳຽໆ")
"""Vowels behind their consonant, and signs that repeat or shorten what stands before them."""
_STACKS = frozenset("\u17d2\u1039")
"""Khmer coeng and Burmese virama: the next consonant is written below this one."""
_BURMESE_FINAL = re.compile("[\u1000-\u1021\u103f\u1075-\u1081](?:\u1037?\u103a|\u1039)")


@dataclass(frozen=True, slots=True)
class Token:
    """A model token and where it stands. Fixed tokens belong to the frame, not to the text."""

    id: int
    type: int
    start: int
    end: int
    segment: int
    word: int | None
    fixed: bool


def word_spans(text: str) -> list[Span]:
    """Words of a plain text, punctuation apart.

    >>> [ "Don't stop...now."[a:b] for a, b in word_spans("Don't stop...now.") ]
    ["Don't", 'stop', '...', 'now', '.']
    """
    spans: list[Span] = []
    for match in _PLAIN_WORD.finditer(_marks_as_letters(text)):
        if not _UNSPACED.search(text, *match.span()):
            spans.append(match.span())
            continue
        start = match.start()
        for place in range(match.start() + 1, match.end()):
            if unit_begins(text, place):
                spans.append((start, place))
                start = place
        spans.append((start, match.end()))
    return spans


def _marks_as_letters(text: str) -> str:
    """Combining marks belong to the letter before them; regular expressions don't know that."""
    return "".join("a" if _is_mark(c) else c for c in text)


def unit_begins(text: str, place: int) -> bool | None:
    """Whether a unit begins at a place inside a run of letters; None if no such script is there.

    >>> text = "ภาษาไทย"
    >>> [place for place in range(1, len(text)) if unit_begins(text, place)]
    [2, 4, 6]
    >>> unit_begins("film", 2) is None, unit_begins("電影", 1)
    (True, True)
    """
    before, after = text[place - 1], text[place]
    if not (_UNSPACED.match(before) or _UNSPACED.match(after)):
        return None
    if _is_mark(after):
        return False
    if _EACH.match(before) or _EACH.match(after):
        return True
    if before in _VOWELS_BEFORE or before in _STACKS or after in _BEHIND:
        return False
    if before.isdigit() and after.isdigit():
        return not (_CLUSTER.match(before) and _CLUSTER.match(after))
    return _BURMESE_FINAL.match(text, place) is None


def sentence_spans(text: str) -> list[Span]:
    """Sentences of a plain text; common abbreviations and initials do not end one.

    >>> text = "Mr. Bean is fun. Is it long? No!"
    >>> [text[a:b] for a, b in sentence_spans(text)]
    ['Mr. Bean is fun.', 'Is it long?', 'No!']
    """
    spans: list[Span] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        before = text[max(start, match.end() - _LONGEST_ABBREVIATION) : match.end()]
        if match.group() == "." and _ABBREVIATION.search(before):
            continue
        spans += _stripped(text, start, match.end())
        start = match.end()
    return spans + _stripped(text, start, len(text))


def paragraph_spans(text: str) -> list[Span]:
    r"""Paragraphs of a plain text: what blank lines or ``<br><br>`` part.

    Where there are none of them, every line is a paragraph.

    >>> text = "One.\nStill one.\n\nTwo."
    >>> [text[a:b] for a, b in paragraph_spans(text)]
    ['One.\nStill one.', 'Two.']
    >>> [a for a, _ in paragraph_spans("A line.\nAnother.")]
    [0, 8]
    """
    return _parted(text, _BLANK_LINE) or _parted(text, _LINE_END) or _stripped(text, 0, len(text))


def _parted(text: str, separator: re.Pattern[str]) -> list[Span]:
    """Pieces with their separators; nothing if there is only one piece."""
    spans: list[Span] = []
    start = seen = 0
    for match in separator.finditer(text):
        if text[seen : match.start()].strip():  # what leads the text belongs to its first piece
            spans += _stripped(text, start, match.end())
            start = match.end()
        seen = match.end()
    spans += _stripped(text, start, len(text))
    return spans if len(spans) > 1 else []


def _stripped(text: str, start: int, end: int) -> list[Span]:
    piece = text[start:end]
    if not piece.strip():
        return []
    return [(start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip())))]


def group_tokens(tokens: Sequence[Token], texts: Sequence[str], units: str) -> list[list[int]]:
    """Positions of the tokens of each unit, in order; fixed tokens belong to none."""
    free = [position for position, token in enumerate(tokens) if not token.fixed]
    if units == "tokens":
        return [[position] for position in free]
    words = _words(tokens, free, texts)
    return words if units == "words" else _gathered(tokens, words, texts, PLAIN_SPANS[units])


def _words(tokens: Sequence[Token], free: Sequence[int], texts: Sequence[str]) -> list[list[int]]:
    contractions = [
        {inner for m in _CONTRACTION.finditer(text) for inner in range(m.start() + 1, m.end())}
        for text in texts
    ]
    groups: list[list[int]] = []
    for run in _runs(free):
        words: list[list[int]] = []
        blanks: list[int] = []  # tokens that are only white space wait for the word they lead to
        for position in run:
            token = tokens[position]
            text = texts[token.segment]
            if token.end > token.start and not text[token.start : token.end].strip():
                blanks.append(position)
                continue
            beside = words and not blanks
            inner = contractions[token.segment]
            if beside and _same_word(tokens[words[-1][-1]], token, text, inner):
                words[-1].append(position)
            else:
                words.append([*blanks, position])
            blanks = []
        if blanks and words:
            words[-1] += blanks
        elif blanks:
            words.append(blanks)
        groups += words
    return groups


def _runs(positions: Sequence[int]) -> list[list[int]]:
    """Runs of neighbours: fixed tokens in between part them."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and runs[-1][-1] == position - 1:
            runs[-1].append(position)
        else:
            runs.append([position])
    return runs


def _same_word(left: Token, right: Token, text: str, contractions: Container[int]) -> bool:
    if left.segment != right.segment or right.start > left.end:
        return False
    if right.start < left.end or right.start == right.end:
        return True  # pieces of one character, or a piece that covers none of its own
    if right.start in contractions:
        return True
    begins = unit_begins(text, right.start)
    if begins is not None:
        return not begins
    before, after = text[right.start - 1], text[right.start]
    if left.word != right.word:
        # Some tokenizers part a word at every combining mark.
        return (_is_mark(before) and _is_wordlike(after)) or _is_mark(after)
    # One word id may cover "ending." or even a whole text: letters and punctuation part here.
    return _is_wordlike(before) == _is_wordlike(after)


def _is_wordlike(character: str) -> bool:
    return character.isalnum() or character == "_" or _is_mark(character)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


def _gathered(
    tokens: Sequence[Token],
    words: Sequence[Sequence[int]],
    texts: Sequence[str],
    spans: Callable[[str], list[Span]],
) -> list[list[int]]:
    """Words that lie in one span of the text, together."""
    ends = [[end for _, end in spans(text)] for text in texts]
    groups: list[list[int]] = []
    last: tuple[int, int] | None = None
    for word in words:
        token = tokens[word[-1]]
        place = token.segment, bisect_right(ends[token.segment], token.start)
        beside = bool(groups) and word[0] == groups[-1][-1] + 1
        if beside and place == last:
            groups[-1] += word
        else:
            groups.append(list(word))
        last = place
    return groups


PLAIN_SPANS: dict[str, Callable[[str], list[Span]]] = {
    "words": word_spans,
    "sentences": sentence_spans,
    "paragraphs": paragraph_spans,
}
"""What cuts a plain text, by the kind of unit."""
