"""Results made by hand with plausible numbers, so that showing is tested without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from piste.evaluation.metrics import figures_of, make
from piste.evaluation.metrics.removal import GRID
from piste.evaluation.results import Results, Row

# method → AOPC, R² over all sizes, error for few removals, seconds, calls
METHODS: dict[str, tuple[float, float, float, float, float]] = {
    "slalom": (0.881, 0.78, 0.020, 0.9, 560),
    "lime": (0.865, 0.49, 0.045, 1.1, 560),
    "kernel_shap": (0.800, -5.4, 0.670, 1.4, 560),
    "partition_shap": (0.843, 0.21, 0.060, 1.2, 540),
    "permutation_shap": (0.852, 0.35, 0.055, 1.3, 560),
    "linear": (0.868, 0.55, 0.040, 0.85, 560),
    "occlusion": (0.790, -0.30, 0.034, 0.3, 150),
    "gradient": (0.310, -1.9, 0.240, 0.06, 34),
    "gradient_x_input": (0.420, -2.6, 0.310, 0.07, 34),
    "integrated_gradients": (0.560, -0.8, 0.130, 0.5, 84),
    "smoothgrad": (0.330, -2.1, 0.220, 0.4, 59),
    "random": (0.280, -3.8, 0.390, 0.05, 33),
    "zero": (0.275, -0.9, 0.110, 0.05, 33),
}


def invented(
    methods: Sequence[str] = tuple(METHODS), examples: int = 40, seed: int = 0, **changes: Any
) -> Results:
    """Every method on every example: a method's level, the example's, and a little noise."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(examples, 3))
    rows = []
    for method in methods:
        aopc, r2, error, seconds, calls = METHODS[method.partition(":")[0]]
        noise = rng.normal(size=(examples, 4))
        for example in range(examples):
            hard, fit, size = shared[example]
            p = float(np.clip(aopc + 0.05 * hard + 0.02 * noise[example, 0], 0.02, 0.98))
            mse = error * np.exp(0.5 * fit + 0.2 * noise[example, 1]) * np.arange(1, 11) ** 0.9 / 3
            falling = 0.97 * (1 - p) ** (4 * GRID) * (1 - GRID) + 0.03
            figures = {
                "aopc": p,
                "insertion": 0.9 - 0.85 * p + 0.01 * noise[example, 2],
                **{f"mse_{k}": float(one) for k, one in enumerate(mse, start=1)},
                "mse_few": float(mse[:5].mean()),
                "mse_all": float(mse.mean() * 4),
                "r2_few": r2 - 0.1 + 0.1 * fit,
                "r2_all": min(r2 + 0.15 * abs(r2 - 1) * (fit + 0.3 * noise[example, 3]), 0.99),
                "spearman_single": float(np.clip(p - 0.1 + 0.05 * size, -1, 1)),
                "seconds": seconds * float(np.exp(0.3 * size)),
                "calls": calls,
            }
            curves = {
                "deletion": falling.tolist(),
                "insertion": (1.03 - falling).tolist(),
                "mse_by_removed": mse.tolist(),
            }
            rows.append(Row(str(example), method, figures, curves))
    fields: dict[str, Any] = {
        "rows": tuple(rows),
        "figures": figures_of(make(["deletion", "insertion", "fidelity", "single"])),
        "methods": tuple(methods),
        "settings": {
            "model": "piste:reviews",
            "data": "imdb",
            "budget": 500,
            "seed": 0,
            "versions": {"piste": "0.1.0", "torch": "2.13.0"},
            "command": "piste evaluate --data imdb --examples 40",
        },
    }
    return Results(**(fields | changes))
