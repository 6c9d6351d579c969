"""How a class reacts to vectors: directional derivatives at the states of its examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import torch

from piste.concepts.states import StateBatch, StateReader
from piste.concepts.vector_fitting import FittedVectors, Space
from piste.subject import Subject
from piste.types import Floats

Kind: TypeAlias = Literal["moved", "attention", "tokens", "mean", "reader"]
KINDS: Mapping[Kind, Space] = {
    "moved": "tokens",
    "attention": "tokens",
    "tokens": "tokens",
    "mean": "mean",
    "reader": "reader",
}
"""Ways to sum up an input's derivatives, and the space whose vectors they take."""

ABOUT: Mapping[Kind, str] = {
    "moved": "token states, moved as far as the concept lies away",
    "attention": "token states, weighted by the attention they get (TTCAV)",
    "tokens": "token states, all alike (token-level TCAV)",
    "mean": "mean of the token states (pooled TCAV)",
    "reader": "state of the token that the head reads (TCAV of [CLS] or the last token)",
}


@dataclass(frozen=True)
class Sensitivities:
    """Of one class in one layer: vectors × examples each."""

    concepts: Mapping[str, Floats]
    random: Floats
    """Random sets × their vectors × examples."""


def measure(
    reader: StateReader,
    subjects: Iterable[Subject],
    layers: Sequence[int],
    fitted: Sequence[Mapping[Space, FittedVectors]],
    done: Callable[[int], None],
) -> list[list[dict[Kind, Sensitivities]]]:
    """By goal and layer: how the goal changes when an input's states move along each vector.

    With gradients g_t = ∂goal/∂h_t and d_t = g_t · u:
    attention Σ_t w_t d_t (w_t what the head's token attends to), tokens mean_t d_t,
    mean Σ_t d_t (moving the mean moves all tokens), reader d at the tokens that the head reads.
    Kinds that a model does not allow (no attention met) are left out.
    """
    stacks = [{space: _stack(one) for space, one in spaces.items()} for spaces in fitted]
    parts: list[list[dict[Kind, list[Floats]]]] = [[{} for _ in layers] for _ in reader.goals]
    order: list[int] = []
    for seen in reader.read(subjects, layers):
        order += seen.numbers
        for goal, slopes in enumerate(seen.gradients):
            for place, slope in enumerate(slopes):
                for kind, numbers in _along(seen, place, slope, stacks[place]).items():
                    parts[goal][place].setdefault(kind, []).append(numbers)
        done(len(seen.numbers))
    back = np.argsort(order)
    return [
        [
            {
                kind: _unstack(np.concatenate(rows)[back].T, fitted[place][KINDS[kind]])
                for kind, rows in by_kind.items()
            }
            for place, by_kind in enumerate(of_goal)
        ]
        for of_goal in parts
    ]


def _along(
    seen: StateBatch, place: int, slope: torch.Tensor, stacks: Mapping[Space, torch.Tensor]
) -> dict[Kind, Floats]:
    """Rows × vectors for every kind: sums over tokens come first, which is the same and cheaper."""
    sums: dict[Kind, torch.Tensor] = {
        "tokens": slope.mean(dim=1),
        "mean": slope.sum(dim=1),
        "reader": (slope * seen.readers[..., None]).sum(dim=1),
    }
    if seen.attention is not None:
        sums["attention"] = (slope * seen.attention[place][..., None]).sum(dim=1)
    return {
        kind: (sums[kind] @ stacks[KINDS[kind]].to(slope.device).T).cpu().double().numpy()
        for kind in KINDS
        if kind in sums
    }


def _stack(fitted: FittedVectors) -> torch.Tensor:
    random = fitted.random.reshape(-1, fitted.random.shape[-1])
    every = np.concatenate([*fitted.concepts.values(), random])
    return torch.from_numpy(every.astype(np.float32))


def _unstack(numbers: Floats, fitted: FittedVectors) -> Sensitivities:
    concepts, start = {}, 0
    for name, directions in fitted.concepts.items():
        concepts[name] = numbers[start : start + len(directions)]
        start += len(directions)
    return Sensitivities(concepts, numbers[start:].reshape(*fitted.random.shape[:2], -1))
