"""The state in which a user's model is asked, how a change of it shows, and copies around it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


@contextmanager
def evaluation_mode(model: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; every module comes back as it was.

    Never in inference mode: some models keep tensors of a pass, and could not be trained with
    those afterwards.

    Not only its mode: some models exchange their own parts when they meet a short sequence, and
    draw random weights for that.
    """
    before = [
        (module, dict(module._modules), plain_attributes(module)) for module in model.modules()
    ]
    try:
        for module, *_ in before:
            module.training = False
        with torch.inference_mode(False), torch.no_grad(), torch.random.fork_rng(devices=[]):
            yield
    finally:
        for module, parts, plain in before:
            if dict(module._modules) != parts:
                module._modules.clear()
                module._modules.update(parts)
            module.__dict__.update(plain)


def state_of(model: torch.nn.Module, *, versions: bool = False) -> object:
    """Everything by which a change of a model shows: modules, tensors, plain attributes.

    ``versions`` also counts changes of the numbers in a tensor; whatever shares the tensors need
    not know of those.
    """
    return [
        (
            id(module),
            plain_attributes(module) | {"training": None},
            [
                (id(tensor), _version(tensor) if versions else 0)
                for group in (module._parameters, module._buffers)
                for tensor in group.values()
                if tensor is not None
            ],
            len(module._forward_hooks) + len(module._forward_pre_hooks),
        )
        for module in model.modules()
    ]


def plain_attributes(module: torch.nn.Module) -> dict[str, Any]:
    """A module's numbers, words and switches (training mode, attention type …)."""
    plain = (bool, int, float, str, type(None))
    return {name: value for name, value in vars(module).items() if isinstance(value, plain)}


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else int(tensor._version)


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
