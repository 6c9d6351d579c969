"""What a terminal can show, and what it may be shown."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from rich.console import Console

# A terminal's ground may be light or dark, so strength is told by saturation, not by lightness.
GROUNDS = {
    1: ("#8fa3b8", "#5d9ad6", "#1f78d1"),
    -1: ("#b8a38f", "#dc9350", "#ea6a00"),
}
_BASIC = {1: "black on cyan", -1: "black on yellow"}
_STEPS = (0.12, 0.35, 0.7)
"""Strengths at which the three grounds begin."""
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class TerminalCapabilities:
    """What a console can show: no colours at all, sixteen of them, or every shade."""

    plain: bool
    basic: bool

    @staticmethod
    def of(console: Console) -> TerminalCapabilities:
        return TerminalCapabilities(
            plain=console.color_system is None or console.no_color,
            basic=console.color_system in ("standard", "windows"),
        )

    def style(self, strength: float) -> str:
        """The style of a text of this strength; none without colours."""
        steps = step(strength)
        if not steps or self.plain:
            return ""
        sign = 1 if strength > 0 else -1
        if self.basic:  # 16 colours have no shades: mark the clear ones
            return _BASIC[sign] if steps > 1 else ""
        ground = GROUNDS[sign][steps - 1]
        return f"{'bold ' if steps == 3 else ''}#000000 on {ground}"


def step(strength: float) -> int:
    """0 for an unmarked unit, up to 3."""
    return int(np.searchsorted(_STEPS, abs(strength), side="right"))


def printable(text: str) -> str:
    """Without control characters and direction overrides: a text must not steer the terminal."""
    return _STEERING.sub("�", text)
