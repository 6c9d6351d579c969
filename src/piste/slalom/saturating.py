"""Fits to answers and slopes, with a saturation where it is wanted and worth it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from piste.slalom.equations import Equations
from piste.slalom.joint import JointResult, solve_joint
from piste.slalom.problem import Strengths
from piste.slalom.results import Fit, Floats, assemble
from piste.slalom.surrogate import Slalom

MOST_JOINT = 1200
"""Beyond this many types their joint normal equations take longer than asking most models."""

# Where a saturation bends the evidence by less than this share of the answers' spread, a fit
# without one is tried, and kept if it leaves hardly more noise.
_CLEAR_BEND, _HARDLY = 0.1, 1.02


def fit_jointly(
    matrix: Any,
    answers: Floats,
    active: Any,
    slopes: Floats | None,
    *,
    background: bool | Literal["auto"],
    link: bool | Literal["auto"],
    ridge: Strengths | None,
    start: Fit | None,
    **options: Any,
) -> Fit:
    """Answers and slopes together; ``active`` tells the types that occur in some question."""
    table = matrix.toarray() if sparse.issparse(matrix) else matrix
    table = table if active.all() else table[:, active]
    known = None
    if slopes is not None:
        slopes = slopes[:, active]
        known = ((table > 0) & np.isfinite(slopes)).astype(np.float64)
        slopes = np.where(known > 0, slopes, 0.0)
        if not known.any():
            slopes = known = None
    equations = Equations(table, answers, slopes, known)

    def solve(background: bool, saturating: bool, start: JointResult | None) -> JointResult:
        return solve_joint(
            equations,
            background=background,
            saturating=saturating,
            ridge=ridge,
            start=start,
            **options,
        )

    some_empty = not bool((table.sum(axis=1) > 0).all())
    saturating, behind = bool(link), bool(background)
    same = start is not None and np.array_equal(start.active, active)
    found = solve(behind, saturating, start.found if start is not None and same else None)
    if link == "auto" and _bend(found, table) < _CLEAR_BEND:
        straight = solve(behind, False, None)
        if straight.noise <= _HARDLY * found.noise:
            found, saturating = straight, False
    if background == "auto" and not some_empty:
        without = solve(False, saturating, found)
        if without.noise <= found.noise:
            found, behind = without, False
    linear = np.append(found.values, [found.mass] * int(behind))[:, None]
    plain = assemble(found.importances, found.weight, linear, active, True, behind)
    slalom = replace(plain, link=found.link)
    return Fit(
        slalom,
        float(((slalom.predict(matrix) - answers) ** 2).mean()),
        "newton",
        found.iterations,
        found.converged,
        found.ridge,
        active,
        found.curvature,
        found.slope_weight,
        found,
    )


def _bend(found: JointResult, table: Floats) -> float:
    """How much saturation changes the expected answers, as a share of their spread."""
    if found.link is None:
        return 0.0
    base = found.mass / found.weight if found.weight > 0 else 0.0
    evidence = Slalom(found.values, found.importances, found.weight, base).predict(table)
    expected = found.link(evidence)
    bend = float(np.sqrt(np.mean((evidence - expected) ** 2)))
    return bend / max(float(expected.std()), 1e-300)
