"""What an explanation expects of a reduced input: every method predicts by its own model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from piste.errors import PisteError, shorten
from piste.slalom.scores import interactions
from piste.slalom.surrogate import Background, Parameters, Saturation, Slalom
from piste.types import Floats, Ints

Scores = Mapping[str, Floats]


@dataclass(frozen=True)
class Mixing:
    """γ: where a model stands on an input, between adding up (0) and competing (1)."""

    value: float
    error: float

    @property
    def told(self) -> bool:
        """Whether weights are determined: γ stands out from 0 by two standard errors."""
        return self.value > max(2 * self.error, 0.02)


class Surrogate(Protocol):
    """The part of a method's model that is not in its scores per unit."""

    kind: str

    def predict(self, scores: Scores, counts: Floats) -> Floats:
        """The expected target for counts (questions × units)."""

    def interactions(self, scores: Scores) -> Floats:
        """How much more two units say together than apart, units × units."""

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class SlalomSurrogate:
    """The family of :class:`piste.slalom.Slalom`, from the scores contribution and importance.

    A unit's evidence is contribution × (W / w)^γ, with W the total weight of the text.
    """

    mixing: Mixing
    base: float | tuple[float, ...]
    log_weight: float
    """log W of the whole text."""
    background: tuple[float, float] | None = None
    link: Saturation | None = None
    pairs: tuple[tuple[int, int, float], ...] = ()
    """Two units, and the evidence that they add when both are there: half of it is in the
    contribution of each."""
    kind = "mixing"

    @staticmethod
    def of(
        slalom: Slalom,
        types: Ints,
        error: float = 0.0,
        pairs: tuple[tuple[int, int, float], ...] = (),
    ) -> SlalomSurrogate:
        """What scores of a text's units leave to be known of a surrogate."""
        weight = float(np.exp(slalom.importances)[types].sum())
        background = None
        if slalom.background is not None:
            weight += float(np.exp(slalom.background.importance))
            background = slalom.background.importance, float(slalom.background.evidence)
        base = slalom.base
        return SlalomSurrogate(
            Mixing(float(slalom.mixing), error),
            tuple(map(float, base)) if isinstance(base, np.ndarray) else float(base),
            float(np.log(weight)),
            background,
            slalom.link,
            pairs,
        )

    def slalom(self, scores: Scores) -> Slalom:
        """The surrogate of the units."""
        importance, contribution = scores["importance"], scores["contribution"].copy()
        for first, second, effect in self.pairs:
            contribution[[first, second]] -= effect / 2
        scale = np.exp(self.mixing.value * (self.log_weight - importance))
        base = np.asarray(self.base) if isinstance(self.base, tuple) else self.base
        return Slalom(
            contribution * (scale[:, None] if contribution.ndim == 2 else scale),
            importance,
            self.mixing.value,
            base,
            None if self.background is None else Background(*self.background),
            self.link,
        )

    def predict(self, scores: Scores, counts: Floats) -> Floats:
        more: Floats | float = 0.0
        if self.pairs:
            places, effects = self._pairs()
            more = (np.asarray(counts)[:, places] > 0).all(axis=2) @ effects
        return self.slalom(scores).predict(counts, more)

    def interactions(self, scores: Scores) -> Floats:
        if scores["contribution"].ndim != 1:
            raise PisteError("Interactions need one explained number: choose a single target.")
        everyone = np.arange(len(scores["importance"]))
        parameters = Parameters.of(self.slalom(scores))
        if self.pairs:
            places, effects = self._pairs()
            parameters = parameters.of_units(everyone, (places, effects[:, None]))
        return interactions(parameters, everyone)

    def _pairs(self) -> tuple[Ints, Floats]:
        return (
            np.array([pair[:2] for pair in self.pairs], dtype=np.int64),
            np.array([pair[2] for pair in self.pairs]),
        )

    def to_dict(self) -> dict[str, Any]:
        base = list(self.base) if isinstance(self.base, tuple) else self.base
        found: dict[str, Any] = {
            "kind": self.kind,
            "mixing": asdict(self.mixing),
            "base": base,
            "log_weight": self.log_weight,
        }
        if self.background is not None:
            found["background"] = list(self.background)
        if self.pairs:
            found["pairs"] = [list(pair) for pair in self.pairs]
        return found | ({} if self.link is None else {"link": asdict(self.link)})


@dataclass(frozen=True)
class MeanSurrogate:
    """The surrogate of results in format 1: a weighted mean of the scores ``value``.

    Its values are evidence before saturation, with the weights of ``importance`` beside a
    background.
    """

    weight: float
    base: float | tuple[float, ...]
    link: Saturation | None = None
    kind = "slalom"

    def _slalom(self, scores: Scores) -> Slalom:
        own = np.asarray(self.base) if isinstance(self.base, tuple) else self.base
        if self.weight <= 0:  # the base is only what is said of nothing
            return Slalom(scores["value"] - own, scores["importance"], 1.0, own, None, self.link)
        background = Background(float(np.log(self.weight)), own)
        base = np.zeros_like(own) if isinstance(own, np.ndarray) else 0.0
        return Slalom(scores["value"], scores["importance"], 1.0, base, background, self.link)

    def predict(self, scores: Scores, counts: Floats) -> Floats:
        return self._slalom(scores).predict(counts)

    def interactions(self, scores: Scores) -> Floats:
        if scores["value"].ndim != 1:
            raise PisteError("Interactions need one explained number: choose a single target.")
        everyone = np.arange(len(scores["value"]))
        return interactions(Parameters.of(self._slalom(scores)), everyone)

    def to_dict(self) -> dict[str, Any]:
        base = list(self.base) if isinstance(self.base, tuple) else self.base
        link = {} if self.link is None else {"link": asdict(self.link)}
        return {"kind": self.kind, "weight": self.weight, "base": base, **link}


@dataclass(frozen=True)
class AdditiveSurrogate:
    """A base plus the sum of one score over the units present."""

    base: float | tuple[float, ...]
    """One number, or one per class."""
    score: str
    kind = "additive"

    def predict(self, scores: Scores, counts: Floats) -> Floats:
        base, sums = np.asarray(self.base), counts @ scores[self.score]
        # A score may be the same for all classes, of which each has a base of its own.
        return base + (sums[:, None] if base.ndim > sums.ndim - 1 else sums)

    def interactions(self, scores: Scores) -> Floats:
        size = len(scores[self.score])
        return np.zeros((size, size))

    def to_dict(self) -> dict[str, Any]:
        base = list(self.base) if isinstance(self.base, tuple) else self.base
        return {"kind": self.kind, "base": base, "score": self.score}


@dataclass(frozen=True)
class PolynomialSurrogate:
    """A sum over sets of units T, each with a coefficient: F(S) = Σ_T c_T · g_T(S).

    With ``basis="products"`` g_T(S) is 1 if all of T is kept, else 0 (Möbius coefficients). With
    ``basis="signs"`` it is (−1)^|T∩S| (Fourier coefficients). The empty set is the constant. It
    does not use the scores; :meth:`values` and :meth:`first_order` are scores made of it.

    >>> pair = PolynomialSurrogate(((), (0,), (0, 1)), (1.0, 2.0, 4.0))
    >>> pair.predict({}, np.array([[0, 0], [1, 0], [1, 1]])).tolist()
    [1.0, 3.0, 7.0]
    >>> pair.values(2).tolist(), pair.first_order(2).tolist()
    ([4.0, 2.0], [2.0, 0.0])
    """

    terms: tuple[tuple[int, ...], ...]
    coefficients: tuple[float, ...] | tuple[tuple[float, ...], ...]
    """One number per term, or one per term and class."""
    basis: Literal["products", "signs"] = "products"
    kind = "polynomial"

    def predict(self, scores: Scores, counts: Floats) -> Floats:
        present = (np.asarray(counts) > 0).astype(np.float64)
        shared = present @ self._members(present.shape[1]).T
        if self.basis == "signs":
            features = 1.0 - 2.0 * (shared % 2)
        else:
            features = (shared == self._sizes()).astype(np.float64)
        return features @ np.asarray(self.coefficients, dtype=np.float64)

    def values(self, units: int) -> Floats:
        """Shapley values: products share their coefficient equally, signs −2 c_T if |T| is odd."""
        return self._spread(self._members(units), self._sizes())

    def first_order(self, units: int) -> Floats:
        """Coefficients of single units; of signs −2 c_i, which is the Banzhaf value."""
        members, sizes = self._members(units), self._sizes()
        return self._spread(members * (sizes == 1)[:, None], sizes)

    def interactions(self, scores: Scores) -> Floats:
        coefficients = np.asarray(self.coefficients, dtype=np.float64)
        if coefficients.ndim != 1:
            raise PisteError("Interactions need one explained number: choose a single target.")
        members, sizes = self._members(len(next(iter(scores.values())))), self._sizes()
        # Shapley interaction of a product: 1 / (|T| − 1); of signs: ∫₀¹ 4 (1 − 2x)^(|T| − 2) dx.
        each = 1.0 / np.maximum(sizes - 1, 1)
        if self.basis == "signs":
            each = 4 * each * (sizes % 2 == 0)
        found: Floats = (members * (coefficients * each * (sizes > 1))[:, None]).T @ members
        np.fill_diagonal(found, 0.0)
        return found

    def to_dict(self) -> dict[str, Any]:
        coefficients = np.asarray(self.coefficients, dtype=np.float64).tolist()
        terms = [list(term) for term in self.terms]
        return {
            "kind": self.kind,
            "terms": terms,
            "coefficients": coefficients,
            "basis": self.basis,
        }

    def _sizes(self) -> Ints:
        return np.array([len(term) for term in self.terms], dtype=np.int64)

    def _members(self, units: int) -> Floats:
        members = np.zeros((len(self.terms), units))
        for row, term in zip(members, self.terms, strict=True):
            row[list(term)] = 1.0
        return members

    def _spread(self, members: Floats, sizes: Ints) -> Floats:
        each = 1.0 / np.maximum(sizes, 1)
        if self.basis == "signs":
            each = -2 * each * (sizes % 2)
        return (members * each[:, None]).T @ np.asarray(self.coefficients, dtype=np.float64)


def surrogate_from(data: Mapping[str, Any]) -> Surrogate:
    """The surrogate that :meth:`Surrogate.to_dict` described."""
    base: Any = data.get("base")
    base = tuple(base) if isinstance(base, list) else base
    link = Saturation(**data["link"]) if "link" in data else None
    if data["kind"] == "mixing":
        background = tuple(data["background"]) if "background" in data else None
        mixing = Mixing(**data["mixing"])
        pairs = tuple((int(i), int(j), float(effect)) for i, j, effect in data.get("pairs", ()))
        return SlalomSurrogate(mixing, base, data["log_weight"], background, link, pairs)
    if data["kind"] == "slalom":
        return MeanSurrogate(data["weight"], base, link)
    if data["kind"] == "additive":
        return AdditiveSurrogate(base, data["score"])
    if data["kind"] == "polynomial":
        terms = tuple(tuple(map(int, term)) for term in data["terms"])
        coefficients = tuple(
            tuple(one) if isinstance(one, list) else one for one in data["coefficients"]
        )
        return PolynomialSurrogate(terms, coefficients, data["basis"])
    raise PisteError(f"A surrogate of the kind {data['kind']!r} is unknown to this version.")


def as_counts(keep: ArrayLike, units: int) -> tuple[Floats, bool]:
    """What to keep as counts (questions × units), and whether it was one question only.

    >>> as_counts([0, 2], 3)[0].tolist(), as_counts([True, False, True], 3)[0].tolist()
    ([[1.0, 0.0, 1.0]], [[1.0, 0.0, 1.0]])
    """
    try:
        given = np.asarray(keep)
    except ValueError as problem:
        raise PisteError(
            "keep must be one list of unit indices, or masks of one length."
        ) from problem
    if given.size == 0 and given.ndim < 2:
        return np.zeros((1, units)), True
    if given.dtype == bool or (given.ndim == 2 and given.dtype.kind in "iu"):
        masks = np.atleast_2d(given)
        if (
            masks.ndim != 2
            or masks.shape[1] != units
            or masks.max(initial=0) > 1
            or masks.min(initial=0) < 0
        ):
            raise PisteError(
                f"Expected a mask with one entry for each of the {units} units, got the shape "
                f"{given.shape}."
            )
        return masks.astype(np.float64), given.ndim == 1
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise PisteError(
            f"keep: expected unit indices, a boolean mask or a matrix of masks, got "
            f"{shorten(keep)}."
        )
    if given.min() < 0 or given.max() >= units:
        raise PisteError(f"keep names a unit outside 0 to {units - 1}: {shorten(keep)}.")
    return np.bincount(given, minlength=units).astype(np.float64)[None, :], True
