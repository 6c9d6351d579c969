"""F1 of the classes that are left when only the top units are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from piste.errors import PisteError
from piste.evaluation.results import Results
from piste.types import Ints

Classes = Ints


def class_f1(
    results: Results, method: str, truth: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Macro and weighted F1 of the class from the top units alone (metric "alone").

    Held against the model's own class for the whole input, or against ``truth``, the right class
    by example. Macro: the mean over the classes that occur in either; weighted: by how often each
    is right.
    """
    found = {
        row.example: row.curves["classes"]
        for row in results.rows
        if row.method == method and "classes" in row.curves
    }
    names = [name for name in found if truth is None or name in truth]
    if not names:
        raise PisteError(f"The classes that {method!r} leaves are not known: add 'alone'.")
    given = np.array([int(found[name][0]) for name in names])
    right = np.array([int(found[name][1] if truth is None else truth[name]) for name in names])
    return f1(given, right)


def f1(given: Classes, right: Classes) -> dict[str, float]:
    """F1 = 2·hits / (given + right) of every class, put together.

    >>> f1(np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]))
    {'macro': 0.7333333333333334, 'weighted': 0.7333333333333334}
    """
    classes = np.union1d(given, right)
    hits = np.array([((given == one) & (right == one)).sum() for one in classes])
    each = np.array([(given == one).sum() + (right == one).sum() for one in classes])
    scores = 2 * hits / each
    support = np.array([(right == one).sum() for one in classes])
    return {"macro": float(scores.mean()), "weighted": float(scores @ support / support.sum())}
