"""Labels a language model chooses from: their wordings, and probabilities from token by token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch

from piste.errors import PisteError, shorten
from piste.types import Floats

LabelChoice: TypeAlias = Sequence[str] | Mapping[str, str | Sequence[str]]
"""Names that are their own wordings, or names with one or several wordings each."""
Tokens: TypeAlias = tuple[int, ...]

# The least share of a wording that is not its continuation, so that no logarithm is infinite.
_LEAST_REST = 1e-6


def read_labels(labels: LabelChoice | None) -> dict[str, tuple[str, ...]]:
    """Names and wordings, checked.

    >>> read_labels({"good": ["good", "great"], "bad": "bad"})
    {'good': ('good', 'great'), 'bad': ('bad',)}
    """
    if isinstance(labels, Mapping):
        named = {
            name: (wordings,) if isinstance(wordings, str) else tuple(wordings)
            for name, wordings in labels.items()
        }
    elif isinstance(labels, Sequence) and not isinstance(labels, str):
        if len(set(labels)) < len(labels):
            raise PisteError(f"labels: expected different labels, got {shorten(list(labels))}.")
        named = {name: (name,) for name in labels}
    else:
        named = {}
    wordings = [wording for own in named.values() for wording in own]
    sound = all(isinstance(one, str) and one.strip() for one in (*named, *wordings))
    if len(named) < 2 or not all(named.values()) or not sound:
        raise PisteError(
            "labels: expected two or more labels, such as ['positive', 'negative'] or "
            f"{{'positive': ['good', 'great'], 'negative': ['bad']}}, got {shorten(labels)}."
        )
    for wording in wordings:
        if wordings.count(wording) > 1:
            raise PisteError(f"labels: expected each wording once, got {wording!r} twice.")
    return named


@dataclass(frozen=True)
class LabelTokens:
    """Wordings as tokens, and how the probability of a label is made of those of tokens.

    P(wording) is the product of its tokens' probabilities, each given those before it. A wording
    of the same label that begins with another one is contained in it and not counted again.
    Where a label begins with another label's wording ("good", "good enough"), the shorter one
    counts only as far as the answer does not go on as the longer one:
    P(good) = p(good) − p(good enough). P(label) is the sum over its wordings.
    """

    names: tuple[str, ...]
    wordings: tuple[tuple[int, Tokens], ...]
    """The label each wording belongs to, and its tokens."""

    @classmethod
    def of(cls, names: Sequence[str], tokens: Sequence[Sequence[Sequence[int]]]) -> LabelTokens:
        """From the tokens of every wording of every label."""
        kept: list[tuple[int, Tokens]] = []
        for label, wordings in enumerate(tokens):
            own = [tuple(map(int, wording)) for wording in wordings]
            kept += [
                (label, one)
                for one in dict.fromkeys(own)
                if not any(other != one and one[: len(other)] == other for other in own)
            ]
        seen: dict[Tokens, int] = {}
        for label, wording in kept:
            if seen.setdefault(wording, label) != label:
                raise PisteError(
                    f"labels: {names[label]!r} and {names[seen[wording]]!r} are the same tokens to "
                    "this model: choose wordings that differ."
                )
        return cls(tuple(names), tuple(kept))

    def combine(self, wordings: torch.Tensor) -> torch.Tensor:
        """Log-probabilities of the labels from those of the wordings (… × wordings).

        >>> labels = LabelTokens.of(["good", "good enough"], [[[5]], [[5, 7]]])
        >>> labels.combine(torch.tensor([0.5, 0.2]).double().log()).exp().numpy().round(3).tolist()
        [0.3, 0.2]
        """
        columns = list(wordings.unbind(dim=-1))
        for place, longer in enumerate(self._continuations):
            if longer:
                share = wordings[..., longer].logsumexp(dim=-1) - wordings[..., place]
                rest = -torch.expm1(share.clamp_max(-_LEAST_REST))
                columns[place] = wordings[..., place] + rest.log()
        labels = [
            torch.stack(
                [columns[n] for n, (own, _) in enumerate(self.wordings) if own == label], dim=-1
            ).logsumexp(dim=-1)
            for label in range(len(self.names))
        ]
        return torch.stack(labels, dim=-1)

    def combined(self, wordings: Floats) -> Floats:
        """The same for numbers of numpy."""
        return self.combine(torch.from_numpy(np.asarray(wordings, dtype=np.float64))).numpy()

    @property
    def _continuations(self) -> list[list[int]]:
        """For every wording those that begin with it, but not those that begin with such a one."""
        found = []
        for _, wording in self.wordings:
            longer = {
                other: tokens
                for other, (_, tokens) in enumerate(self.wordings)
                if len(tokens) > len(wording) and tokens[: len(wording)] == wording
            }
            nearest = [
                other
                for other, tokens in longer.items()
                if not any(
                    len(one) < len(tokens) and tokens[: len(one)] == one for one in longer.values()
                )
            ]
            found.append(nearest)
        return found
