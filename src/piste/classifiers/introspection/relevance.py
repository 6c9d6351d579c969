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
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from piste.classifiers.introspection.relevance_rules import Rules, elementwise
from piste.errors import PisteError


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
        ruled = step in _LINEAR or step == "Softmax" or (step in _PRODUCTS and len(ways) == 1)
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
