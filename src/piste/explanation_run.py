"""From subjects to questions, answers and explanations, for many inputs at once or in stages."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

import numpy as np

from piste.classifiers import Classifier
from piste.engine import Engine
from piste.explanation import Explanation
from piste.methods import Method, Task
from piste.slalom.fitting import threads_for
from piste.subject import Cut, RawInput, Sequence1D, Subject
from piste.target import TargetChoice, negligible_error
from piste.types import Floats

Plan: TypeAlias = list[Sequence1D]

# Units asked about in one wave of inputs: many batches, and a few hundred megabytes at most.
_WAVE = 1_000_000
# Inputs in a wave: a method that asks step by step holds a thread for each.
_MOST_INPUTS = 128
_SOLVERS = os.cpu_count() or 1


def bind(classifier: Classifier, input: RawInput, method: Method, **how: Any) -> Subject:
    """An input as the method can be asked about it; ``how`` are the fields of a Binding."""
    subject = classifier.subject(input, **how)
    if not subject.fits and how["long"] == "error" and method.short_only:
        # Short questions never meet the limit; only the whole text's own output needs windows.
        subject = classifier.subject(input, **how | {"long": "windows"})
    return subject


def explain_subjects(
    method: Method,
    subjects: Sequence[Subject],
    target: TargetChoice,
    seed: int,
    engine: Engine,
    unused: bool,
) -> list[Explanation]:
    """One explanation for every subject; ``unused`` if samples were given to no avail."""
    run = _Run(engine.classifier, method, subjects, target, seed, engine)
    run.unused = unused
    try:
        return run.explain()
    finally:
        for task in run.tasks:
            task.clear()  # also after a failure: a method may hold a thread


class StagedRun(ABC):
    """Explanations of one input, one after the other, each of another cut of it.

    All stages ask one engine, so that no question is asked twice.
    """

    def __init__(
        self,
        method: Method,
        target: TargetChoice,
        seed: int,
        engine: Engine,
        unused: bool,
        how: dict[str, Any],
        cuts: Sequence[Cut],
    ) -> None:
        self.method, self.target, self.seed = method, target, seed
        self.engine, self.unused, self.how, self.cuts = engine, unused, how, cuts
        self.subjects: list[Subject] = []
        self.found: list[Explanation] = []

    @abstractmethod
    def explain(self, subject: Subject) -> Explanation:
        """The explanation of an input, which is bound by the first of the cuts."""

    def stage(self, method: Method, subject: Subject) -> Explanation:
        """The explanation of the next cut."""
        self.subjects.append(subject)
        [e] = explain_subjects(method, [subject], self.target, self.seed, self.engine, self.unused)
        self.found.append(e)
        return e

    def bind(self, like: Subject, cut: Cut) -> Subject:
        """The same input, cut otherwise."""
        return bind(self.engine.classifier, like.input, self.method, units=cut, **self.how)

    def in_all(self, e: Explanation, **settings: Any) -> Explanation:
        """The explanation of a stage with further settings and with what all stages cost."""
        subject = next(s for s, one in zip(self.subjects, self.found, strict=True) if one is e)
        calls, cost = self.engine.spent(subject, *self.subjects)
        passes = sum(one.calls for one in self.found)
        passes = max(passes - sum(map(self.engine.calls, self.subjects)), 0)
        return replace(
            e,
            settings=dict(e.settings) | settings,
            calls=calls + passes,
            cost=cost + passes,
            seconds=sum(one.seconds for one in self.found),
        )


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
                classifier.resolve(target, logits[0]),
                logits[0],
                np.random.default_rng(seed),
            )
            for subject, logits in zip(subjects, whole, strict=True)
        ]

    def explain(self) -> list[Explanation]:
        if len(self.tasks) == 1:
            self._learn({0: self._begin(0)})
            self.engine.progress.stage("solving")
            return [self._finish(0, *self.engine.spent(self.tasks[0].subject))]
        solved: list[Future[Explanation]] = []
        with threads_for(0), ThreadPoolExecutor(max_workers=_SOLVERS) as pool:
            try:
                for plans in self._waves():
                    self._learn(plans)
                    for number in plans:
                        spent = self.engine.spent(self.tasks[number].subject)
                        solved.append(pool.submit(self._finish, number, *spent))
                    self.engine.forget([self.tasks[number].subject for number in plans])
                self.engine.progress.stage("solving")
                return [one.result() for one in solved]
            except BaseException:  # nobody waits for the others any more
                pool.shutdown(wait=False, cancel_futures=True)
                raise

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
        self.engine.progress.stage("choosing questions")
        start = time.perf_counter()
        plan = self.method.plan(self.tasks[number])
        self.seconds[number] += time.perf_counter() - start
        return plan

    def _ask(self, plans: Sequence[tuple[int, Subject, Any]]) -> list[Any]:
        """Ask all plans together; the time is shared out by the number of questions."""
        self.engine.progress.stage("asking the model")
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
        rows = [task.logits, task.whole[None]] if len(task.logits) else [task.whole[None]]
        answers = np.concatenate(rows)
        record = self.classifier.record(task.subject, task.sequences, answers)
        if record is not None:
            record = replace(record, method=self.method.name, options=_options(self.method))
        task.clear()
        value = task.target(task.whole[None, :])[0]
        output = self.classifier.output(task.whole, value)
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
            fidelity=replace(
                solution.fidelity,
                spread=_spread(task.target(answers)),
                negligible=negligible_error(task.target),
            ),
            calls=calls + task.passes,
            cost=cost + task.passes,
            seconds=self.seconds[number] + time.perf_counter() - start,
            settings=settings,
            surrogate=solution.surrogate,
            classifier=self.classifier.describe(),
            versions=dict(_versions()),
            ranking=solution.ranking,
            pairs=solution.pairs,
            answer=record,
        )


def _options(method: Method) -> dict[str, Any]:
    """The options that make a method again."""
    known: Any = method
    own = fields(known) if is_dataclass(known) else ()
    return {field.name: getattr(method, field.name) for field in own if field.init}


def _spread(numbers: Floats) -> float:
    """Standard deviation of all answers; 0 where they differ by no more than rounding."""
    if len(numbers) < 2:
        return float("nan")
    size = max(1.0, float(np.abs(numbers).max()))
    return float(numbers.std(axis=0).max()) if np.ptp(numbers, axis=0).max() > 1e-6 * size else 0.0


@cache
def _versions() -> dict[str, str]:
    found = {}
    for package in ("piste", "torch", "transformers", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
