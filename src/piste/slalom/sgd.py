"""SLALOM-SGD, the paper's algorithm 1: minibatches and Adam. Kept for comparison."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def solve_sgd(
    counts: Floats,
    outputs: Floats,
    *,
    background: bool,
    epochs: int = 60,
    learning_rate: float = 5e-3,
    batch: int = 128,
    seed: int = 0,
) -> tuple[Floats, float, Floats]:
    """Importances, background weight, and values with the background's mass in the last row.

    Defaults are those of the published package. Parameters begin at zero; the background, which
    the paper does not have, is learnt by its logarithm.
    """
    data = torch.tensor(counts), torch.tensor(outputs)
    types, classes = counts.shape[1], outputs.shape[1]
    s = torch.zeros(types, dtype=torch.float64, requires_grad=True)
    v = torch.zeros(types, classes, dtype=torch.float64, requires_grad=True)
    s0 = torch.zeros((), dtype=torch.float64, requires_grad=True)
    v0 = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([s, v, s0, v0] if background else [s, v], lr=learning_rate)
    order = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        shuffled = torch.randperm(len(counts), generator=order)
        for start in range(0, len(counts), batch):
            rows = shuffled[start : start + batch]
            chosen, wanted = data[0][rows], data[1][rows]
            mass = chosen * s.exp()
            top, total = mass @ v, mass.sum(dim=1, keepdim=True)
            if background:
                top, total = top + s0.exp() * v0, total + s0.exp()
            loss = ((top / total - wanted) ** 2).mean()
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own stub lacks a type
            adam.step()
    shift = float(s.mean().item())  # normalised to Σ s = 0, which changes no answer
    weight = float((s0 - shift).exp().item()) if background else 0.0
    linear = v.detach().numpy()
    if background:
        linear = np.vstack([linear, weight * v0.detach().numpy()])
    return s.detach().numpy() - shift, weight, linear
