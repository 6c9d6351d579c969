"""Copies of a model that share its weights, and the layers in them that multiply by a matrix."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn


def twin_of(model: nn.Module, *, own_config: bool = False) -> nn.Module:
    """The same modules anew, in evaluation mode, around the same tensors and config."""
    shared: list[Any] = [*model.parameters(), *model.buffers()]
    if not own_config:
        shared += [module.config for module in model.modules() if hasattr(module, "config")]
    return copy.deepcopy(model, {id(one): one for one in shared}).eval()


def linear_weight(part: nn.Module) -> torch.Tensor | None:
    """Outputs × inputs of a linear layer, or of GPT-2's transposed kind of it; None of others.

    >>> linear_weight(nn.LayerNorm(3)) is None, tuple(linear_weight(nn.Linear(3, 2)).shape)
    (True, (2, 3))
    """
    weight = getattr(part, "weight", None)
    if not isinstance(weight, nn.Parameter):
        return None
    if isinstance(part, nn.Linear):
        return weight.detach()
    return weight.detach().T if type(part).__name__ == "Conv1D" else None
