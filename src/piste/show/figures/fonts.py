"""Fonts for figures: units may be written in any script, and contain signs no font has."""

from __future__ import annotations

import functools

from matplotlib import font_manager

# Asked for only where installed: matplotlib complains of every family it can't find.
_FALLBACKS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Hiragino Sans", "Microsoft YaHei",
    "WenQuanYi Zen Hei", "Malgun Gothic", "Noto Sans Arabic", "Noto Sans Devanagari",
    "Noto Emoji", "Segoe UI Emoji", "Segoe UI Symbol", "Arial Unicode MS",
)  # fmt: skip
_UNSEEN = {"\ufe0e", "\ufe0f", "\u200b", "\u200c", "\u200d", "\ufeff"}
MISSING = "□"


@functools.cache
def families() -> list[str]:
    """Families to write in: each sign is taken from the first font that has it."""
    installed = set(font_manager.fontManager.get_font_names())
    return ["DejaVu Sans", *(name for name in _FALLBACKS if name in installed)]


@functools.cache
def _known() -> frozenset[int]:
    """All signs the families have together."""
    codes: set[int] = set()
    for family in families():
        font = font_manager.get_font(font_manager.findfont(family))
        codes.update(font.get_charmap())
    return frozenset(codes)


def writable(text: str) -> str:
    """The text with a box for every sign no installed font has, and no control characters.

    >>> writable("plain")
    'plain'
    """
    if text.isascii() and text.isprintable():
        return text
    known = _known()
    return "".join(
        sign if ord(sign) in known and sign.isprintable() else MISSING
        for sign in text
        if sign not in _UNSEEN
    )
