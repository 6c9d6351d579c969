"""How a class reacts to vectors: directional derivatives at the states of its examples, and shifts.

A derivative says what an infinitely small step does. In a model that is sure of its answer that is
next to nothing, in any direction, even where a concept decides everything. So states are also
moved: there and back by the distance over which the concept matters, and the change is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch

from piste.concepts.states import TOKENS, Row, StateBatch, StateReader
from piste.concepts.vectors import FittedVectors, Rows, Space
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


EXAMPLES = 40
"""Of every class, at most: each is run twice for every vector and layer."""
_VECTORS = 5
"""Of every concept, at most: means of the fitted ones."""
_SETS = 20
"""Random sets, at most."""


def reach(sets: Sequence[Rows], fitted: FittedVectors) -> float:
    """How far states are moved in a layer; ``sets`` are the concepts, then the negatives.

    The clearest token of a concept's example lies D beyond the tokens of the others, along the
    concept's vector; one that speaks for the contrary lies as far on the other side. So 2 D, with
    the median over concepts: one length for all vectors, or longer ones would do more.
    """
    found = []
    for place, directions in enumerate(fitted.concepts.values()):
        u = _unit(directions.mean(axis=0))
        against = sets[len(fitted.concepts) :] or [*sets[:place], *sets[place + 1 :]]
        tops = np.full(sets[place].examples, -np.inf)
        np.maximum.at(tops, sets[place].owners, sets[place].vectors @ u)
        others = np.concatenate([rows.vectors @ u for rows in against])
        found.append(float(tops.mean() - others.mean()))
    size = float(np.mean([np.linalg.norm(rows.vectors, axis=1).mean() for rows in sets]))
    return max(2 * float(np.median(found)), 1e-3 * size)


def move(
    reader: StateReader,
    subjects: Iterable[Subject],
    layers: Sequence[int],
    fitted: Sequence[FittedVectors],
    reaches: Sequence[float],
    done: Callable[[int], None],
) -> list[list[Sensitivities]] | None:
    """By goal and layer: f(h_t + r u for all t) − f(h_t − r u for all t), r the layer's reach.

    None if it can't be found out where a model makes its states.
    """
    vectors = [_few(one) for one in fitted]
    effects: list[list[list[Floats]]] = [[[] for _ in layers] for _ in reader.goals]
    order: list[int] = []
    carriers: dict[int, torch.nn.Module] | None = None
    for rows in reader.batches(subjects):
        with torch.no_grad():
            carriers = _carriers(reader, rows) if carriers is None else carriers
            if not set(layers) <= carriers.keys():
                return None
            for place, layer in enumerate(layers):
                found = _effects(reader, rows, carriers[layer], vectors[place] * reaches[place])
                for goal, numbers in enumerate(found):
                    effects[goal][place].append(numbers)
                done(len(rows))
        order += [row.number for row in rows]
    back = np.argsort(order)
    return [
        [
            _unstack_effects(np.concatenate(parts)[back].T, one)
            for parts, one in zip(of_goal, fitted, strict=True)
        ]
        for of_goal in effects
    ]


def _effects(
    reader: StateReader, rows: Sequence[Row], carrier: torch.nn.Module, steps: Floats
) -> Iterator[Floats]:
    """For every goal: rows × steps, what the step there instead of back does."""
    ways = torch.from_numpy(np.concatenate([steps, -steps]).astype(np.float32))
    together = max(TOKENS // (len(rows) * len(rows[0].token_units)), 1)
    logits = []
    for start in range(0, len(ways), together):
        some = ways[start : start + together]
        with _shifted(carrier, some.repeat_interleave(len(rows), dim=0)[:, None, :]):
            found = reader.run([row for _ in some for row in rows]).logits
        logits.append(found.reshape(len(some), len(rows), -1))
    there, back = torch.cat(logits).chunk(2)
    for goal in reader.goals:
        ends = [goal.of_tensor(end.flatten(0, 1)).reshape(len(steps), -1) for end in (there, back)]
        yield (ends[0] - ends[1]).T.cpu().double().numpy()


def _carriers(reader: StateReader, rows: Sequence[Row]) -> dict[int, torch.nn.Module]:
    """The modules that pass the states on, by layer, as far as they are found."""
    handed: list[tuple[torch.nn.Module, torch.Tensor]] = []

    def look(module: torch.nn.Module, args: Any, output: Any) -> None:
        first = output[0] if isinstance(output, tuple) and output else output
        if isinstance(first, torch.Tensor):
            handed.append((module, first))

    hooks = [module.register_forward_hook(look) for module in reader.twin.modules()]
    try:
        states = reader.run(rows).hidden_states
    finally:
        for hook in hooks:
            hook.remove()
    found: dict[int, torch.nn.Module] = {}
    for layer, state in enumerate(states):
        makers = [module for module, first in handed if _same_memory(first, state)]
        # A module that is passed several times would be moved several times.
        if makers and sum(module is makers[-1] for module, _ in handed) == 1:
            found[layer] = makers[-1]
    return found


def _same_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether they are one tensor, or views of it: all are kept, so no memory is used twice."""
    return one.shape == other.shape and one.data_ptr() == other.data_ptr()


@contextmanager
def _shifted(module: torch.nn.Module, step: torch.Tensor) -> Iterator[None]:
    def add(module: torch.nn.Module, args: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (output[0] + step.to(output[0]), *output[1:])
        return output + step.to(output)

    hook = module.register_forward_hook(add)
    try:
        yield
    finally:
        hook.remove()


def _few(fitted: FittedVectors) -> Floats:
    """All vectors that states are moved along, concepts first.

    Means of vectors of length 1, not drawn out again: what they do not agree on is no direction.
    """
    parts = [
        some.mean(axis=0)
        for directions in fitted.concepts.values()
        for some in np.array_split(directions, min(len(directions), _VECTORS))
    ]
    return np.stack([*parts, *fitted.random[:_SETS].mean(axis=1)])


def _unstack_effects(numbers: Floats, fitted: FittedVectors) -> Sensitivities:
    found: dict[str, Floats] = {}
    start = 0
    for name, directions in fitted.concepts.items():
        count = min(len(directions), _VECTORS)
        found[name] = numbers[start : start + count]
        start += count
    return Sensitivities(found, numbers[start:][:, None, :])


def _unit(vector: Floats) -> Floats:
    size = float(np.linalg.norm(vector))
    return vector / size if size > 0 else vector
