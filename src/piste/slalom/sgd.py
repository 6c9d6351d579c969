"""SLALOM-SGD, the paper's algorithm 1: minibatches and Adam. Kept for comparison."""

from __future__ import annotations

import numpy as np
import torch

from piste.types import Floats


def solve_sgd(
    counts: Floats,
    outputs: Floats,
    *,
    epochs: int = 60,
    learning_rate: float = 5e-3,
    batch: int = 128,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """Importances with Σ s = 0, and values (types × classes).

    Defaults are those of the published package. Parameters begin at zero.
    """
    data = torch.tensor(np.asarray(counts)), torch.tensor(outputs)
    types, classes = counts.shape[1], outputs.shape[1]
    s = torch.zeros(types, dtype=torch.float64, requires_grad=True)
    v = torch.zeros(types, classes, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([s, v], lr=learning_rate)
    order = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        shuffled = torch.randperm(len(counts), generator=order)
        for start in range(0, len(counts), batch):
            rows = shuffled[start : start + batch]
            chosen, wanted = data[0][rows], data[1][rows]
            mass = chosen * s.exp()
            total = mass.sum(dim=1, keepdim=True).clamp_min(1e-300)
            loss = ((mass @ v / total - wanted) ** 2).mean()
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own stub lacks a type
            adam.step()
    importances = s.detach().numpy()
    return importances - importances.mean(), v.detach().numpy()
