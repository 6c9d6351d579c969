"""The rules of relevance propagation, each by hand with numpy and by what it must keep."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everyone calls it

from piste.classifiers.introspection.relevance import RelevanceModel, Rules, steps_without_rule

Array = np.ndarray


# -- the rules as they are published, from relevance to relevance ------------------------------


def shared_out(parts: Array, whole: Array, relevance: Array) -> Array:
    """The ε-rule with ε → 0: every part gets what it contributes to the whole."""
    return parts / whole * relevance


def through_linear(x: Array, weight: Array, out: Array, relevance: Array) -> Array:
    """Of y = W x + b, last axis; what b contributes is lost."""
    return x * ((relevance / out) @ weight)


def through_norm(x: Array, weight: Array, eps: float, out: Array, relevance: Array) -> Array:
    """Identity rule: the deviation is a number, and x − mean(x) is linear."""
    deviation = np.sqrt(x.var(axis=-1, keepdims=True) + eps)
    centred = np.eye(x.shape[-1]) - 1 / x.shape[-1]
    back = relevance / out * weight / deviation
    return x * (back @ centred)


def through_product(a: Array, b: Array, relevance: Array) -> tuple[Array, Array]:
    """Uniform rule for out[i, j] = Σ_k a[i, k] b[k, j]: every summand halves its relevance."""
    summands = a[:, :, None] * b[None, :, :]
    each = shared_out(summands, (a @ b)[:, None, :], relevance[:, None, :]) / 2
    return each.sum(axis=2), each.sum(axis=0)


def through_softmax(x: Array, out: Array, relevance: Array) -> Array:
    """Taylor rule: x_i (R_i − s_i Σ_j R_j)."""
    return x * (relevance - out * relevance.sum(axis=-1, keepdims=True))


def softmax(x: Array) -> Array:
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


# -- ours, from values to values, with their derivative ----------------------------------------


class Gated(nn.Module):
    """RMSNorm as models write it, then W (silu(G x) ⊙ U x)."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        rng = torch.Generator().manual_seed(0)
        self.gate, self.up, self.down = (
            nn.Parameter(torch.randn(width, width, generator=rng).double()) for _ in range(3)
        )
        self.scale = nn.Parameter(torch.randn(width, generator=rng).double())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.scale * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
        return (F.silu(x @ self.gate.T) * (x @ self.up.T)) @ self.down.T


def relevance(model: nn.Module, x: torch.Tensor) -> tuple[Array, torch.Tensor]:
    x = x.clone().requires_grad_()
    out = model(x=x)
    (slopes,) = torch.autograd.grad(out.sum(), x)
    return (slopes * x).detach().numpy(), out


def test_gates_and_root_mean_squares_by_hand() -> None:
    model = Gated()
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(1)).double()
    found, out = relevance(RelevanceModel(copy.deepcopy(model)), x)
    assert torch.allclose(out, model(x))
    assert steps_without_rule(out) == []
    gate, up, down, scale = (p.detach().numpy() for p in model.parameters())
    raw = x.numpy()
    normed = scale * raw / np.sqrt((raw**2).mean(-1, keepdims=True) + 1e-6)
    g, u = normed @ gate.T, normed @ up.T
    product = g / (1 + np.exp(-g)) * u
    r = through_linear(product, down, product @ down.T, product @ down.T)
    expected = through_linear(normed, gate, g, r / 2) + through_linear(normed, up, u, r / 2)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(found.sum(), out.detach().sum())  # no bias: nothing is lost


def test_a_linear_network_gives_gradient_times_input() -> None:
    with torch.random.fork_rng():
        layers = nn.Sequential(nn.Linear(5, 7), nn.Dropout(0.5), nn.Linear(7, 3)).eval()
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(1))
    given = x.clone().requires_grad_()
    (slopes,) = torch.autograd.grad(layers(given).sum(), given)

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = copy.deepcopy(layers)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x)

    found, out = relevance(RelevanceModel(Wrapped()), x)
    np.testing.assert_allclose(found, (slopes * x).numpy(), rtol=1e-5, atol=1e-6)
    assert torch.equal(out, layers(x))


@pytest.mark.parametrize(
    "function",
    [
        torch.tanh,
        F.gelu,
        F.relu,
        nn.SiLU(),
        nn.ReLU(inplace=True),
        torch.sigmoid,
        lambda x: F.layer_norm(x, (5,)) + x.mean(),
        lambda x: F.rms_norm(x, (5,)),
        lambda x: x / (x.var(-1, keepdim=True) + 1).sqrt(),
        lambda x: x * (x.square().mean(-1, keepdim=True) + 1) ** -0.5,
        lambda x: x * (1 / x.norm()),
        lambda x: x @ x.T,
        lambda x: torch.einsum("ij,kj->ik", x, x),
        lambda x: x * x,
        lambda x: torch.baddbmm(torch.zeros(1, 4, 4), x[None], x.T[None], alpha=0.5),
        lambda x: F.gelu(x) * x.flip(0) * torch.tanh(x),
    ],
)
def test_values_stay_and_nothing_is_lost(function: Any) -> None:
    """Without biases and softmax, relevance in is relevance out."""
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(2)) + 0.3
    given = x.clone().requires_grad_()
    with Rules():
        out = function(given + 0)
    assert torch.allclose(out, function(x.clone()), atol=1e-6)
    assert steps_without_rule(out) == []
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(3))
    (slopes,) = torch.autograd.grad((out * weights).sum(), given)
    total = float((out * weights).sum())
    assert float((slopes * given).sum()) == pytest.approx(total, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(
    ("function", "step"),
    [
        (torch.exp, "Exp"),
        (lambda x: x.pow(2), "Pow"),
        (lambda x: x.cumsum(0), "Cumsum"),
        (lambda x: x.sqrt(), "Sqrt"),
        (lambda x: F.normalize(x), "Div"),
        (lambda x: x.mul_(x.detach() + x), "Mul"),  # in place: caught by what it leaves
        (lambda x: torch.fft.fft(x).real, "FftR2C"),
    ],
)
def test_what_has_no_rule_is_found(function: Any, step: str) -> None:
    given = torch.rand(4, 5, generator=torch.Generator().manual_seed(2)).requires_grad_()
    with Rules():
        out = function(given + 0)
    assert step in steps_without_rule(out)
