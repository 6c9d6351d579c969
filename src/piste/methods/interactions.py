"""What the methods that find interactions share: a polynomial in the units, by shapiq."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from piste.errors import PisteError
from piste.methods.additive import CoalitionMethod
from piste.methods.base import Task
from piste.methods.conversation import Game, Masks
from piste.surrogates import PolynomialSurrogate, Surrogate
from piste.types import Floats
from piste.validation import check_count

Terms: TypeAlias = dict[tuple[int, ...], float]
"""Coefficients by set of units; the empty set is the constant."""
Numbers: TypeAlias = Callable[[Masks], Floats]
"""From which units are kept to one number for each question."""


@dataclass(frozen=True)
class PolynomialScores:
    """A polynomial in the units; scores are its Shapley values and its first-order terms."""

    surrogate: PolynomialSurrogate
    units: int
    more: dict[str, Any] = field(default_factory=dict)

    def model(self, score: str) -> tuple[dict[str, Floats], Surrogate]:
        found = self.surrogate
        scores = {score: found.values(self.units), "first_order": found.first_order(self.units)}
        return scores, found


@dataclass(frozen=True)
class InteractionMethod(CoalitionMethod):
    """Finds sets of units that count together; it predicts by the polynomial of what it found.

    The score that ranks is the Shapley value of this polynomial, so a set's part is shared by its
    units; ``first_order`` is what the method gives the unit alone.
    """

    basis: ClassVar[Literal["products", "signs"]] = "products"
    library: ClassVar[str] = "shapiq"
    extra: ClassVar[str] = "interactions"

    @abstractmethod
    def find(self, ask: Numbers, units: int, budget: int, seed: int) -> Terms:
        """The coefficients; the same seed must ask the same questions whatever the answers."""

    def explore(self, game: Game, task: Task, budget: int) -> PolynomialScores:
        n, answers = len(task.subject), _Answers(game)
        seed = int(task.rng.integers(2**31))
        classes = len(task.target.labels) if task.target.kind == "all" else 1
        found = []
        for place in range(classes):
            answers.place = place
            found.append(self.find(answers, n, budget, seed))
        terms = sorted({(), *(term for one in found for term in one)}, key=lambda t: (len(t), t))
        table = [tuple(float(one.get(term, 0.0)) for one in found) for term in terms]
        coefficients = tuple(table) if task.target.kind == "all" else tuple(row[0] for row in table)
        surrogate = PolynomialSurrogate(tuple(terms), coefficients, self.basis)
        return PolynomialScores(surrogate, n, {"terms": len(terms)} | self.remarks(n, answers))

    def remarks(self, units: int, answers: _Answers) -> dict[str, Any]:
        """What the result should say of the search."""
        return {}


@dataclass(frozen=True)
class PairMethod(InteractionMethod):
    """All units and pairs at once, so there must not be too many."""

    most_units: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("most_units", self.most_units)

    @abstractmethod
    def approximator(self, units: int, seed: int) -> Any:
        """The approximator of shapiq, of order 2."""

    def find(self, ask: Numbers, units: int, budget: int, seed: int) -> Terms:
        if units > self.most_units:
            raise PisteError(
                f"{self.name}: expected at most most_units={self.most_units} units, got {units}: "
                "choose larger units, or raise most_units if there is memory for the pairs."
            )
        # The library counts the questions for all units and for none, whose answers are known.
        return terms_of(self.approximator(units, seed).approximate(budget + 2, ask))

    def remarks(self, units: int, answers: _Answers) -> dict[str, Any]:
        return {"underdetermined": 1 + units * (units + 1) // 2 > len(answers.known)}


@dataclass
class _Answers:
    """Answers by question: each is asked once, for all classes."""

    game: Game
    place: int = 0
    """The class whose numbers are given."""
    known: dict[bytes, Floats] = field(default_factory=dict)

    def __call__(self, masks: Masks) -> Floats:
        masks = np.atleast_2d(np.asarray(masks)).astype(bool)
        keys = [row.tobytes() for row in masks]
        fresh = {key: row for key, row in zip(keys, masks, strict=True) if key not in self.known}
        if fresh:
            answers = self.game(np.array(list(fresh.values())))
            self.known.update(zip(fresh, answers, strict=True))
        numbers = np.array([self.known[key] for key in keys], dtype=np.float64)
        return numbers[:, self.place] if numbers.ndim == 2 else numbers


def terms_of(found: Any) -> Terms:
    """The coefficients of shapiq's InteractionValues, without zeros."""
    values: Mapping[tuple[int, ...], float] = found.dict_values
    return {tuple(map(int, term)): float(value) for term, value in values.items() if value != 0}


def signs_of(products: Terms) -> Terms:
    """Fourier coefficients of Möbius coefficients: c_U = Σ_{T⊇U} a_T (−1)^|U| / 2^|T|.

    >>> signs_of({(): 1.0, (0,): 2.0})
    {(): 2.0, (0,): -1.0}
    """
    found: Terms = {}
    for term, value in products.items():
        share = value / 2 ** len(term)
        for bits in range(2 ** len(term)):
            part = tuple(unit for place, unit in enumerate(term) if bits >> place & 1)
            found[part] = found.get(part, 0.0) + (-share if len(part) % 2 else share)
    least = 1e-10 * max(map(abs, found.values()), default=0.0)
    return {term: value for term, value in found.items() if abs(value) > least}


def every_subset(units: int) -> Masks:
    """All 2^n masks, unit 0 in the lowest bit.

    >>> every_subset(2).tolist()
    [[False, False], [True, False], [False, True], [True, True]]
    """
    return (np.arange(2**units)[:, None] >> np.arange(units) & 1).astype(bool)


def transform(numbers: Floats) -> Terms:
    """Fourier coefficients of the answers to :func:`every_subset`: c_T = mean f(S) (−1)^|S∩T|.

    >>> transform(np.array([1.0, 3.0]))
    {(): 2.0, (0,): -1.0}
    """
    found = np.array(numbers, dtype=np.float64)
    units = len(found).bit_length() - 1
    for unit in range(units):
        pairs = found.reshape(-1, 2, 2**unit)
        found = np.stack([pairs.sum(axis=1), pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
    found /= len(found)
    least = 1e-10 * float(np.abs(found).max())
    return {
        tuple(unit for unit in range(units) if row >> unit & 1): float(value)
        for row, value in enumerate(found)
        if abs(value) > least
    }
