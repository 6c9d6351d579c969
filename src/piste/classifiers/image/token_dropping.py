"""Image models without some of their patches: the tokens are really absent.

A vision transformer first makes tokens of an image (patch embedding, position, class token) and
then lets them attend to each other. Between the two there is a place where everything that is
known of the image stands in one array, rows × tokens × features. A twin that is given this array
instead of an image can be given fewer tokens.

Where this place is, is not looked up but tried: :func:`find_place` looks for a module of which
each patch changes one token of the output, which is all that reaches the answer, behind which the
order of the tokens does not matter, and which may have fewer of them. Without the last two, tokens
can be looked at there but not taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from piste.classifiers.base import twin_of
from piste.classifiers.image.units import Patches

_MOST_MORE = 64
"""Tokens there may be beside those of the patches: class, distillation, registers."""
_BESIDE = "the image also reaches the answer past these tokens"
FAILURES = (RuntimeError, ValueError, TypeError, IndexError, AttributeError, AssertionError)


@dataclass(frozen=True)
class TokenLayout:
    """The module whose output is all tokens, and which of them the patches are."""

    path: str
    first: int
    """The first patch's token; the others follow row by row."""
    patches: int
    tokens: int


class TokenInput:
    """A twin of an image model that can compute with given tokens in place of an image's.

    ``twin`` is changed for good: it must not be the user's model.
    """

    def __init__(self, twin: nn.Module, path: str) -> None:
        self.twin = twin
        module = twin.get_submodule(path)
        self._make: Callable[..., Any] = module.forward
        self._given: torch.Tensor | None = None
        self._rest: tuple[Any, ...] | None = None
        self._stops = False
        module.forward = self._hand_over

    def _hand_over(self, *args: Any, **kwargs: Any) -> Any:
        if self._given is not None:
            return self._given if self._rest is None else (self._given, *self._rest)
        made = self._make(*args, **kwargs)
        if self._stops:
            raise _MadeError(made)
        return made

    def embed(self, values: torch.Tensor) -> torch.Tensor:
        """The tokens of images, rows × tokens × features."""
        self._stops = True
        try:
            self.twin(pixel_values=values)
        except _MadeError as made:
            found = made.output
        finally:
            self._stops = False
        if isinstance(found, tuple):
            self._rest = found[1:]
            return found[0]
        return found

    def logits(
        self, tokens: torch.Tensor, values: torch.Tensor, *, by: nn.Module | None = None
    ) -> torch.Tensor:
        """The answers to rows of tokens; ``values`` is any image of the size they come from.

        ``by`` is something around the twin that is to run it.
        """
        self._given = tokens
        try:
            # A view: the image is not looked at, only its shape is.
            rows = values[:1].expand(len(tokens), *values.shape[1:])
            return (by or self.twin)(pixel_values=rows).logits
        finally:
            self._given = None


class _MadeError(Exception):
    """Carries a module's output out of a pass that need not go on."""

    def __init__(self, output: Any) -> None:
        super().__init__()
        self.output = output


def first_line(problem: Exception) -> str:
    """What an error says, short enough to stand in a sentence."""
    return (str(problem).strip() or type(problem).__name__).splitlines()[0][:120]


# -- finding -------------------------------------------------------------------------------------


def find_patches(model: nn.Module, height: int, width: int, channels: int) -> Patches | None:
    """How a model cuts an image: by a convolution of the pixels that moves by its own size.

    Read from its layers; nothing is run.
    """
    for module in model.modules():
        if not isinstance(module, nn.Conv2d) or module.in_channels != channels:
            continue
        if module.stride == module.kernel_size and module.padding in ((0, 0), "valid"):
            high, wide = (int(size) for size in module.kernel_size)
            rows, columns = height // high, width // wide
            return Patches(rows, columns, high, wide) if rows and columns else None
    return None


def find_place(
    model: nn.Module, values: torch.Tensor, patches: Patches
) -> tuple[TokenLayout | None, str]:
    """Where all of an image stands in tokens, and why none of them can be taken out there.

    Nothing speaks against it if they can. Tried on one image.
    """
    other = values.flip(2, 3) * -0.7 + 0.1  # another image, made of the same numbers
    own = model(pixel_values=torch.cat([values, other])).logits
    same = _Same(own)
    chosen: TokenLayout | None = None
    obstacle = "no module was found whose output holds one token for every patch"
    for place in _local_places(model, values, patches):
        found = _try(model, place, values, other, own, same)
        if found and chosen is not None and not obstacle:
            break  # what comes later lies inside the layers
        if found != _BESIDE:
            chosen, obstacle = place, found
    return chosen, obstacle


class _Same:
    """Whether two answers are the same but for rounding, on the scale of a model's answers."""

    def __init__(self, own: torch.Tensor) -> None:
        allowed = max(1e-4, 16 * torch.finfo(own.dtype).eps)
        self.allowed = allowed * float(own.abs().max().clamp_min(1e-6))

    def __call__(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        return float((one - other).abs().max()) <= self.allowed


def _try(
    model: nn.Module,
    place: TokenLayout,
    values: torch.Tensor,
    other: torch.Tensor,
    own: torch.Tensor,
    same: _Same,
) -> str:
    """What speaks against a place; nothing if tokens can be taken out there."""
    given = TokenInput(twin_of(model), place.path)
    count = place.tokens
    try:
        tokens = given.embed(torch.cat([values, other]))
        if not same(given.logits(tokens[1:], values), own[1:]):
            return _BESIDE
        order = torch.arange(count)
        patches = slice(place.first, place.first + place.patches)
        order[patches] = order[patches].flip(0)
        if not same(given.logits(tokens[:1, order], values), own[:1]):
            return "the order of its tokens matters"
        kept = [k for k in range(count) if k % 2 or not place.first <= k < patches.stop]
        answers = given.logits(tokens[:, kept], values)
    except FAILURES as problem:
        return f"it failed with fewer tokens: {first_line(problem)}"
    if answers.shape != own.shape or not torch.isfinite(answers).all():
        return "its answers without some tokens are no numbers"
    return ""


def _local_places(model: nn.Module, values: torch.Tensor, patches: Patches) -> list[TokenLayout]:
    """Modules of whose output each patch of the image changes one token, as they are passed."""
    count = len(patches)
    tried = sorted({0, count // 2, count - 1})
    rows = [values]
    for patch in tried:
        row, column = divmod(patch, patches.columns)
        changed = values.clone()
        top, left = row * patches.height, column * patches.width
        part = changed[..., top : top + patches.height, left : left + patches.width]
        part.copy_(-part + 0.5)
        rows.append(changed)
    places: dict[str, TokenLayout | None] = {}
    twin = twin_of(model)
    names = {id(module): path for path, module in twin.named_modules()}

    def look(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        path, tokens = names[id(module)], output[0] if isinstance(output, tuple) else output
        again = path in places
        places[path] = None if again or not path else _local(path, tokens, tried, count)

    for module in twin.modules():
        module.register_forward_hook(look)
    twin(pixel_values=torch.cat(rows))
    return [place for place in places.values() if place is not None]


def _local(path: str, tokens: Any, tried: list[int], count: int) -> TokenLayout | None:
    """The place a module is, if its output has one token of its own for every patch tried."""
    if not isinstance(tokens, torch.Tensor) or tokens.ndim != 3:
        return None
    if len(tokens) != len(tried) + 1 or not count <= tokens.shape[1] <= count + _MOST_MORE:
        return None
    moved = (tokens[1:] - tokens[:1]).abs().amax(dim=2)
    moved = moved > 1e-4 * tokens.abs().max()
    first = int(moved[0].int().argmax())
    expected = torch.zeros_like(moved)
    for row, patch in enumerate(tried):
        if first + patch >= tokens.shape[1]:
            return None
        expected[row, first + patch] = True
    if not torch.equal(moved, expected):
        return None
    return TokenLayout(path, first, count, tokens.shape[1])
