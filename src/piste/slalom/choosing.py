"""Which of many possible questions would say most: those whose answers are least certain."""

from __future__ import annotations

from typing import Any

import numpy as np

from piste.slalom.family import Point, Questions
from piste.slalom.solver import Posterior
from piste.types import Ints


def most_uncertain(posterior: Posterior, counts: Any, count: int) -> Ints:
    """Rows of ``counts`` (questions × types) to ask, one after the other.

    Each is the one whose answer has the largest predictive variance J C Jᵀ, after what the
    answers to those before it will have taken away from the covariance C.
    """
    asked = Questions(counts)
    point = Point(asked, posterior.layout, posterior.theta)
    moves = np.asarray(point.jacobian() @ posterior.factor)
    logs = np.log(np.maximum(asked.sizes, 1.0))
    noise = posterior.noise.variances(logs, point.slope)[:, 0]
    variances = np.einsum("ij,ij->i", moves, moves)
    chosen: list[int] = []
    for _ in range(min(count, len(variances))):
        best = int(np.argmax(variances))
        chosen.append(best)
        size = float(moves[best] @ moves[best])
        if size > 0:
            own = moves[best] / np.sqrt(size)
            along = moves @ own
            shrink = 1.0 - np.sqrt(noise[best] / (noise[best] + size))
            moves = moves - shrink * np.outer(along, own)
            variances = variances - (1.0 - (1.0 - shrink) ** 2) * along**2
        variances[chosen] = -np.inf
    return np.array(chosen, dtype=np.int64)
