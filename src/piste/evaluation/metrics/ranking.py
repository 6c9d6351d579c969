"""How well one order agrees with another, or finds what is marked, and two explanations."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import rankdata

from piste.types import Flags, Floats

Marked = Flags


def spearman(first: Floats, second: Floats) -> float:
    """Correlation of the ranks; NaN for fewer than two pairs, or if one side is constant.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 15.0]))
    0.5
    """
    if len(first) < 2:
        return math.nan
    a, b = rankdata(first), rankdata(second)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale > 0 else math.nan


def area_under_roc(scores: Floats, marked: Marked) -> float:
    """Chance that a marked unit scores above an unmarked one: (R − P(P + 1)/2) / (P·N).

    R is the sum of the ranks of the P marked units, N the number of the others.

    >>> area_under_roc(np.array([3.0, 1.0, 2.0, 1.0]), np.array([True, False, False, True]))
    0.625
    """
    positive = int(marked.sum())
    negative = len(marked) - positive
    if not positive or not negative:
        return math.nan
    total = float(rankdata(scores)[marked].sum())
    return (total - positive * (positive + 1) / 2) / (positive * negative)


def average_precision(scores: Floats, marked: Marked) -> float:
    """Σ (R_t − R_{t−1}) P_t over the distinct scores t from the top, precision P and recall R.

    >>> average_precision(np.array([3.0, 2.0, 1.0]), np.array([True, False, True])).__round__(4)
    0.8333
    """
    if not marked.any() or marked.all():
        return math.nan
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(marked[order])
    last_of_tie = np.append(np.diff(scores[order]) != 0, True)
    taken = np.arange(1, len(scores) + 1)[last_of_tie]
    found = hits[last_of_tie]
    gained = np.diff(found, prepend=0) / hits[-1]
    return float(gained @ (found / taken))


def top_f1(scores: Floats, marked: Marked) -> float:
    """F1 of the k highest scores, k the number of marked units: precision and recall in one.

    Where a tie lies across the border, the expectation over all ways to break it.

    >>> top_f1(np.array([3.0, 2.0, 2.0, 1.0]), np.array([True, False, True, False]))
    0.75
    """
    count = int(marked.sum())
    if not count or count == len(marked):
        return math.nan
    border = np.sort(scores)[-count]
    above, tied = scores > border, scores == border
    hits = marked[above].sum() + (count - above.sum()) * marked[tied].mean()
    return float(hits) / count


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
