"""An explanation in the form of the shap library, for its plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from piste.errors import PisteError, need
from piste.explanation import UNDIRECTED, Explanation
from piste.image import ImageInput

if TYPE_CHECKING:
    import shap


def to_shap(e: Explanation, score: str | None = None) -> shap.Explanation:
    """Values per unit (and class), the base they add up from, and the units' texts."""
    library: Any = need("shap", "peers", "to_shap")
    name = score or ("shapley" if "shapley" in e.scores else e.ranking)
    if name in UNDIRECTED:
        raise PisteError(
            f"Expected a score with a direction for shap's plots, got {name!r}: choose one of "
            f"{', '.join(one for one in e.scores if one not in UNDIRECTED) or 'another method'}."
        )
    e.score(name)  # refuses one that isn't there
    values = np.array(e.scores[name])
    answer = np.asarray(e.output.value, dtype=np.float64)
    if values.ndim == 2 and answer.ndim == 0:
        raise PisteError(
            f"{name!r} has a score for every class, but one number was explained: choose another "
            "score."
        )
    base = answer - values.sum(axis=0)
    return library.Explanation(
        values=values,
        base_values=base if values.ndim == 2 else float(base),
        data=np.array(_texts(e), dtype=object),
        feature_names=[unit.text for unit in e.units],
        output_names=list(e.output.labels) if values.ndim == 2 else None,
    )


def _texts(e: Explanation) -> list[str]:
    """Units with the blanks behind them, because shap writes them one after the other."""
    if isinstance(e.input, ImageInput):
        return [unit.text for unit in e.units]
    given = (e.input,) if isinstance(e.input, str) else e.input
    found = []
    for place, unit in enumerate(e.units):
        after = e.units[place + 1] if place + 1 < len(e.units) else None
        same = after is not None and after.segment == unit.segment
        end = after.start if same and after is not None else len(given[unit.segment])
        found.append(given[unit.segment][unit.start : max(end, unit.end)])
    return found
