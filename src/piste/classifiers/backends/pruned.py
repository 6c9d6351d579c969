"""A model without the work that its head never looks at.

A classification head reads one position of each sequence: the first token of an encoder, the last
of a decoder. What the last layer computes at all other positions is thrown away, except the keys
and values the one position attends to. So the linear layers behind them need only one row of
each sequence. Which ones these are is not looked up but tried: a layer is reduced to one row if
the answers stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from piste.classifiers.base import linear_weight, twin_of

# Key and value projections stand between layers that can be reduced; further back nothing can.
_GIVE_UP = 3


class ReadPosition:
    """Where the head of each sequence of the present batch reads; learned from its mask."""

    def __init__(self, last: bool) -> None:
        self.last = last
        self.used = False
        self._rows: torch.Tensor | None = None
        self._width = 0

    def note(self, module: nn.Module, args: tuple[Any, ...], inputs: dict[str, Any]) -> None:
        """A forward pre-hook of the whole model."""
        mask = inputs["attention_mask"]
        self._width = mask.shape[1]
        if self.last:
            self._rows = mask.shape[1] - 1 - mask.flip(1).argmax(dim=1)
        else:
            self._rows = mask.argmax(dim=1)

    def pick(self, x: torch.Tensor) -> torch.Tensor:
        """One position of each sequence: sequences × 1 × features."""
        assert self._rows is not None
        self.used = True
        # Where keys and values of earlier tokens were given, the mask counts those as well.
        rows = self._rows - (self._width - x.shape[1])
        index = rows[:, None, None].expand(-1, 1, x.shape[2])
        return x.gather(1, index)


class FirstRow(ReadPosition):
    """The head reads the first token of every sequence, whatever the inputs are called."""

    def __init__(self) -> None:
        super().__init__(last=False)

    def note(self, module: nn.Module, args: tuple[Any, ...], inputs: dict[str, Any]) -> None:
        return

    def pick(self, x: torch.Tensor) -> torch.Tensor:
        self.used = True
        return x[:, :1]


class OneRow(nn.Module):
    """A linear layer applied where the head reads; all other positions get a copy of that row."""

    def __init__(self, part: nn.Module, position: ReadPosition) -> None:
        super().__init__()
        self.part = part
        self.position = position

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.ndim != 3:
            return self.part(x)
        row = self.part(self.position.pick(x))
        copies = row.expand(-1, x.shape[1], -1)
        # Attention is slow on queries that are one row in memory; wider layers feed no attention.
        return copies.contiguous() if row.shape[2] <= x.shape[2] else copies


def pruned_copy(
    model: nn.Module,
    agrees: Callable[[nn.Module], bool],
    positions: Sequence[ReadPosition] | None = None,
) -> nn.Module | None:
    """A copy that shares all weights and skips what the head never reads; None if nothing can go.

    ``agrees`` says whether a copy still answers as the model does; ``positions`` are where its
    head may read.
    """
    for position in positions or (ReadPosition(last=False), ReadPosition(last=True)):
        twin = twin_of(model)
        twin.register_forward_pre_hook(position.note, with_kwargs=True)
        if _reduce(twin, position, agrees):
            return twin
    return None


def _reduce(twin: nn.Module, position: ReadPosition, agrees: Callable[[nn.Module], bool]) -> int:
    """Reduce linear layers from the end on; how many could be."""
    reduced = refused = 0
    for parent, name, part in reversed(_linear_layers(twin)):
        setattr(parent, name, OneRow(part, position))
        position.used = False
        try:
            right = agrees(twin)
        except (RuntimeError, ValueError, IndexError, TypeError, AttributeError):
            right = False  # it writes into its results, needs another shape, reads the weights
        if right and position.used:
            reduced, refused = reduced + 1, 0
            continue
        setattr(parent, name, part)
        refused += int(not right)
        if refused >= _GIVE_UP:
            break
    return reduced


def _linear_layers(model: nn.Module) -> list[tuple[nn.Module, str, nn.Module]]:
    """Every linear layer with its parent and its name there, in the order they were made."""
    named = dict(model.named_modules())
    paths = [path for path, part in named.items() if linear_weight(part) is not None]
    return [
        (named[path.rpartition(".")[0]], path.rpartition(".")[2], named[path]) for path in paths
    ]
