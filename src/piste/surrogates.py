"""What an explanation expects of a reduced input: every method predicts by its own model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from piste.errors import PisteError, shorten
from piste.slalom.link import Saturation
from piste.slalom.shapley import interactions
from piste.slalom.surrogate import Slalom

Floats = NDArray[np.float64]
Scores = Mapping[str, Floats]


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
    """Softmax-weighted mean of the scores ``value`` with the weights of ``importance``.

    With a ``link`` the prediction is what saturation leaves of it.
    """

    weight: float
    base: float | tuple[float, ...]
    link: Saturation | None = None
    kind = "slalom"

    def predict(self, scores: Scores, counts: Floats) -> Floats:
        base = np.asarray(self.base) if isinstance(self.base, tuple) else self.base
        slalom = Slalom(scores["value"], scores["importance"], self.weight, base, self.link)
        return slalom.predict(counts)

    def interactions(self, scores: Scores) -> Floats:
        values = scores["value"]
        if values.ndim != 1 or isinstance(self.base, tuple):
            raise PisteError("Interactions need one explained number: choose a single target.")
        return interactions(
            values, scores["importance"], background=(self.weight, self.base), empty=self.base
        )

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


def surrogate_from(data: Mapping[str, Any]) -> Surrogate:
    """The surrogate that :meth:`Surrogate.to_dict` described."""
    base: Any = data.get("base")
    base = tuple(base) if isinstance(base, list) else base
    if data["kind"] == "slalom":
        link = Saturation(**data["link"]) if "link" in data else None
        return SlalomSurrogate(data["weight"], base, link)
    if data["kind"] == "additive":
        return AdditiveSurrogate(base, data["score"])
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
                f"A mask must have one entry for each of the {units} units, but the shape "
                f"{given.shape} came."
            )
        return masks.astype(np.float64), given.ndim == 1
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise PisteError(
            f"keep must be unit indices, a boolean mask or a matrix of masks, but "
            f"{shorten(keep)} came."
        )
    if given.min() < 0 or given.max() >= units:
        raise PisteError(f"keep names a unit outside 0 to {units - 1}: {shorten(keep)}.")
    return np.bincount(given, minlength=units).astype(np.float64)[None, :], True
