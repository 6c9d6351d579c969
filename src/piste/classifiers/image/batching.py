"""Answers about rows of tokens of images, rows of different length together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn

from piste.classifiers.backends.pruned import FirstRow, pruned_copy
from piste.classifiers.base import twin_of
from piste.classifiers.image.token_dropping import FAILURES, TokenInput, TokenLayout
from piste.classifiers.introspection.key_bias import HIDDEN, NoAttentionError, is_hidden, run_biased
from piste.types import Flags

_SAME = 2e-5
_TRIED_PATCHES = (24, 13, 3)  # enough to see whether two ways to compute are the same


@dataclass(frozen=True)
class Row:
    """One question: an image's tokens, and which of them are kept.

    Those that are not are left out, or with ``hides`` stay but are hidden from attention.
    """

    tokens: torch.Tensor
    kept: Flags
    hides: bool = False

    @property
    def length(self) -> int:
        return len(self.kept) if self.hides else int(np.count_nonzero(self.kept))


class TokenRunner:
    """A model that is given rows of tokens.

    Rows of different length are padded where hidden padding changes nothing, which is tried; else
    only rows of the same length go together. ``values`` is any image of the size that all rows
    come from.
    """

    def __init__(self, model: nn.Module, place: TokenLayout, values: torch.Tensor) -> None:
        self.place = place
        self.pads = False
        self._values = values
        self._module = twin_of(model)
        self._given = TokenInput(self._module, place.path)

    @property
    def patches(self) -> slice:
        """Which of the tokens are patches."""
        return slice(self.place.first, self.place.first + self.place.patches)

    def embed(self, values: torch.Tensor) -> torch.Tensor:
        """The tokens of one image, tokens × features."""
        return self._given.embed(values)[0]

    def answer(self, rows: Sequence[Row]) -> torch.Tensor:
        """Logits of rows, in order."""
        answers: dict[int, torch.Tensor] = {}
        for numbers in self._groups(rows):
            tokens, bias = _batch([rows[number] for number in numbers])
            run = partial(self._given.logits, tokens, self._values)
            answers |= zip(numbers, run() if bias is None else run_biased(run, bias), strict=True)
        return torch.stack([answers[number] for number in range(len(rows))])

    def _groups(self, rows: Sequence[Row]) -> list[list[int]]:
        """Numbers of rows that go together."""
        if self.pads:
            return [list(range(len(rows)))]
        by_length: dict[int, list[int]] = {}
        for number, row in enumerate(rows):
            by_length.setdefault(row.length, []).append(number)
        return list(by_length.values())

    # -- trying --------------------------------------------------------------------------------

    def settle(self, tokens: torch.Tensor) -> None:
        """Find out, on the tokens of an image, how to answer quickly and still the same."""
        rows = [Row(tokens, self._some(len(tokens), count)) for count in _TRIED_PATCHES]
        truth = torch.cat([self.answer([row]) for row in rows])
        allowed = max(_SAME, 16 * torch.finfo(truth.dtype).eps) * float(truth.abs().max())

        def agrees() -> bool:
            return float((self.answer(rows) - truth).abs().max()) <= allowed

        self.pads = True
        try:
            self.pads = agrees()
        except (*FAILURES, NoAttentionError):
            self.pads = False
        plain = self._module, self._given

        def pruned_agrees(twin: nn.Module) -> bool:
            if twin is not self._module:
                self._module, self._given = twin, TokenInput(twin, self.place.path)
            return agrees()

        hooked = any(m._forward_hooks or m._forward_pre_hooks for m in self._module.modules())
        if hooked or pruned_copy(twin_of(plain[0]), pruned_agrees, (FirstRow(),)) is None:
            self._module, self._given = plain

    def _some(self, count: int, patches: int) -> Flags:
        """All tokens that are no patch, and some patches from all over the image."""
        kept = np.ones(count, dtype=bool)
        kept[self.patches] = False
        chosen = np.linspace(0, self.place.patches - 1, min(patches, self.place.patches))
        kept[self.place.first + chosen.astype(int)] = True
        return kept

    def reads_nothing(self, tokens: torch.Tensor) -> bool:
        """Whether it has an answer without any patch."""
        kept = self._some(len(tokens), 0)
        if not kept.any():
            return False
        try:
            return bool(torch.isfinite(self.answer([Row(tokens, kept)])).all())
        except FAILURES:
            return False

    def why_not_hidden(self, tokens: torch.Tensor) -> str:
        """Why hiding a key does not hide the patch; nothing if it does."""
        place = self.place.first + self.place.patches // 2
        changed = tokens.clone()
        changed[place] = -tokens[place] + 0.5
        run, other = (
            partial(self._given.logits, one[None], self._values) for one in (tokens, changed)
        )
        try:
            hidden = is_hidden(run, other, torch.zeros(1, len(tokens), device=tokens.device), place)
        except NoAttentionError as reason:
            return str(reason)
        except (*FAILURES, NotImplementedError) as problem:
            return f"it failed when its attention was changed ({problem})"
        return "" if hidden else "a patch that is hidden from attention still matters in it"


def _batch(rows: Sequence[Row]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Rows × tokens × features, and biases on the keys if anything is to be hidden."""
    width = max(row.length for row in rows)
    places = np.zeros((len(rows), width), dtype=np.int64)
    seen = np.zeros((len(rows), width), dtype=bool)
    for number, row in enumerate(rows):
        own = np.arange(len(row.kept)) if row.hides else np.flatnonzero(row.kept)
        places[number, : len(own)] = own
        seen[number, : len(own)] = row.kept[own]
    device = rows[0].tokens.device
    index = torch.from_numpy(places).to(device)
    tokens = torch.stack([row.tokens[one] for row, one in zip(rows, index, strict=True)])
    if seen.all():
        return tokens, None
    bias = torch.zeros(seen.shape, device=device)
    return tokens, bias.masked_fill(~torch.from_numpy(seen).to(device), HIDDEN)
