"""``explain``: from subjects to questions, answers and explanations."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias, overload

import numpy as np

from piste.classifiers import Classifier, load
from piste.engine import CacheOption, Engine, Progress, ProgressOption, opened
from piste.errors import PisteError
from piste.explanation import Explanation, Output
from piste.methods import Method, MethodChoice, Task, make
from piste.options import Samples, check_seed
from piste.subject import LongChoice, RawInput, Removal, Sequence1D, Subject, UnitChoice
from piste.target import TargetChoice, probabilities, resolve
from piste.threads import threads_for

Plan: TypeAlias = list[Sequence1D]

# Units asked about in one wave of inputs: many batches, and a few hundred megabytes at most.
_WAVE = 1_000_000
# Inputs in a wave: a method that asks step by step holds a thread for each.
_MOST_INPUTS = 128
_SOLVERS = os.cpu_count() or 1


@overload
def explain(
    classifier: Any,
    input: RawInput,
    *,
    method: MethodChoice = ...,
    target: TargetChoice = ...,
    units: UnitChoice = ...,
    samples: Samples = ...,
    seed: int = ...,
    long: LongChoice = ...,
    removal: Removal = ...,
    progress: ProgressOption = ...,
    cache: CacheOption = ...,
    **options: Any,
) -> Explanation: ...


@overload
def explain(
    classifier: Any,
    input: list[Any],
    *,
    method: MethodChoice = ...,
    target: TargetChoice = ...,
    units: UnitChoice = ...,
    samples: Samples = ...,
    seed: int = ...,
    long: LongChoice = ...,
    removal: Removal = ...,
    progress: ProgressOption = ...,
    cache: CacheOption = ...,
    **options: Any,
) -> list[Explanation]: ...


def explain(
    classifier: Any,
    input: RawInput | list[Any],
    *,
    method: MethodChoice = "slalom",
    target: TargetChoice = None,
    units: UnitChoice = None,
    samples: Samples = None,
    seed: int = 0,
    long: LongChoice = "error",
    removal: Removal = "delete",
    progress: ProgressOption = None,
    cache: CacheOption = None,
    **options: Any,
) -> Explanation | list[Explanation]:
    """Explain the classifier's decision on a text, a pair of texts, an image, or a list of them.

    An image is a file, its bytes, a PIL image, or an array (height × width × 3) of bytes or of
    numbers in 0 … 1. ``method`` is a name (see ``piste methods``), or a method of yours.
    ``target`` is the number that is explained (default: log-odds of the
    predicted class), ``units`` what the input is cut into: "words", "tokens" or "sentences" of a
    text; "patches", "grid:K" (K × K groups of patches) or "superpixels:K" (about K regions) of an
    image. None is "words", and of an image its patches, or "grid:7" if there are more than 64
    of them: the questions a method needs grow with the number of units. ``samples`` is the number
    of questions (None: the method's default), ``long`` what happens to a text longer than the
    model reads, ``removal`` what becomes of units that are left out of a question (see
    :data:`piste.subject.Removal`). ``cache`` is a folder in which answers are kept for later
    runs. Further options are the method's own. The same seed gives the same result.

    >>> import piste
    >>> loud = piste.load(lambda texts: [text.count("!") for text in texts])
    >>> e = piste.explain(loud, "Stop it now !", samples=50)
    >>> e.units[int(np.argmax(e.scores["value"]))].text
    '!'
    """
    loaded = load(classifier)
    if samples is not None:
        options["samples"] = samples
    check_seed(seed)
    chosen = make(method, options)
    several = isinstance(input, list)
    inputs: list[Any] = input if isinstance(input, list) else [input]
    subjects = []
    for number, one in enumerate(inputs):
        try:
            subjects.append(_bind(loaded, one, chosen, units=units, long=long, removal=removal))
        except PisteError as problem:
            raise PisteError(f"Input {number}: {problem}") if several else problem  # noqa: B904  # same error, with its place
    with Progress(progress) as shown, opened(cache) as kept:
        run = _Run(loaded, chosen, subjects, target, seed, Engine(loaded, shown, kept))
        run.unused = samples is not None and not hasattr(chosen, "samples")
        try:
            explanations = run.explain()
        finally:
            for task in run.tasks:
                task.clear()  # also after a failure: a method may hold a thread
    return explanations if several else explanations[0]


def _bind(classifier: Classifier, input: RawInput, method: Method, **how: Any) -> Subject:
    subject = classifier.subject(input, **how)
    if not subject.fits and how["long"] == "error" and method.short_only:
        # Short questions never meet the limit; only the whole text's own output needs windows.
        subject = classifier.subject(input, **how | {"long": "windows"})
    return subject


class _Run:
    """One call of explain: subjects go through planning and asking together.

    They do so in waves, so that memory does not grow with their number, and while one wave is
    asked, the one before is solved.
    """

    def __init__(
        self,
        classifier: Classifier,
        method: Method,
        subjects: Sequence[Subject],
        target: TargetChoice,
        seed: int,
        engine: Engine,
    ) -> None:
        self.classifier, self.method, self.engine, self.seed = classifier, method, engine, seed
        self.unused = False
        """Whether a number of questions was given to a method that has none."""
        self.seconds = [0.0] * len(subjects)
        whole = self._ask([(number, s, [s.whole]) for number, s in enumerate(subjects)])
        self.tasks = [
            Task(
                subject,
                resolve(target, logits[0], classifier.labels, classifier.kind),
                logits[0],
                np.random.default_rng(seed),
            )
            for subject, logits in zip(subjects, whole, strict=True)
        ]

    def explain(self) -> list[Explanation]:
        if len(self.tasks) == 1:
            self._learn({0: self._begin(0)})
            return [self._finish(0, *self.engine.spent(self.tasks[0].subject))]
        solved: list[Future[Explanation]] = []
        with threads_for(0), ThreadPoolExecutor(max_workers=_SOLVERS) as pool:
            for plans in self._waves():
                self._learn(plans)
                for number in plans:
                    spent = self.engine.spent(self.tasks[number].subject)
                    solved.append(pool.submit(self._finish, number, *spent))
                self.engine.forget([self.tasks[number].subject for number in plans])
            return [one.result() for one in solved]

    def _waves(self) -> Iterator[dict[int, Plan]]:
        """First questions by number of task, enough of them to fill batches well."""
        plans: dict[int, Plan] = {}
        size = 0
        for number in range(len(self.tasks)):
            plans[number] = self._begin(number)
            size += sum(map(len, plans[number]))
            last = number == len(self.tasks) - 1
            if size >= _WAVE or len(plans) >= _MOST_INPUTS or last:
                yield plans
                plans, size = {}, 0

    def _learn(self, plans: dict[int, Plan]) -> None:
        """Ask what is planned, and go on for as long as a method wants to know more."""
        while plans := {number: plan for number, plan in plans.items() if plan}:
            asked = [(number, self.tasks[number].subject, plan) for number, plan in plans.items()]
            for (number, _, plan), logits in zip(asked, self._ask(asked), strict=True):
                self.tasks[number].learn(plan, logits)
            plans = {number: self._plan(number) for number in plans}

    def _begin(self, number: int) -> Plan:
        start = time.perf_counter()
        self.method.trace(self.tasks[number])
        self.seconds[number] += time.perf_counter() - start
        return self._plan(number)

    def _plan(self, number: int) -> Plan:
        start = time.perf_counter()
        plan = self.method.plan(self.tasks[number])
        self.seconds[number] += time.perf_counter() - start
        return plan

    def _ask(self, plans: Sequence[tuple[int, Subject, Any]]) -> list[Any]:
        """Ask all plans together; the time is shared out by the number of questions."""
        start = time.perf_counter()
        answers = self.engine.ask([(subject, plan) for _, subject, plan in plans])
        spent = time.perf_counter() - start
        total = sum(len(plan) for _, _, plan in plans) or 1
        for number, _, plan in plans:
            self.seconds[number] += spent * len(plan) / total
        return answers

    def _finish(self, number: int, calls: int, cost: float) -> Explanation:
        task, start = self.tasks[number], time.perf_counter()
        solution = self.method.solve(task)
        task.clear()
        value = task.target(task.whole[None, :])[0]
        chances = probabilities(task.whole, self.classifier.kind)
        output = Output(
            logits=tuple(map(float, task.whole)),
            probabilities=None if chances is None else tuple(map(float, chances)),
            labels=self.classifier.labels,
            value=float(value) if np.ndim(value) == 0 else tuple(map(float, value)),
        )
        notes = dict(task.subject.notes) | {
            "removal": task.subject.removal,
            "units": task.subject.cut,
        }
        settings = dict(solution.settings) | {"seed": self.seed, "input": notes}
        if self.unused:
            settings["samples"] = "not used: this method has no such number"
        return Explanation(
            method=self.method.name,
            input=task.subject.input,
            units=task.subject.units,
            scores=solution.scores,
            errors=solution.errors,
            target=task.target,
            output=output,
            fidelity=solution.fidelity,
            calls=calls + task.passes,
            cost=cost + task.passes,
            seconds=self.seconds[number] + time.perf_counter() - start,
            settings=settings,
            surrogate=solution.surrogate,
            classifier=self.classifier.describe(),
            versions=dict(_versions()),
            ranking=solution.ranking,
        )


@cache
def _versions() -> dict[str, str]:
    found = {}
    for package in ("piste", "torch", "transformers", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
