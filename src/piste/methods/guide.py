"""A guide: what one gradient inside the model says of every unit, for fits to few answers."""

from __future__ import annotations

import numpy as np
import torch

from piste.methods.base import Task
from piste.types import Floats, Ints

HALF_WAY = 0.5
"""Between padding and the text. At the text itself many answers lie on a plateau, where gradients
are small and say little."""


def guide_of(task: Task, types: Ints) -> Floats | None:
    """(e − e′) · ∂f/∂e at the embeddings (e + e′)/2, e′ those of the baseline: integrated gradients
    in one step, the midpoint rule.

    Means over the units of every type, with 1 as their usual size. None where the model can't be
    looked into, has no gradient, or several numbers are explained; and for answers in free text,
    whose spans are explained from what was asked about the whole answer.
    """
    if task.target.kind in ("all", "answer"):
        return None
    with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng(devices=[]):
        try:
            access = task.subject.classifier.gradient_access(task.subject, task.target)
            baseline = next(
                one for one in map(access.baseline, access.baselines) if one is not None
            )
            way = (access.start - baseline).detach()
            place = (baseline + HALF_WAY * way).detach().requires_grad_()
            (slopes,) = torch.autograd.grad(access.numbers(place).sum(), place)
        except Exception:  # models and targets of others fail in many ways, and all goes without it
            return None
    found = access.per_unit((slopes * way)[0].sum(dim=-1))
    mean = np.bincount(types, found) / np.maximum(np.bincount(types), 1)
    size = float(np.sqrt((mean**2).mean()))
    if not 0 < size < np.inf:
        return None
    task.passes += access.calls
    return np.asarray(mean / size)
