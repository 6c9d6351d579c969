"""How much two explanations of the same units agree."""

from __future__ import annotations

import math

import numpy as np

from piste.evaluation.metrics.ranking import spearman
from piste.types import Floats

TOP = 5


def rank_agreement(first: Floats, second: Floats) -> float:
    """Spearman correlation; equal scores agree, also where all of them are the same number.

    >>> rank_agreement(np.zeros(3), np.zeros(3)), rank_agreement(np.zeros(3), np.arange(3.0))
    (1.0, nan)
    """
    return 1.0 if np.array_equal(first, second) else spearman(first, second)


def agreement(first: Floats, second: Floats) -> float:
    """The same by Pearson correlation: NaN for fewer than two, or if one side is constant.

    >>> round(agreement(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])), 6)
    1.0
    """
    if np.array_equal(first, second):
        return 1.0
    if len(first) < 2:
        return math.nan
    a, b = first - first.mean(), second - second.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale > 0 else math.nan


def top_overlap(first: Floats, second: Floats, count: int = TOP) -> float:
    """Share of the ``count`` largest units that both have.

    >>> top_overlap(np.array([3.0, 2.0, 0.1]), np.array([0.0, 2.0, 1.0]), count=2)
    0.5
    """
    count = min(count, len(first))
    tops = (set(np.argsort(-sizes, kind="stable")[:count]) for sizes in (first, second))
    return len(set.intersection(*tops)) / count
