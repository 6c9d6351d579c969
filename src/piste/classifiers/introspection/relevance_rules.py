"""The rules of relevance propagation, for torch's functions as they are called.

Each gives what the function gives, as something linear in what flows through it; the table stands
in :mod:`piste.classifiers.introspection.relevance`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch
from torch.overrides import TorchFunctionMode

Arguments: TypeAlias = tuple[Any, ...]
Named: TypeAlias = dict[str, Any]
Rule: TypeAlias = Callable[[Any, Arguments, Named], Any]
"""From a function, its arguments and its named arguments to its result."""


class Rules(TorchFunctionMode):
    """While it is entered, torch's functions follow the rules where they meet the input.

    >>> x = torch.tensor([0.0, 2.0], requires_grad=True)
    >>> with Rules():
    ...     y = torch.nn.functional.gelu(x) * x
    >>> y.sum().backward()
    >>> bool(torch.allclose(x.grad * x, y))
    True
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Arguments = (), kwargs: Named | None = None
    ) -> Any:
        kwargs = kwargs or {}
        rule = _RULES.get(getattr(func, "__name__", ""))
        if rule is None or not any(map(_flows, (*args, *kwargs.values()))):
            return func(*args, **kwargs)
        return rule(func, args, kwargs)


def elementwise(function: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """The identity rule: g(x) = x · bar(g(x) / x)."""
    y: torch.Tensor = function(x.detach().clone(), *args, **kwargs)  # it might work in place
    if not x.requires_grad:
        return y
    slope = torch.where(x.abs() < torch.finfo(x.dtype).tiny, torch.zeros_like(y), y / x).detach()
    line = x * slope
    return line + (y - line).detach()


def uniform(func: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """The uniform rule: the mean of the products in which all factors but one are constants."""
    factors = [place for place, one in enumerate(args) if _flows(one)]
    if len(factors) < 2:
        return func(*args, **kwargs)
    total: Any = 0
    for own in factors:
        others = (one.detach() if p in factors and p != own else one for p, one in enumerate(args))
        total = total + func(*others, **kwargs)
    return total / len(factors)


def _flows(thing: object) -> bool:
    return isinstance(thing, torch.Tensor) and thing.requires_grad


def _identity_rule(func: Any, args: Arguments, kwargs: Named) -> torch.Tensor:
    return elementwise(func, *args, **kwargs) if args else func(**kwargs)


def _uniform_rule(func: Any, args: Arguments, kwargs: Named) -> torch.Tensor:
    return uniform(func, *args, **kwargs)


def _constant_below(func: Any, args: Arguments, kwargs: Named) -> torch.Tensor:
    """What is divided by is a constant."""
    above, *below = args
    return func(above, *(one.detach() if _flows(one) else one for one in below), **kwargs)


def _constant(func: Any, args: Arguments, kwargs: Named) -> torch.Tensor:
    return func(*args, **kwargs).detach()


def _power(func: Any, args: Arguments, kwargs: Named) -> torch.Tensor:
    """x^−½ is a way to write 1/σ; other powers have no rule."""
    below = len(args) == 2 and isinstance(args[1], (int, float)) and args[1] < 0
    return _constant(func, args, kwargs) if below else func(*args, **kwargs)


def _layer_norm(
    x: torch.Tensor,
    shape: Iterable[int],
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    *_: Any,
) -> torch.Tensor:
    """(x − mean(x)) / bar(σ) · w + b."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    places = tuple(range(-len(tuple(shape)), 0))
    centred = wide - wide.mean(places, keepdim=True)
    y = centred * (centred.detach().square().mean(places, keepdim=True) + eps).rsqrt()
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias).to(x.dtype)


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """softmax(q kᵀ · scale + mask) v, both products by the uniform rule."""
    if enable_gqa:
        key, value = (_repeated(one, query.shape[-3]) for one in (key, value))
    scores = uniform(torch.matmul, query, key.transpose(-2, -1))
    scores = scores * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return uniform(torch.matmul, scores.softmax(dim=-1), value)


def _repeated(states: torch.Tensor, heads: int) -> torch.Tensor:
    """Keys or values that several heads of queries share, once for each of them."""
    *rows, own, length, width = states.shape
    times = states.unsqueeze(-3).expand(*rows, own, heads // own, length, width)
    return times.reshape(*rows, heads, length, width)


def _baddbmm(
    input: torch.Tensor,
    batch1: torch.Tensor,
    batch2: torch.Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> torch.Tensor:
    product = uniform(torch.bmm, batch1, batch2) * alpha
    return product if beta == 0 else input * beta + product


def _instead(function: Callable[..., torch.Tensor]) -> Rule:
    return lambda func, args, kwargs: function(*args, **kwargs)


def _for_all(names: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


# By name, because one function has several: as an operator, a method, in torch.nn.functional.
_RULES: dict[str, Rule] = {
    **_for_all(
        "relu relu6 gelu silu tanh sigmoid mish elu selu celu leaky_relu prelu hardswish hardtanh "
        "hardsigmoid logsigmoid softplus softsign clamp clip rms_norm",
        _identity_rule,
    ),
    **_for_all(
        "mul multiply __mul__ __rmul__ matmul __matmul__ __rmatmul__ bmm mm einsum", _uniform_rule
    ),
    **_for_all("div divide true_divide __truediv__ __div__", _constant_below),
    **_for_all("rsqrt reciprocal __rtruediv__ __rdiv__", _constant),
    **_for_all("pow __pow__", _power),
    "layer_norm": _instead(_layer_norm),
    "scaled_dot_product_attention": _instead(_attention),
    "baddbmm": _instead(_baddbmm),
}
