"""SPEX: sparse interactions by a Fourier transform of few answers (Kang et al., 2025)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from piste.errors import PisteError
from piste.methods.base import Task
from piste.methods.interactions import (
    InteractionMethod,
    Numbers,
    Terms,
    every_subset,
    signs_of,
    terms_of,
    transform,
)
from piste.surrogates import PolynomialSurrogate
from piste.types import Floats
from piste.validation import check_count

_PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
_LEAST_GROUP = 2**3


@dataclass(frozen=True)
class SpexMethod(InteractionMethod):
    """Few large Fourier coefficients, found by a coded choice of questions.

        F(S) = Σ_T c_T (−1)^|T∩S|

    Questions and decoding are those of shapiq, with interactions of about ``degree`` units at
    most. ``refit`` is the paper's last step, a LASSO on the sets that were found and all single
    units; shapiq 1.4 leaves it out. If all subsets can be asked, the transform is exact and
    nothing is searched.

    >>> import piste
    >>> e = piste.explain("piste:reviews", "A wonderful film.", method="spex")
    >>> e.units[int(e.score().argmax())].text
    'wonderful'
    """

    degree: int = 5
    refit: bool = True

    name: ClassVar[str] = "spex"
    basis: ClassVar[Literal["products", "signs"]] = "signs"
    about: ClassVar[str] = "sparse interactions by a Fourier transform"
    paper: ClassVar[str] = "Kang et al., ICML 2025"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("degree", self.degree, least=2)

    def usual_questions(self, task: Task) -> int | None:
        return 1000

    def find(self, ask: Numbers, units: int, budget: int, seed: int) -> Terms:
        if 2**units <= budget + 2:
            return transform(ask(every_subset(units)))
        from shapiq.approximator import SPEX

        def run(numbers: Numbers) -> Terms:
            np.random.seed(seed % 2**32)  # of the conversation: the library draws from it
            search = SPEX(n=units, random_state=seed, degree_parameter=self.degree)
            return terms_of(search.approximate(budget, numbers))

        planned: list[np.ndarray] = []

        def plan(masks: np.ndarray) -> Floats:
            planned.append(masks)
            return np.ones(len(masks))

        with _quiet():
            _check(units, budget)
            run(plan)
        masks = np.unique(np.concatenate(planned), axis=0)
        numbers = ask(masks)
        if np.ptp(numbers) == 0:
            return {(): float(numbers[0])}
        with _quiet():
            found = signs_of(run(ask))
        return _lasso(found, masks, numbers) if self.refit else found


def _check(units: int, budget: int) -> None:
    """Refuse a budget that is too small for the shortest code."""
    from sparse_transform.qsft.codes.BCH import BCH

    length, message = BCH.parameter_search(units, 2)
    least = 3 * _LEAST_GROUP * (length - message + 1)
    if budget < least:
        raise PisteError(
            f"spex: expected at least {least} questions for {units} units, got {budget} beside "
            f"the held-out ones: raise samples to {least + max(least // 7, 10) + 32}."
        )


def _lasso(found: Terms, masks: np.ndarray, numbers: Floats) -> Terms:
    """The paper's refit: a LASSO on the sets found and all single units."""
    from sklearn.linear_model import LassoCV

    singles = [(unit,) for unit in range(masks.shape[1])]
    terms = tuple(sorted({(), *singles, *found}, key=lambda term: (len(term), term)))
    each = [PolynomialSurrogate((term,), (1.0,), "signs").predict({}, masks) for term in terms]
    fit = LassoCV(fit_intercept=False, cv=5, alphas=_PENALTIES, random_state=0)
    fitted = fit.fit(np.array(each).T, numbers)
    kept = zip(terms, fitted.coef_, strict=True)
    return {term: float(value) for term, value in kept if value != 0}


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library from logging to the root logger and from setting it up."""

    def not_theirs(record: logging.LogRecord) -> bool:
        return record.module != "qsft"

    root, theirs, handler = logging.getLogger(), logging.getLogger("sparse_transform"), None
    if not root.handlers:
        handler = logging.NullHandler()
        root.addHandler(handler)
    level = theirs.level
    root.addFilter(not_theirs)
    theirs.setLevel(logging.ERROR)
    try:
        yield
    finally:
        theirs.setLevel(level)
        root.removeFilter(not_theirs)
        if handler is not None:
            root.removeHandler(handler)
