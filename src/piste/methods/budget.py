"""When a method that asks in rounds has asked enough."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from piste.types import Floats

FIRST_ROUND = 128
SETTLED_SCORES = 0.98
SETTLED_R2 = 0.02
LEAST_ROUND = 8


@dataclass
class Budget:
    """How many questions and how much time there are, and what the rounds so far have shown.

    >>> Budget(most=100).next_round(asked=64)
    36
    """

    most: int
    seconds: float | None = None
    began: float = field(default_factory=time.perf_counter)
    fitting: float = 0.0
    """What the last fit took."""
    stopped: str | None = None
    """Why there is no further round."""
    _scores: Floats | None = None
    _r2: float = float("nan")

    def next_round(self, asked: int) -> int:
        """Questions for the next round: as many again, as far as number and time allow."""
        return max(min(asked, self.most - asked, self._affordable(asked)), 0)

    def look(self, scores: Floats, r2: float, asked: int) -> str | None:
        """A reason to stop, or None; what was found is kept for the next look."""
        self.stopped = self._reason(scores, r2, asked)
        self._scores, self._r2 = scores, r2
        return self.stopped

    def _affordable(self, asked: int) -> int:
        """Questions that time is left for, when another fit must follow them."""
        if self.seconds is None:
            return self.most
        spent = time.perf_counter() - self.began
        each = max((spent - self.fitting) / max(asked, 1), 1e-9)
        return int((self.seconds - spent - 1.5 * self.fitting) / each)

    def _reason(self, scores: Floats, r2: float, asked: int) -> str | None:
        if self._scores is not None:
            # Not of ranks: the order of the many units that hardly count never settles.
            moving = min(np.ptp(scores), np.ptp(self._scores)) > 0
            agreement = float(np.corrcoef(scores, self._scores)[0, 1]) if moving else 1.0
            if agreement >= SETTLED_SCORES and r2 - self._r2 < SETTLED_R2:
                return f"scores settled (correlation {agreement:.3f} between rounds)"
        if asked >= self.most:
            return f"cap of {self.most} questions reached"
        if self._affordable(asked) < LEAST_ROUND:
            return f"another round would take longer than {self.seconds:g} seconds in all"
        return None
