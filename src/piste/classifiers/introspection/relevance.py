"""Relevance propagation as gradient × input: a model whose derivative follows the rules of LRP.

A twin computes what the model computes, but every operation is exchanged for one that is linear in
what flows through it and has the same value there. A bar means: taken as a constant.

=========================  ===========================  =======================================
operation                  instead                      rule
=========================  ===========================  =======================================
linear layer, sum, copy    as it is                     ε-rule with ε → 0
element-wise y = g(x)      x · bar(g(x) / x)            identity rule
divided by a deviation σ   x / bar(σ)                   identity rule (LayerNorm, RMSNorm, …)
product a · b              ½ (a · bar(b) + bar(a) · b)  uniform rule: half to each factor
softmax                    as it is                     Taylor rule: its own derivative
=========================  ===========================  =======================================

Then Σ x ∂f/∂x over the features x of a token is its relevance (Bach et al., 2015; Achtibat et al.,
ICML 2024). Operations are caught as torch runs them, so no list of model classes is needed, and
afterwards the graph of the pass shows whether anything is left that has no rule.

Layer-wise relevance propagation is patented for commercial use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from piste.classifiers.introspection.attention_capture import AttentionInputs, masked
from piste.errors import PisteError

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


def _attention(*args: Any, **kwargs: Any) -> torch.Tensor:
    """softmax(q kᵀ · scale + mask) v, both products by the uniform rule."""
    given = AttentionInputs(*args, **kwargs)
    key, value = given.for_each_head(given.key), given.for_each_head(given.value)
    scores = uniform(torch.matmul, given.query, key.transpose(-2, -1)) * given.sharpness
    scores = masked(scores, given.attn_mask, given.is_causal)
    return uniform(torch.matmul, scores.softmax(dim=-1), value)


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


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Steps of torch's graph that are linear in what flows through them …
_LINEAR = _names(
    "AccumulateGrad Add Sub Rsub Neg View UnsafeView ReshapeAlias Alias Transpose T Permute Expand "
    "Clone ToCopy Slice Select Index IndexSelect Gather Cat Stack Split SplitWithSizes UnsafeSplit "
    "Unbind Squeeze Unsqueeze Sum Mean MaskedFill Where Repeat Roll Flip ConstantPadNd"
)
# … or only if no more than one of their factors does.
_PRODUCTS = _names("Mul Div Mm Bmm Mv Dot Addmm Baddbmm Linear Convolution")
# What makes log-probabilities of logits: the explained number is a function of the logits, and
# their relevance is its gradient there times the logit, as for log-odds of a class.
_READOUT = _names("LogSoftmax Logsumexp")


class RelevanceModel(nn.Module):
    """A twin that computes under the rules; it is changed for good."""

    def __init__(self, twin: nn.Module) -> None:
        super().__init__()
        for part in twin.modules():
            _take_as_constant(part)
            _follow_activations(part)
            config: Any = getattr(part, "config", None)
            if getattr(config, "_attn_implementation", "eager") not in ("eager", "sdpa", None):
                config._attn_implementation = "eager"  # other kernels can't be looked into
        self.twin = twin

    def forward(self, **inputs: Any) -> Any:
        with Rules():
            return self.twin(**inputs)


def check_rules(name: str, own: torch.Tensor, ruled: torch.Tensor) -> None:
    """Refuse a model of which a step has no rule, or whose logits the rules change."""
    missing = ", ".join(steps_without_rule(ruled))
    if missing:
        raise PisteError(
            f"{name} computes with steps that have no rule for relevance ({missing}): choose "
            "another method, such as integrated_gradients or slalom."
        )
    scale = float(own.abs().max().clamp_min(1e-6))
    difference = float((own - ruled.detach()).abs().max()) / scale
    if not difference <= max(1e-4, 16 * torch.finfo(own.dtype).eps):
        raise PisteError(
            f"The rules for relevance change the answer of {name} by {difference:.2g} of its "
            "size: choose another method, such as integrated_gradients or slalom."
        )


def steps_without_rule(output: torch.Tensor) -> list[str]:
    """Names of all steps between input and output that are neither linear nor a softmax.

    >>> x = torch.ones(3, requires_grad=True)
    >>> steps_without_rule((2 * x).softmax(0)), steps_without_rule(x * x.exp())
    ([], ['Exp', 'Mul'])
    """
    found, seen = set(), set()
    waiting = [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        ways = [before for before, _ in node.next_functions if before is not None]
        step = re.sub(r"Backward\d*$", "", node.name().rpartition("::")[2])
        ruled = (
            step in _LINEAR | _READOUT
            or step == "Softmax"
            or (step in _PRODUCTS and len(ways) == 1)
        )
        if not ruled:
            found.add(step)
        waiting += ways
    return sorted(found)


def _take_as_constant(part: nn.Module) -> None:
    """Own parameters around the same numbers: only what depends on the input has a gradient."""
    for name, parameter in part._parameters.items():
        if parameter is not None and parameter.requires_grad:
            part._parameters[name] = nn.Parameter(parameter.detach(), requires_grad=False)


def _follow_activations(part: nn.Module) -> None:
    """Element-wise modules and functions as a whole: inside they may be products and powers."""
    if next(part.children(), None) is None and next(part.parameters(), None) is None:
        if is_elementwise(part):
            part.forward = partial(elementwise, part.forward)
        return
    for name, value in list(vars(part).items()):
        if "act" in name and callable(value) and is_elementwise(value):
            setattr(part, name, partial(elementwise, value))


def is_elementwise(function: Callable[[torch.Tensor], Any]) -> bool:
    """Whether every output depends on its own input only; found by trying. Not so the identity.

    >>> is_elementwise(nn.GELU()), is_elementwise(nn.Softmax(dim=-1)), is_elementwise(nn.Identity())
    (True, False, False)
    """
    x, moved = torch.linspace(-3, 3, 7), torch.linspace(-3, 3, 7)
    moved[3] += 0.5
    others = torch.arange(7) != 3
    try:
        with torch.no_grad():
            before, after = function(x.clone()), function(moved)
        same = before.shape == x.shape and torch.equal(before[others], after[others])
    except Exception:  # it takes something else: whatever it is, no activation
        return False
    return same and not torch.equal(before, x)
