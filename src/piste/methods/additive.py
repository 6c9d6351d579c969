"""What all methods with one score per unit share: their budget, their sum, their verdict."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from piste.classifiers.introspection.gradients import GradientAccess
from piste.errors import PisteError, shorten
from piste.methods.base import (
    Method,
    Solution,
    Task,
    default_samples,
    held_out_share,
    measure_fidelity,
)
from piste.methods.conversation import Conversation, Game, Masks
from piste.slalom import sampling
from piste.subject import Sequence1D
from piste.surrogates import AdditiveSurrogate, Surrogate
from piste.types import Floats
from piste.validation import check_count

_MOST_STAND_INS = 8


class Found(Protocol):
    """What a method found: scores by name and a model that predicts."""

    @property
    def more(self) -> dict[str, Any]:
        """What the result should say beyond that."""

    def model(self, score: str) -> tuple[dict[str, Floats], Surrogate]:
        """Scores by name, the one that ranks called ``score``, and the surrogate they belong to."""


@dataclass(frozen=True)
class AdditiveScores:
    """A base and one score per unit (units, or units × classes) whose sum is the prediction."""

    scores: Floats
    base: Floats | float
    more: dict[str, Any]
    """What the result should say beyond that."""

    def model(self, score: str) -> tuple[dict[str, Floats], Surrogate]:
        base = np.asarray(self.base, dtype=np.float64)
        surrogate = AdditiveSurrogate(
            float(base) if base.ndim == 0 else tuple(map(float, base)), score
        )
        return {score: np.asarray(self.scores, dtype=np.float64)}, surrogate


class AdditiveMethod(Method):
    """One score per unit; the explanation predicts base + sum of the scores of units kept."""

    score: ClassVar[str] = "attribution"
    """What its score is called."""

    def options(self) -> dict[str, Any]:
        """The options as they were given, for the result."""
        return dict(vars(self))

    def ask_held_out(self, task: Task, count: int) -> list[Sequence1D]:
        """Removals of every size, kept for the verdict."""
        seen = {sampling.key_of(task.subject.types)}
        drawn = sampling.draw(
            "subsets", len(task.subject), count, task.rng, seen, task.subject.types
        )
        task.held_out = len(drawn)
        return list(drawn)

    def solution(self, task: Task, found: Found) -> Solution:
        """Scores, sum and verdict; held-out questions that were asked again don't count."""
        held = task.held_out or 0
        scores, surrogate = found.model(self.score)
        asked = {sampling.key_of(np.asarray(one)) for one in task.sequences[held:]}
        rows = [
            row
            for row, one in enumerate(task.sequences[:held])
            if sampling.key_of(np.asarray(one)) not in asked
        ]
        kept = np.zeros((len(rows), len(task.subject)))
        for place, row in enumerate(rows):
            kept[place, np.asarray(task.sequences[row], dtype=int)] = 1.0
        answered = task.target(task.logits[rows]) if rows else np.empty(0)
        return Solution(
            scores=scores,
            errors={},
            surrogate=surrogate,
            fidelity=measure_fidelity(surrogate.predict(scores, kept), answered),
            settings=self.options() | found.more | {"held_out": len(rows)},
            ranking=self.score,
        )

    def around_whole_input(self, task: Task, scores: Floats, **more: Any) -> AdditiveScores:
        """The base that makes the sum over all units the model's own number for the input."""
        whole = task.target(task.whole[None, :])[0]
        return AdditiveScores(scores, whole - scores.sum(axis=0), more)


@dataclass(frozen=True)
class CheckedMethod(AdditiveMethod):
    """Needs few questions or none; ``held_out`` further ones are asked for the verdict only."""

    held_out: int = 32

    def __post_init__(self) -> None:
        check_count("held_out", self.held_out, least=0)

    def plan(self, task: Task) -> list[Sequence1D]:
        if task.held_out is not None:
            return []
        count = held_out_share(10 * self.held_out, 2 * self.held_out, len(task.subject))
        return [*self.ask_held_out(task, min(self.held_out, count)), *self.questions(task)]

    def questions(self, task: Task) -> list[Sequence1D]:
        """What the method itself asks."""
        return []


@dataclass
class _Exploration:
    """What a method that asks about sets of units has planned and found for one input."""

    nothing: int
    """How many questions stand for the input without any unit."""
    budget: int
    empty: Floats | float = 0.0
    """The answer without any unit."""
    talk: Conversation | None = None
    asked: Masks | None = None
    """Which units the last questions kept."""


@dataclass(frozen=True)
class CoalitionMethod(AdditiveMethod):
    """Asks about sets of units. ``samples`` counts the questions, held-out ones included."""

    samples: int | None = None

    asks_nothing: ClassVar[bool] = True
    """Whether it must know the answer without any unit, at whatever price."""

    def __post_init__(self) -> None:
        if self.samples is not None:
            check_count("samples", self.samples)

    def usual_questions(self, task: Task) -> int | None:
        """How many questions it asks itself if the user gives no number; None: as all do."""
        return None

    @abstractmethod
    def explore(self, game: Game, task: Task, budget: int) -> Found:
        """Call ``game`` as often as it takes, with about ``budget`` rows in all.

        ``game`` maps which units are kept to the explained numbers. The whole input and the empty
        one are known already and cost nothing.
        """

    def plan(self, task: Task) -> list[Sequence1D]:
        if task.held_out is None:
            usual = None if self.samples else self.usual_questions(task)
            total = self.samples or usual or default_samples(len(np.unique(task.subject.types)))
            first = self.ask_held_out(task, held_out_share(total, total, len(task.subject)))
            nothing = _replacements(task) if self.asks_nothing or task.subject.can_be_empty else []
            budget = usual or max(total - len(first) - len(nothing) - 1, 1)
            task.state = _Exploration(len(nothing), budget)
            if first or nothing:
                return [*first, *nothing]
        state = task.state_as(_Exploration)
        if state.talk is None:
            if state.nothing:
                held = task.held_out or 0
                few = task.target(task.logits[held : held + state.nothing])
                state.empty = _nothing(few) if not task.subject.can_be_empty else few[0]
            seed, budget = int(task.rng.integers(2**31)), state.budget
            # The thread must not hold the state, which holds the conversation: see its finalizer.
            state.talk = Conversation(lambda game: self.explore(game, task, budget), seed)
            return self._next(task, state, None)
        return self._next(task, state, self._answers(task, state))

    def _next(self, task: Task, state: _Exploration, answers: Floats | None) -> list[Sequence1D]:
        """Let the method go on until it asks something that is not known yet."""
        assert state.talk is not None
        while True:
            try:
                masks = state.talk.step(answers)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
                if isinstance(problem, PisteError) or not self.library:
                    raise
                raise PisteError(
                    f"The method {self.name!r} failed in the library it comes from: "
                    f"{type(problem).__name__}: {shorten(str(problem), 120)}."
                ) from problem
            if masks is None:
                return []
            state.asked = masks
            fresh = masks[_partial(masks)]
            if len(fresh):
                return [np.nonzero(row)[0] for row in fresh]
            answers = self._answers(task, state)

    def _answers(self, task: Task, state: _Exploration) -> Floats:
        """Numbers for the masks asked last: fresh ones, and those of all units and of none."""
        masks = state.asked
        assert masks is not None
        sizes, fresh = masks.sum(axis=1), _partial(masks)
        whole = task.target(task.whole[None, :])[0]
        numbers = np.empty((len(masks), *np.shape(whole)))
        numbers[sizes == masks.shape[1]] = whole
        if (sizes == 0).any():
            numbers[sizes == 0] = state.empty
        if fresh.any():
            numbers[fresh] = task.target(task.logits[-int(fresh.sum()) :])
        return numbers

    def solve(self, task: Task) -> Solution:
        state = task.state_as(_Exploration)
        assert state.talk is not None
        found: Found = state.talk.result
        if not task.subject.can_be_empty and state.nothing:
            found.more["empty"] = "from single units and pairs: nothing can't be read here"
        return self.solution(task, found)


@dataclass(frozen=True)
class WhiteBoxMethod(CheckedMethod):
    """Looks inside the model."""

    @abstractmethod
    def compute_scores(self, access: GradientAccess, task: Task) -> AdditiveScores:
        """One score per unit from embeddings and gradients."""

    def trace(self, task: Task) -> None:
        access = task.subject.classifier.gradient_access(task.subject, task.target)
        task.state = self.compute_scores(access, task)
        task.passes = access.calls

    def solve(self, task: Task) -> Solution:
        return self.solution(task, task.state_as(AdditiveScores))


def _partial(masks: Masks) -> Masks:
    """Which questions keep some units but not all: the others' answers are known."""
    sizes = masks.sum(axis=1)
    return (sizes > 0) & (sizes < masks.shape[1])


def _replacements(task: Task) -> list[Sequence1D]:
    """What is asked for the input without any unit.

    Nothing, where that can be read; else a few units alone and in a ring of pairs.
    """
    if task.subject.can_be_empty:
        return [[]]
    units = np.arange(len(task.subject))
    if len(units) > _MOST_STAND_INS:
        units = np.sort(task.rng.choice(units, _MOST_STAND_INS, replace=False))
    ring = [sorted((int(a), int(b))) for a, b in zip(units, np.roll(units, -1), strict=True)]
    return [*([int(unit)] for unit in units), *(ring if len(units) > 1 else [])]


def _nothing(answers: Floats) -> Floats:
    """2 · mean(single units) − mean(pairs): exact for a sum, about the mean for a mean.

    Every unit comes up once alone and twice in the ring, so that for f = b + Σ w this is b.
    """
    half = len(answers) // 2
    if half == 0:  # a single unit has no pair
        return answers.mean(axis=0)
    return 2 * answers[:half].mean(axis=0) - answers[half:].mean(axis=0)
