"""What a function's numbers mean: logits or probabilities, one column or many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from piste.errors import PisteError, is_out_of_memory, shorten
from piste.target import OutputKind
from piste.types import Floats

Reading: TypeAlias = Literal["logits", "probabilities", "hard labels"]
"""Hard labels are answers of 0 and 1 only: scores, because their log-odds are infinite."""
READINGS = ("auto", "logits", "probabilities")

# Probabilities of exactly 0 or 1 have no finite log-odds: they are taken for the last ones that
# single precision can tell from them.
SMALLEST = 1e-7


def call(function: Callable[..., Any], name: str, *given: Any) -> Any:
    """What a function of the user's returns; what it raises is told with its name."""
    try:
        return function(*given)
    except PisteError:
        raise
    except Exception as problem:  # it is not ours: anything may come
        if is_out_of_memory(problem):
            raise  # asked again with fewer
        first = (str(problem).strip() or "no reason given").splitlines()[0].rstrip(".")
        raise PisteError(
            f"The function {name!r} failed with {type(problem).__name__} ({first}): try it on a "
            "few inputs by itself."
        ) from problem


def as_matrix(answers: Any, rows: int) -> Floats:
    """Whatever a function returned as a float matrix, questions × outputs, or a clear refusal."""
    answers = getattr(answers, "logits", answers)
    if hasattr(answers, "detach"):
        answers = answers.detach().cpu().double()
    if isinstance(answers, (list, tuple)) and answers and hasattr(answers[0], "detach"):
        answers = [answer.detach().cpu().double().numpy() for answer in answers]
    try:
        if answers is None or np.iscomplexobj(answers):  # numpy would make other numbers of them
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


def guess_reading(answers: Floats) -> Reading | None:
    """What finite answers are, as far as they tell; None where they are not finite.

    >>> [guess_reading(np.array([row])) for row in ([2.0], [0.3], [0.0, 1.0])]
    ['logits', 'probabilities', 'hard labels']
    """
    if not np.isfinite(answers).all():
        return None
    if (answers < 0).any() or (answers > 1).any():
        return "logits"
    return "hard labels" if _are_hard(answers) else "probabilities"


def _are_hard(answers: Floats) -> bool:
    return bool(np.isin(answers, (0.0, 1.0)).all())


def _sum_to_one(answers: Floats, tolerance: float = 1e-3) -> bool:
    sums = answers.sum(axis=1)
    return answers.shape[1] > 1 and bool(np.allclose(sums, 1.0, rtol=0, atol=tolerance))


def _other_columns(before: int, now: int) -> PisteError:
    return PisteError(
        f"Expected {before} outputs from the function, as before, got {now}: return the same "
        "number of columns for every input."
    )


class OutputReader:
    """Turns a function's raw answers into logits, the same way for every question.

    Answers outside 0 … 1 are logits, answers inside are probabilities (of exclusive classes if
    rows sum to one), and 0 and 1 alone are hard labels. A later answer that contradicts what was
    found on the first input is refused, so that no reading depends on which input came first.
    """

    def __init__(
        self, outputs: Reading | None, kind: OutputKind | None, labels: Sequence[str] | None
    ) -> None:
        self.reading = outputs
        self.exclusive = kind == "classes" if kind else None
        self.kind: OutputKind = kind or "classes"
        self.labels = tuple(labels) if labels else ()
        self.is_settled = False
        self._is_stated, self._has_kind = outputs is not None, kind is not None
        self._only_hard = True
        """Whether all answers so far were 0 or 1."""
        self._has_answers = False
        if outputs == "logits" and self.labels:
            self._settle_kind(exclusive=len(self.labels) > 1)  # nothing is left to find out

    def is_clear(self, answers: Floats) -> bool:
        """Whether these answers settle what all are, without a look at more of them."""
        guess = self.reading or guess_reading(answers)
        return (
            self._is_stated
            or guess == "logits"
            or not (_are_hard(answers) or answers.shape[1] == 1 or not _sum_to_one(answers))
        )

    def check_same(self, first: Floats, more: Floats) -> None:
        """Refuse answers with another number of outputs than those before."""
        if first.shape[1] != more.shape[1]:
            raise _other_columns(first.shape[1], more.shape[1])

    def settle(self, answers: Floats) -> None:
        """Decide once, from the answers to an input and to its units alone."""
        columns = answers.shape[1]
        self._check_columns(columns)
        if not self.labels:
            self.labels = ("score",) if columns == 1 else tuple(map(str, range(columns)))
        if self.reading is None:
            self.reading = guess_reading(answers)
            if self.reading is None:
                return
            if self.reading == "hard labels" and self._has_kind and self.kind != "regression":
                self.reading = "probabilities"  # the user says that they are classes
        inside = self.reading == "probabilities"
        self._settle_kind(exclusive=_sum_to_one(answers) if inside else columns > 1)

    def _settle_kind(self, *, exclusive: bool) -> None:
        if self.exclusive is None:
            self.exclusive = exclusive
        if not self._has_kind:
            # One column of scores may be log-odds or any other number: no probability is claimed.
            one = len(self.labels) == 1
            number = (one and self.reading == "logits") or self.reading == "hard labels"
            self.kind = "regression" if number else "classes" if self.exclusive else "labels"
        self.is_settled = True

    def logits(self, answers: Floats) -> Floats:
        """Answers as logits; refused if they contradict how earlier ones were read."""
        self._check_columns(answers.shape[1])
        if not np.isfinite(answers).all():
            return answers
        self._only_hard = self._only_hard and _are_hard(answers)
        if self.reading == "hard labels" and not self._only_hard:
            self._leave_hard_labels(answers)
        if self.reading != "probabilities":
            return answers
        if self.exclusive and not self._has_kind and not _sum_to_one(answers, 0.01):
            sums = answers.sum(axis=1)
            wrong = float(sums[np.argmax(np.abs(sums - 1))])
            raise PisteError(
                "Expected rows that sum to 1 from the function, as on the first input, got one "
                f"that sums to {wrong:.3g}: load it with kind='labels' if its outputs are "
                "independent, or with outputs='logits' if they are scores."
            )
        return to_logits(answers, exclusive=bool(self.exclusive))

    def _leave_hard_labels(self, answers: Floats) -> None:
        """0 and 1 were scores: counts may go on, but fractions could be probabilities."""
        between = answers[(answers > 0) & (answers < 1)]
        if between.size:
            raise PisteError(
                "Expected 0 and 1 from the function, its only answers so far, which were read as "
                f"scores, got {float(between[0]):g}: load it with outputs='probabilities' or "
                "outputs='logits', whichever they are."
            )
        self.reading = "logits"

    def _check_columns(self, columns: int) -> None:
        if self.labels and len(self.labels) != columns:
            if self._has_answers:
                raise _other_columns(len(self.labels), columns)
            raise PisteError(
                f"labels: expected {columns}, one per output of the function, got "
                f"{len(self.labels)}."
            )
        self._has_answers = True

    @property
    def note(self) -> str:
        """What a reader of a result must know of the reading, or ""."""
        if self.reading == "hard labels":
            return (
                "The function answered only 0 and 1, which are explained as scores, not as "
                "log-odds: better return probabilities."
            )
        if self.reading == "probabilities" and self._only_hard and self.is_settled:
            return (
                "The function answered only 0 and 1, as log-odds of −16 and 16: return "
                "probabilities, or load it with outputs='logits' to explain 0 and 1 as scores."
            )
        if self.reading == "probabilities" and not self._is_stated and len(self.labels) == 1:
            return (
                "The function's one column lies in 0 … 1 and was read as a probability: load it "
                "with outputs='probabilities' if that is right, with outputs='logits' if not."
            )
        return ""


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
