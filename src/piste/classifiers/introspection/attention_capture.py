"""Attention weights caught where torch computes them, with what they are multiplied by.

Models are told apart by what they do, not by the names of their classes. Within
:class:`AttentionCapture`, ``scaled_dot_product_attention`` is computed in two steps, with the
weights in between; and where a model computes attention by itself, a softmax over the keys is
followed through whatever leaves it a matrix of tokens × tokens (dropout, another type, heads folded
into rows) to the product with the values, and from there to the layer that puts the heads together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from piste.errors import PisteError

_MOVES = "dropout contiguous clone view reshape flatten squeeze unsqueeze __getitem__"
_TYPES = "to type type_as float half bfloat16 double"
_CHANGES = "mul __mul__ masked_fill nan_to_num"
_SAME = frozenset(" ".join((_MOVES, _TYPES, _CHANGES)).split())
"""Steps between the softmax and the product after which weights are still weights."""
_PRODUCTS = ("matmul", "__matmul__", "bmm")
_MOST = 2**29
"""Weights that are kept at most: with copies and gradients about 10 GB."""


@dataclass(frozen=True)
class AttentionInputs:
    """What torch's ``scaled_dot_product_attention`` is called with, by its names."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    attn_mask: torch.Tensor | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False

    @property
    def size(self) -> tuple[int, int]:
        """Queries × keys."""
        return self.query.shape[-2], self.key.shape[-2]

    @property
    def sharpness(self) -> float:
        """What the products of queries and keys are multiplied by."""
        return self.query.shape[-1] ** -0.5 if self.scale is None else self.scale

    def for_each_head(self, states: torch.Tensor) -> torch.Tensor:
        """Keys or values, those that several heads of queries share once for each of them."""
        if not self.enable_gqa:
            return states
        *rows, own, length, width = states.shape
        heads = self.query.shape[-3]
        times = states.unsqueeze(-3).expand(*rows, own, heads // own, length, width)
        return times.reshape(*rows, heads, length, width)


@dataclass
class AttentionCall:
    """One attention as it was met: a batch of one, heads apart from it or folded into it."""

    weights: torch.Tensor
    values: torch.Tensor | None = None
    """… × keys × features, None as long as no product with them was seen."""
    mixed: torch.Tensor | None = None
    """What the product gave."""
    projection: torch.Tensor | None = None
    """(heads · features) × width, the matrix that puts the heads together."""


class AttentionCapture(TorchFunctionMode):
    """While it is entered, attention weights of ``tokens`` × ``tokens`` are kept as they arise.

    >>> with AttentionCapture(2) as found:
    ...     _ = torch.softmax(torch.zeros(1, 1, 2, 2).requires_grad_(), -1) @ torch.ones(1, 1, 2, 3)
    >>> [(one.weights.shape, one.values.shape) for one in found.attentions()]
    [(torch.Size([1, 1, 2, 2]), torch.Size([1, 1, 2, 3]))]
    """

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.tokens = tokens
        self.missed: list[tuple[int, int]] = []
        """Queries × keys of attentions between other things than the tokens."""
        self._calls: list[AttentionCall] = []
        self._size = 0

    def attentions(self) -> list[AttentionCall]:
        """All attentions between the tokens, in the order they were computed."""
        # A softmax over three dimensions may be anything (a choice of experts), unless it mixes.
        return [one for one in self._calls if self._is_square(one.weights) and _is_attention(one)]

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            given = AttentionInputs(*args, **kwargs)
            if given.size == (self.tokens, self.tokens):
                return self._attend(given)
            self.missed.append(given.size)
        result = func(*args, **kwargs)
        if name == "softmax":
            self._keep(result, args, kwargs)
        elif self._calls and isinstance(result, torch.Tensor):
            if self._calls[-1].mixed is None:
                self._follow(name, args, kwargs, result)
            elif self._calls[-1].projection is None:
                self._find_projection(name, args)
        return result

    def _attend(self, given: AttentionInputs) -> torch.Tensor:
        key, value = given.for_each_head(given.key), given.for_each_head(given.value)
        scores = given.query @ key.transpose(-2, -1) * given.sharpness
        scores = masked(scores, given.attn_mask, given.is_causal)
        weights = torch.softmax(scores, dim=-1)  # this mode is not active within itself
        mixed = weights @ value
        self._note(AttentionCall(weights, value, mixed))
        return mixed

    def _keep(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note a softmax over keys; those without a gradient are part of something else."""
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if (
            not isinstance(result, torch.Tensor)
            or not result.requires_grad
            or result.ndim < 3
            or dim not in (-1, result.ndim - 1)
        ):
            return
        queries, keys = result.shape[-2:]
        if queries == self.tokens and keys >= self.tokens:  # more keys: a sink to be cut off
            self._note(AttentionCall(result))
        elif result.ndim > 3:
            self.missed.append((queries, keys))

    def _note(self, call: AttentionCall) -> None:
        """Keep what was met, unless there is too much of it: memory would be gone before."""
        self._size += call.weights.numel()
        if self._size > _MOST:
            raise PisteError(
                f"The attention between {self.tokens} tokens has more than {_MOST:,} weights in "
                f"{len(self._calls) + 1} layers, too many to keep: give a shorter input, or choose "
                "a method that does not look at attention."
            )
        self._calls.append(call)

    def _follow(self, name: str, args: tuple[Any, ...], kwargs: Any, result: torch.Tensor) -> None:
        """From the softmax of a model's own attention to what it is multiplied by."""
        call = self._calls[-1]
        operands: tuple[Any, ...] = args or (kwargs.get("input"),)
        if name == "einsum":
            self._follow_einsum(operands, result)
        elif operands[0] is not call.weights:
            return
        elif name in _SAME and self._is_square(result):
            call.weights = result
        elif name in _PRODUCTS and len(operands) > 1:
            call.values, call.mixed = operands[1], result

    def _follow_einsum(self, operands: tuple[Any, ...], result: torch.Tensor) -> None:
        """A product written in letters: values are turned to … × keys × features."""
        call = self._calls[-1]
        equation, *factors = operands
        if len(factors) == 1 and isinstance(factors[0], (list, tuple)):
            factors = list(factors[0])
        if not isinstance(equation, str) or len(factors) != 2 or factors[0] is not call.weights:
            return
        ours, theirs = equation.replace(" ", "").split("->")[0].split(",")
        key = ours[-1]
        if "." in equation or key not in theirs:
            return
        shared = [letter for letter in ours[:-2] if letter in theirs]
        features = [letter for letter in theirs if letter not in (*shared, key)]
        order = [theirs.index(letter) for letter in (*shared, key, *features)]
        call.mixed = result
        if len(features) == 1:
            call.values = factors[1].permute(order)

    def _find_projection(self, name: str, args: tuple[Any, ...]) -> None:
        """The linear layer that is given the heads' results side by side, if there is one."""
        call = self._calls[-1]
        if name == "linear":
            given, matrix = args[0], args[1]
        elif name == "addmm":  # GPT-2's linear layers have their matrix the other way round
            given, matrix = args[1], args[2].T
        else:
            return
        mixed = call.mixed
        if mixed is None or mixed.ndim < 3 or mixed.shape[-2] != self.tokens:
            return
        heads = mixed.reshape(-1, *mixed.shape[-2:])
        if given.numel() != heads.numel() or given.shape[-1] != len(heads) * heads.shape[-1]:
            return
        side_by_side = heads.transpose(0, 1).reshape(self.tokens, -1)
        if torch.equal(given.detach().reshape(self.tokens, -1), side_by_side.detach()):
            call.projection = matrix.T

    def _is_square(self, tensor: torch.Tensor) -> bool:
        return tensor.ndim >= 3 and tensor.shape[-2:] == (self.tokens, self.tokens)


def _is_attention(call: AttentionCall) -> bool:
    return call.mixed is not None or call.weights.ndim > 3


def masked(scores: torch.Tensor, mask: torch.Tensor | None, is_causal: bool) -> torch.Tensor:
    """Scores … × queries × keys as torch's attention masks them, before their softmax.

    >>> masked(torch.zeros(2, 2), None, True).softmax(dim=-1).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is None:
        return scores
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores + mask
