"""Units removed or kept by rank: deletion, insertion, comprehensiveness and sufficiency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from piste.errors import PisteError, shorten
from piste.evaluation.metrics.base import Answers, Case, Figure, Measured, Metric
from piste.subject import Sequence1D
from piste.types import Floats, Ints
from piste.validation import check_count

GRID: Floats = np.linspace(0.0, 1.0, 21)
"""The fractions of units at which curves are told, so that those of many texts have a mean."""

# Bins of removal by fraction, and what the sum of differences is divided by.
_BINS: dict[str, tuple[tuple[float, ...], int]] = {
    "eraser": ((0.01, 0.05, 0.1, 0.2, 0.5), 5),
    "eggen": ((0.0, 0.1, 0.2, 0.5), 5),
}


@dataclass(frozen=True)
class Deletion(Metric):
    """Units are removed from the top of the ranking; a good ranking lets the chance drop soon.

    With p_k the chance without the k top units, and K the numbers of removed units that are
    asked: at most ``steps``, evenly spaced over 1 … n (n − 1 where the classifier can't read
    nothing)::

        aopc = mean over k in K of (p_0 − p_k)

    Higher is better; NaN if there is nothing to remove. The curve ``deletion`` is the chance at
    the fractions removed of :data:`GRID`, interpolated; where nothing can't be asked, the last
    chance asked stands for it.
    """

    steps: int = 20

    name: ClassVar[str] = "deletion"
    about: ClassVar[str] = "how far the chance drops when the top units are removed"
    figures = (
        Figure(
            "aopc",
            "higher",
            title="deletion AOPC",
            skill="finding the units that carry the answer",
            about="how far the answer's probability falls, on average, while the strongest units "
            "are removed first",
            role="main",
        ),
    )

    def __post_init__(self) -> None:
        check_count("steps", self.steps)

    def plan(self, case: Case) -> list[Sequence1D]:
        order = case.order
        return [np.sort(order[removed:]) for removed in _removals(case, self.steps)]

    def measure(self, case: Case, answers: Answers) -> Measured:
        fractions = _removals(case, self.steps) / case.n
        curve = np.interp(GRID, fractions, answers.chances)
        return Measured({"aopc": _mean_drop(answers.chances)}, {"deletion": curve.tolist()})


@dataclass(frozen=True)
class Insertion(Metric):
    """Only the top units are kept; a good ranking has the whole chance again with few of them.

    With q_k the chance of the k top units alone, p the one of the whole input, and K at most
    ``steps`` numbers evenly spaced over 0 … n − 1 (1 … n − 1 where the classifier can't read
    nothing)::

        insertion = mean over k in K of (p − q_k)

    Lower is better: this is the convention of the SLALOM paper, an area over the curve. NaN if
    there is nothing to leave out. The curve ``insertion`` is the chance at the fractions kept of
    :data:`GRID`, interpolated; where nothing can't be asked, the top unit's chance stands for it.
    Keeping the top k is removing the bottom n − k, so this is the deletion of the ranking
    turned round.
    """

    steps: int = 20

    name: ClassVar[str] = "insertion"
    about: ClassVar[str] = "how much of the chance is missing when only the top units are kept"
    figures = (
        Figure(
            "insertion",
            "lower",
            title="insertion loss",
            skill="finding the units that suffice for the answer",
            about="how much of the answer's probability is missing, on average, while only the "
            "strongest units are kept",
            role="main",
        ),
    )

    def __post_init__(self) -> None:
        check_count("steps", self.steps)

    def plan(self, case: Case) -> list[Sequence1D]:
        order = case.order
        return [np.sort(order[: case.n - out]) for out in _removals(case, self.steps)]

    def measure(self, case: Case, answers: Answers) -> Measured:
        kept = 1.0 - _removals(case, self.steps) / case.n
        curve = np.interp(GRID, kept[::-1], answers.chances[::-1])
        return Measured({"insertion": _mean_drop(answers.chances)}, {"insertion": curve.tolist()})


@dataclass(frozen=True)
class Eraser(Metric):
    """Comprehensiveness and sufficiency (DeYoung et al., 2020).

    For fractions q of the n units, the top ⌈q·n⌉ of them are taken::

        comprehensiveness = mean over q of (p(x) − p(x without the top))     higher is better
        sufficiency       = mean over q of (p(x) − p(the top alone))         lower is better

    ``bins`` says which fractions: "eraser" are 1, 5, 10, 20 and 50 % with the plain mean of
    the benchmark's own code (the paper's formula divides by one more, which scales all methods
    alike); "eggen" are 0, 10, 20 and 50 % with the sum divided by 5, the protocol of Eggen et
    al.; or your own fractions. Where the classifier can't read nothing, one unit always stays;
    comprehensiveness of a single unit is NaN then.
    """

    bins: str | Sequence[float] = "eraser"

    name: ClassVar[str] = "eraser"
    about: ClassVar[str] = "comprehensiveness and sufficiency of the top units"
    figures = (
        Figure(
            "comprehensiveness",
            "higher",
            title="comprehensiveness",
            skill="finding the few units that matter most",
            about="how much of the answer's probability is lost without the few strongest units",
        ),
        Figure(
            "sufficiency",
            "lower",
            title="sufficiency",
            skill="finding the few units that suffice",
            about="how much of the answer's probability is lost if only the few strongest units "
            "are kept",
        ),
    )

    def __post_init__(self) -> None:
        if isinstance(self.bins, str):
            if self.bins not in _BINS:
                raise PisteError(
                    f"bins: expected one of {', '.join(_BINS)}, or fractions, got {self.bins!r}."
                )
        elif not len(self.bins) or not all(0 <= fraction <= 1 for fraction in self.bins):
            raise PisteError(f"bins: expected fractions from 0 to 1, got {shorten(self.bins)}.")

    def plan(self, case: Case) -> list[Sequence1D]:
        order, tops = case.order, self._tops(case.n)
        least = 0 if case.subject.can_be_empty else 1
        without = [np.sort(order[min(top, case.n - least) :]) for top in tops]
        alone = [np.sort(order[: max(top, least)]) for top in tops]
        return [case.subject.whole, *without, *alone]

    def measure(self, case: Case, answers: Answers) -> Measured:
        whole, without, alone = np.split(answers.chances, [1, 1 + len(self._tops(case.n))])
        divisor = _BINS[self.bins][1] if isinstance(self.bins, str) else len(self.bins)
        undefined = case.n == 1 and not case.subject.can_be_empty
        figures = {
            "comprehensiveness": math.nan if undefined else float((whole - without).sum()),
            "sufficiency": float((whole - alone).sum()),
        }
        return Measured({name: figure / divisor for name, figure in figures.items()})

    def _tops(self, n: int) -> list[int]:
        """How many units each fraction takes: rounded up, but not for a rounding error."""
        fractions = _BINS[self.bins][0] if isinstance(self.bins, str) else self.bins
        return [math.ceil(fraction * n - 1e-9) for fraction in fractions]


@dataclass(frozen=True)
class Alone(Metric):
    """Whether the top units alone lead to the same answer.

    The top ⌈share·n⌉ units are asked alone. ``same_class`` is 1 if the model gives the class it
    gives the whole input. The curve ``classes`` holds both, of the top units and of the whole, so
    that F1 over many inputs can be made of them (see :func:`~piste.evaluation.class_f1`).
    """

    share: float = 0.2

    name: ClassVar[str] = "alone"
    about: ClassVar[str] = "whether the top units alone lead to the same class"
    needs = "classes"
    figures = (
        Figure(
            "same_class",
            "higher",
            title="same class",
            skill="finding the few units that keep the class",
            about="share of inputs whose strongest units alone get the class of the whole input",
        ),
    )

    def __post_init__(self) -> None:
        if not isinstance(self.share, (int, float)) or not 0 < self.share <= 1:
            raise PisteError(f"share: expected 0 < share ≤ 1, got {shorten(self.share)}.")

    def plan(self, case: Case) -> list[Sequence1D]:
        top = max(math.ceil(self.share * case.n - 1e-9), 1)
        return [case.subject.whole, np.sort(case.order[:top])]

    def measure(self, case: Case, answers: Answers) -> Measured:
        logits = answers.logits
        kind = case.subject.classifier.kind
        if kind == "regression":
            return Measured({"same_class": math.nan})
        several = logits.shape[1] > 1 and kind == "classes"
        whole, alone = (int(np.argmax(row)) if several else int(row[0] > 0) for row in logits)
        return Measured(
            {"same_class": float(whole == alone)}, {"classes": [float(alone), float(whole)]}
        )


def _removals(case: Case, steps: int) -> Ints:
    """How many units are removed: none, and at most ``steps`` numbers evenly spaced to the last."""
    last = case.n if case.subject.can_be_empty else case.n - 1
    return np.linspace(0, last, min(steps, last) + 1).round().astype(np.int64)


def _mean_drop(chances: Floats) -> float:
    """Mean of the first chance minus the others."""
    return float(np.mean(chances[0] - chances[1:])) if len(chances) > 1 else math.nan
