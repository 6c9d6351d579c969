"""What a function's numbers mean: logits or probabilities, one column or many."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from piste.errors import PisteError, shorten
from piste.types import Floats

Reading: TypeAlias = Literal["logits", "probabilities"]
READINGS = ("auto", "logits", "probabilities")

# Probabilities of exactly 0 or 1 have no finite log-odds: they are taken for the last ones that
# single precision can tell from them.
SMALLEST = 1e-7


def as_matrix(answers: Any, rows: int) -> Floats:
    """Whatever a function returned as a float matrix, questions × outputs, or a clear refusal."""
    answers = getattr(answers, "logits", answers)
    if hasattr(answers, "detach"):
        answers = answers.detach().cpu().double()
    if isinstance(answers, (list, tuple)) and answers and hasattr(answers[0], "detach"):
        answers = [answer.detach().cpu().double().numpy() for answer in answers]
    try:
        if answers is None:  # numpy would read it as NaN
            raise TypeError
        matrix = np.asarray(answers, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise PisteError(
            f"Expected numbers from the function, one row per input, got {shorten(answers)}."
        ) from problem
    if matrix.ndim == 0 and rows == 1:
        matrix = matrix.reshape(1, 1)
    if matrix.ndim == 1 and len(matrix) == rows:
        matrix = matrix[:, None]
    if matrix.ndim != 2 or len(matrix) != rows or matrix.shape[1] == 0:
        raise PisteError(
            f"Expected {rows} rows of scores from the function, one per input, got the shape "
            f"{matrix.shape}."
        )
    return matrix


def look_like_probabilities(answers: Floats) -> bool | None:
    """True or False where rows settle it; None where numbers in 0 … 1 could be either."""
    if not np.isfinite(answers).all():
        return None
    if (answers < 0).any() or (answers > 1).any():
        return False
    if answers.shape[1] > 1 and np.allclose(answers.sum(axis=1), 1.0, atol=1e-3):
        return True
    return None


def to_logits(answers: Floats, *, exclusive: bool) -> Floats:
    """Log-probabilities of exclusive classes, log-odds of independent ones.

    >>> to_logits(np.array([[0.5, 0.5]]), exclusive=True).round(3).tolist()
    [[-0.693, -0.693]]
    >>> to_logits(np.array([[0.5]]), exclusive=False).tolist()
    [[0.0]]
    """
    if (answers < 0).any() or (answers > 1).any():
        wrong = float(answers[(answers < 0) | (answers > 1)][0])
        raise PisteError(
            f"Expected probabilities from 0 to 1 from the function, got {wrong:g}: load it with "
            "outputs='logits' if they are scores."
        )
    inside = np.where(answers <= 0, SMALLEST, np.where(answers >= 1, 1 - SMALLEST, answers))
    return np.log(inside) if exclusive else np.log(inside) - np.log1p(-inside)
