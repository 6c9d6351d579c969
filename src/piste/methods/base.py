"""What a method is: it plans questions, and solves when they are answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from piste.explanation import Fidelity
from piste.subject import Sequence1D, Subject
from piste.surrogates import Surrogate
from piste.target import Target

Floats = NDArray[np.float64]
Counts: TypeAlias = csr_array
"""Questions × types; most questions hold few of them."""


@dataclass
class Task:
    """One subject under explanation: what was asked of it so far, and what came back."""

    subject: Subject
    target: Target
    whole: Floats
    """The model's logits for the whole input."""
    rng: np.random.Generator
    sequences: list[Sequence1D] = field(default_factory=list)
    logits: Floats = field(default_factory=lambda: np.empty((0, 0)))
    memory: dict[str, Any] = field(default_factory=dict)
    """A method's own notes between planning and solving."""

    def learn(self, sequences: Sequence[Sequence1D], logits: Floats) -> None:
        """Add answers to what is known."""
        self.sequences += sequences
        self.logits = np.concatenate([self.logits, logits]) if len(self.logits) else logits

    def clear(self) -> None:
        """Let go of what was asked, once it is solved: of many inputs it would fill the memory."""
        self.sequences, self.logits, self.memory = [], np.empty((0, 0)), {}

    def numbers(self) -> Floats:
        """The explained number(s) of every question asked, in order."""
        return self.target(self.logits)

    def counts(self, types: NDArray[np.int64]) -> Counts:
        """How often units of each type occur in each question asked, sparse."""
        lengths = [len(sequence) for sequence in self.sequences]
        filled = [sequence for sequence in self.sequences if len(sequence)]
        columns = types[np.concatenate(filled)] if filled else np.empty(0, dtype=np.int64)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        shape = (len(lengths), int(types.max()) + 1)
        return csr_array((np.ones(len(columns)), (rows, columns)), shape=shape)


@dataclass(frozen=True)
class Solution:
    """What a method found; the driver adds what it knows of model and input."""

    scores: Mapping[str, Floats]
    errors: Mapping[str, Floats]
    surrogate: Surrogate
    fidelity: Fidelity
    settings: Mapping[str, Any]
    ranking: str


class Method(Protocol):
    """A method is a frozen set of options with two abilities.

    ``plan`` returns the next questions, or none when it has enough; ``solve`` turns the answers
    into scores. Neither asks a model itself, so the questions of many inputs can be pooled.
    """

    name: ClassVar[str]
    needs: ClassVar[str]
    """What it asks of a classifier: "answers" is enough for a black box."""
    about: ClassVar[str]
    """One line for lists."""

    @property
    def short_only(self) -> bool:
        """Whether it never asks about more than a few units, so that any length will do."""

    def plan(self, task: Task) -> list[Sequence1D]:
        """The next questions; an empty list ends the asking."""

    def solve(self, task: Task) -> Solution:
        """Scores from everything asked."""


def measure_fidelity(expected: Floats, answered: Floats) -> Fidelity:
    """R² and mean squared error of predictions, over all outputs."""
    if len(answered) < 2:
        return Fidelity(float("nan"), float("nan"), len(answered))
    residual = float(((expected - answered) ** 2).sum())
    spread = float(((answered - answered.mean(axis=0)) ** 2).sum())
    r2 = 1.0 - residual / spread if spread > 0 else (1.0 if residual < 1e-18 else float("nan"))
    return Fidelity(r2, residual / answered.size, len(answered))
