"""Linear layers in 8-bit integers, with a scale of its own for every token and every output.

Most dynamic quantisers take one scale for a whole batch, so that an answer depends on what else
was asked with it. Here every row of activations is divided by its own largest number first: an
answer is the same in any batch, and the error is about half as large.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import nn

from piste.classifiers.backends.backend import Inputs, TorchRuntime
from piste.classifiers.base import linear_weight, twin_of
from piste.errors import PisteError


class Int8Runtime(TorchRuntime):
    """A copy of the model that shares everything with it but the weights of its linear layers."""

    name = "torch-int8"
    allowed = 0.1

    def __init__(self, model: Any, example: Inputs | None = None) -> None:
        first = next(model.parameters())
        if first.device.type != "cpu" or first.dtype != torch.float32:
            raise PisteError(
                f"runtime='torch-int8' is for float32 models on the CPU, but this one is "
                f"{str(first.dtype).removeprefix('torch.')} on {first.device}: use runtime='torch'."
            )
        super().__init__(quantised(model))


def quantised(model: nn.Module) -> nn.Module:
    """A copy with integer linear layers; all other parts share their tensors with the model's."""
    twin = twin_of(model)
    _exchange(twin)
    return twin


def _exchange(module: nn.Module) -> None:
    for name, part in module.named_children():
        weight = linear_weight(part)
        if weight is None:
            _exchange(part)
        else:
            setattr(module, name, RowInt8Linear(weight.contiguous(), getattr(part, "bias", None)))


class RowInt8Linear(nn.Module):
    """x Wᵀ + b with x and W rounded to 8 bits, scaled per row of x and per row of W.

    >>> layer = nn.Linear(16, 4)
    >>> x = torch.linspace(-1, 1, 32).reshape(2, 16)
    >>> rounded = RowInt8Linear(layer.weight.detach(), layer.bias)
    >>> bool(((rounded(x) - layer(x)).abs() < 0.05).all())
    True
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        super().__init__()
        self._bias = None if bias is None else bias.detach()
        self._steps = activation_steps()
        self._weight = _Integers(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        highest, lowest = rows.amax(dim=-1, keepdim=True), rows.amin(dim=-1, keepdim=True)
        scale = torch.maximum(highest, -lowest).clamp_min_(1e-30)
        product = self._weight.multiply(rows, scale, self._steps)
        if self._bias is None:
            product.mul_(scale)
        else:
            product = torch.addcmul(self._bias, product, scale)
        return product.reshape(*x.shape[:-1], -1)


class _Integers:
    """A weight matrix rounded to −127 … 127 per row, packed for the CPU."""

    def __init__(self, weight: torch.Tensor) -> None:
        self._scales = weight.abs().amax(dim=1).clamp_min(1e-30) / 127
        self._zeros = torch.zeros(len(weight), dtype=torch.int64)
        rounded = torch.round(weight / self._scales[:, None]).to(torch.int8)
        self._packed = torch.ops.onednn.qlinear_prepack(rounded, None)

    def multiply(self, x: torch.Tensor, scale: torch.Tensor, steps: int) -> torch.Tensor:
        """Products with x / scale, which is within −1 … 1, rounded to multiples of 1/steps."""
        # Unsigned, with ``steps + 1`` as zero; adding a half more makes cutting off rounding.
        rounded = (x * (steps / scale)).add_(steps + 1.5).to(torch.uint8)
        product: torch.Tensor = torch.ops.onednn.qlinear_pointwise(
            rounded,
            1.0 / steps,
            steps + 1,
            self._packed,
            self._scales,
            self._zeros,
            None,
            1.0,
            0,
            torch.float32,
            "none",
            [],
            "",
        )
        return product


@cache
def activation_steps() -> int:
    """How finely activations may be rounded: 127 steps, or 63 where the CPU's sums overflow.

    Without dot-product instructions pairs of products are added in 16 bits, which large numbers
    exceed; the worst case is tried.
    """
    x, weight = torch.ones(1, 64), torch.ones(8, 64)
    product = _Integers(weight).multiply(x, torch.ones(1, 1), 127)
    return 127 if bool(torch.allclose(product, x @ weight.T, rtol=1e-3)) else 63
