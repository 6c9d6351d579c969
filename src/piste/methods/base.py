"""What a method is: it plans questions, and solves when they are answered; and how one is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy.sparse import csr_array

from piste.errors import PisteError, need, shorten
from piste.explanation import Fidelity, r_squared
from piste.methods import ALIASES, METHODS
from piste.slalom.fitting import Fit
from piste.slalom.pairs import PairEffect
from piste.subject import Sequence1D, Subject
from piste.surrogates import Surrogate
from piste.target import Target
from piste.types import Counts, Flags, Floats, Ints

State = TypeVar("State")
_RESAMPLED = 1000
"""Bootstrap samples of an interval."""
FEW = 6
"""Units of a question that count as few."""
LEAST_FOR_R2 = 8
"""Answers that an R² needs."""


@dataclass
class Task:
    """One subject under explanation: what was asked about it so far, and the answers."""

    subject: Subject
    target: Target
    whole: Floats
    """The model's logits for the whole input."""
    rng: np.random.Generator
    sequences: list[Sequence1D] = field(default_factory=list)
    logits: Floats = field(default_factory=lambda: np.empty((0, 0)))
    held_out: int | None = None
    """How many of the first questions are kept for measuring fidelity; None before planning."""
    guide: Floats | None = None
    """What a look inside the model said of every type of unit, if a method had one."""
    state: object = None
    """What a method keeps between its rounds: an object of a class of its own."""
    passes: int = 0
    """Forward passes made inside the model, beside the questions asked."""

    def learn(self, sequences: Sequence[Sequence1D], logits: Floats) -> None:
        """Add answers to what is known."""
        self.sequences += sequences
        self.logits = np.concatenate([self.logits, logits]) if len(self.logits) else logits

    def clear(self) -> None:
        """Let go of what was asked, once it is solved: of many inputs it would fill the memory."""
        self.sequences, self.logits, self.state = [], np.empty((0, 0)), None

    def state_as(self, kind: type[State]) -> State:
        """What the method keeps, which is of this class."""
        assert isinstance(self.state, kind), "planned by another method"
        return self.state

    def numbers(self) -> Floats:
        """The explained number(s) of every question asked, in order."""
        return self.target(self.logits)

    def counts(self, types: Ints) -> Counts:
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
    pairs: tuple[PairEffect, ...] = ()


class Method(ABC):
    """A method is a frozen set of options with two abilities, or three.

    ``plan`` returns the next questions, or none when it has enough; ``solve`` turns the answers
    into scores. Neither asks a model itself, so the questions of many inputs can be pooled. A
    method that needs more than answers has a look inside the model first: ``trace``.
    """

    name: ClassVar[str]
    needs: ClassVar[str] = "answers"
    """What it can't do without: "answers" is enough for a black box, "gradients" is not."""
    about: ClassVar[str]
    """One line for lists."""
    paper: ClassVar[str] = ""
    """Where it was published."""
    compared: ClassVar[bool] = False
    """Whether :func:`piste.compare` takes it if no methods are named."""
    evaluated: ClassVar[bool] = False
    """Whether :func:`piste.evaluation.evaluate` does."""
    library: ClassVar[str] = ""
    """The module of another library that does the work, if one does."""
    extra: ClassVar[str] = "peers"
    """The extra of Piste that brings this library."""

    @property
    def finds_pairs(self) -> bool:
        """Whether it looks for pairs of words that act together."""
        return False

    @property
    def short_only(self) -> bool:
        """Whether it never asks about more than a few units, so that any length will do."""
        return False

    def trace(self, task: Task) -> None:
        """Look inside the model, if need be, and keep what was seen, as in ``task.state``."""
        return

    @abstractmethod
    def plan(self, task: Task) -> list[Sequence1D]:
        """The next questions; an empty list ends the asking."""

    @abstractmethod
    def solve(self, task: Task) -> Solution:
        """Scores from everything asked."""


def make(method: Any, options: Mapping[str, Any]) -> Method:
    """A method with options; unknown names and options are refused.

    ``method`` is any :data:`piste.methods.MethodChoice`. ``samples`` is accepted by all: methods
    that do not ask a number of questions leave it out, and their results say so.

    >>> from piste.methods import SlalomMethod
    >>> make("occlusion", {"samples": 100}).name, make(SlalomMethod(), {"samples": 50}).samples
    ('occlusion', 50)
    >>> make("leave_one_out", {}).name
    'occlusion'
    """
    kind: Any = type(method) if isinstance(method, Method) else _class(method)
    known = [field.name for field in fields(kind)]
    chosen = {name: value for name, value in options.items() if name in known}
    for option in options:
        if option not in known and option != "samples":
            raise PisteError(
                f"The method {kind.name!r} has no option {option!r}: it has {', '.join(known)}."
            )
    made: Method = (
        kind(**chosen) if method is kind or isinstance(method, str) else replace(method, **chosen)
    )
    if made.library:  # now, so that a missing one is reported early
        need(made.library, made.extra, f"The method {kind.name!r}")
    return made


def options_of(method: str | type[Method]) -> list[str]:
    """The names of a method's options; an unknown method is refused."""
    return [field.name for field in fields(_class(method))]


def _class(method: object) -> Any:
    if isinstance(method, type) and issubclass(method, Method):
        return method
    if isinstance(method, str):
        method = ALIASES.get(method, method)
    if not isinstance(method, str) or method not in METHODS:
        raise PisteError(
            f"method: expected one of {', '.join(METHODS)}, or a piste.methods.Method, got "
            f"{shorten(method)}."
        )
    return METHODS[method]


def default_samples(distinct: int) -> int:
    """How many questions to ask if the user does not say: five for every distinct unit.

    >>> default_samples(10), default_samples(200), default_samples(5000)
    (300, 1000, 2000)
    """
    return min(max(5 * distinct, 300), 2000)


def expected_questions(method: Method, subject: Subject) -> int:
    """About how many questions a method asks of an input, the whole input's own included."""
    samples = getattr(method, "samples", 0)
    if samples is None:
        samples = default_samples(len(np.unique(subject.types)))
    elif samples == "auto":
        samples = getattr(method, "max_samples", 0)
    return 1 + (int(samples) or len(subject) + int(getattr(method, "held_out", 0)))


def held_out_share(share_of: int, total: int, n: int) -> int:
    """An eighth of the questions is kept to measure fidelity, between 10 and 100 of them.

    Never more than half of the round, and where n units have few subsets, a quarter of those.
    """
    there_are = 2**n - 2 if n < 12 else total * 4
    return min(max(share_of // 8, 10), 100, total // 2, there_are // 4)


def measure_fidelity(expected: Floats, answered: Floats) -> Fidelity:
    """How well predictions meet the answers to questions that were not fitted, over all outputs."""
    if len(answered) < 2:
        return Fidelity(float("nan"), float("nan"), len(answered))
    r2 = r_squared(expected, answered)
    mse = float(((expected - answered) ** 2).mean())
    if not np.isfinite(r2):
        return Fidelity(r2, mse, len(answered))
    r2_range, mse_range = _ranges(expected, answered)
    return Fidelity(r2, mse, len(answered), r2_range, mse_range)


def fidelity_of(
    found: Fit,
    counts: Any,
    numbers: Floats,
    held: int,
    fitted: Flags,
    together: Floats | None = None,
) -> Fidelity:
    """Over all held-out questions, and apart for single, few and many units.

    ``held`` questions come first. One that is fitted is judged by what the fit without it predicts.
    Where there are few questions (few were wanted, or a handful of units has no more subsets),
    hardly any is held out: then all are judged so.
    """
    expected, sizes = found.predict(counts, together), sizes_of(counts)
    expected[fitted] = numbers[fitted] - found.left_out
    few = (sizes[:held] > 1) & (sizes[:held] <= FEW)
    single = np.nonzero(sizes == 1)[0]
    single = single[single >= held]
    judged = len(numbers) if held < LEAST_FOR_R2 <= len(numbers) else held
    return replace(
        measure_fidelity(expected[:judged], numbers[:judged]),
        single=r2_of(expected[single], numbers[single]),
        few=r2_of(expected[:held][few], numbers[:held][few]),
        many=r2_of(expected[:held][~few], numbers[:held][~few]),
    )


def r2_of(expected: Floats, answered: Floats) -> float:
    """R², NaN of too few answers."""
    return r_squared(expected, answered) if len(answered) >= LEAST_FOR_R2 else float("nan")


def sizes_of(counts: Any) -> Floats:
    """How many units each question holds."""
    return np.asarray(counts.sum(axis=1)).ravel()


def _ranges(expected: Floats, answered: Floats) -> tuple[tuple[float, float], ...]:
    """95 % bootstrap intervals of R² and mean squared error over the questions."""
    count = len(answered)
    flat = answered.reshape(count, -1)
    misses = ((expected - answered) ** 2).reshape(count, -1).sum(axis=1)
    squares = (flat**2).sum(axis=1)
    times = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), _RESAMPLED)
    missed = times @ misses
    spread = times @ squares - ((times @ flat) ** 2).sum(axis=1) / count
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = np.where(spread > 1e-12 * squares.sum(), 1.0 - missed / spread, np.nan)
    found = []
    for numbers in (r2, missed / flat.size):
        low, high = (
            np.nanquantile(numbers, [0.025, 0.975])
            if np.isfinite(numbers).any()
            else (np.nan, np.nan)
        )
        found.append((float(low), float(high)))
    return tuple(found)
