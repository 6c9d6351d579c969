"""``explain``: from subjects to questions, answers and explanations."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, overload

import numpy as np

from piste.answer import SpanChoice
from piste.classifiers import Classifier, load
from piste.classifiers.prompted.generating import LanguageModel
from piste.classifiers.prompted.recorded import RecordedAnswers
from piste.engine import CacheOption, Engine, Progress, ProgressOption, opened
from piste.errors import PisteError
from piste.explanation import Explanation
from piste.levels import (
    as_parts,
    as_spans,
    asked_by,
    coarse_method,
    last_method,
    most_new,
    split,
    standing_out,
)
from piste.methods import Method, MethodChoice, Task, make
from piste.methods.base import expected_questions
from piste.options import Samples
from piste.slalom.fitting import threads_for
from piste.subject import (
    Cut,
    LongChoice,
    RawInput,
    Removal,
    Sequence1D,
    Subject,
    UnitChoice,
    levels_of,
    listed_inputs,
)
from piste.target import TargetChoice, negligible_error
from piste.types import Floats
from piste.validation import check_seed

Plan: TypeAlias = list[Sequence1D]
AnswerChoice: TypeAlias = str | list[str] | None
"""An answer of a language model; of several prompts one for each."""

# Units asked about in one wave of inputs: many batches, and a few hundred megabytes at most.
_WAVE = 1_000_000
# Inputs in a wave: a method that asks step by step holds a thread for each.
_MOST_INPUTS = 128
_SOLVERS = os.cpu_count() or 1


_Options = ParamSpec("_Options")


class _Explain(Protocol[_Options]):
    """The types of :func:`explain`: one explanation of one input, a list of them of a list."""

    @overload
    def __call__(
        self, classifier: Any, input: RawInput, /, *_: _Options.args, **options: _Options.kwargs
    ) -> Explanation: ...

    @overload
    def __call__(
        self,
        classifier: Any,
        input: Iterable[Any],
        /,
        *_: _Options.args,
        **options: _Options.kwargs,
    ) -> list[Explanation]: ...


def _one_or_many(function: Callable[Concatenate[Any, Any, _Options], Any]) -> _Explain[_Options]:
    return function


@_one_or_many  # type: ignore[arg-type]  # its own options are never called classifier or input
def explain(
    classifier: Any,
    input: RawInput | Iterable[Any],
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
    answer: AnswerChoice = None,
    against: AnswerChoice = None,
    **options: Any,
) -> Explanation | list[Explanation]:
    """Explain the classifier's decision on a text, a pair of texts, an image, or several of them.

    Several are a list, a Series, a column of a data set, an array of texts or a generator, and
    give a list of explanations.

    An image is a file, its bytes, a PIL image, or an array (height × width × 3) of bytes or of
    numbers in 0 … 1. ``method`` is a name (see ``piste methods``), or a method of yours.
    ``target`` is the number that is explained (default: log-odds of the
    predicted class), ``units`` what the input is cut into. Of a text: "words", "tokens",
    "sentences" or "paragraphs"; spans of your own, [(start, end), …], or a function from a text to
    spans, and the text outside them stays in every question; or levels from coarse to fine,
    ["paragraphs", "words"], of which each splits only units that matter on the one before (see
    :attr:`Explanation.levels`). Of an image: "patches", "grid:K" (K × K groups of patches) or
    "superpixels:K" (about K regions). None is "words", and of an image its patches, or "grid:7" if
    there are more than 64 of them: the questions a method needs grow with the number of units.
    ``samples`` is the number of questions, of all levels together (None: the method's default),
    ``long`` what happens to a text longer than the model reads, ``removal`` what becomes of units
    that are left out of a question (see :data:`piste.subject.Removal`). ``cache`` is a folder in
    which answers are kept for later runs. Further options are the method's own. The same seed
    gives the same result.

    A language model without labels is given a prompt or messages, and what is explained is the
    log-probability of ``answer`` (None: the model's own), or how much likelier it is than the
    answer ``against``. :meth:`Explanation.of` then explains any span of it. Of a list of prompts
    each has an answer of its own; ``answer`` and ``against`` may then be lists too.

    >>> import piste
    >>> loud = piste.load(lambda texts: [text.count("!") for text in texts])
    >>> e = piste.explain(loud, "Stop it now !", samples=50)
    >>> e.units[int(np.argmax(e.scores["value"]))].text
    '!'
    """
    with Progress(progress) as shown:
        shown.stage("loading the model")
        loaded = load(classifier)
        if isinstance(loaded, LanguageModel):
            shown.stage("asking for an answer")
            prompts = loaded.prompts(input)
            if prompts is not None:
                same: dict[str, Any] = {"method": method, "target": target, "units": units}
                same |= {"samples": samples, "seed": seed, "long": long, "removal": removal}
                same |= {"progress": shown, "cache": cache}
                return _each_prompt(loaded, prompts, answer, against, **same, **options)
            loaded, input = loaded.answering(input, _one(answer), _one(against))
        elif answer is not None or against is not None:
            raise PisteError(
                "answer and against are for a language model without labels: choose a class by "
                "target, or load a language model."
            )
        if samples is not None:
            options["samples"] = samples
        check_seed(seed)
        chosen = make(method, options)
        given = listed_inputs(input)
        several, inputs = given is not None, [input] if given is None else given
        levels = levels_of(units)
        loaded.check_choices(units, long, removal)
        how = {"long": long, "removal": removal}
        shown.stage("reading the input")
        subjects = []
        for number, one in enumerate(inputs):
            try:
                subjects.append(_bind(loaded, one, chosen, units=levels[0], **how))
            except PisteError as problem:
                raise PisteError(f"Input {number}: {problem}") if several else problem  # noqa: B904  # same error, with its place
        unused = samples is not None and not hasattr(chosen, "samples")
        shown.expect(sum(expected_questions(chosen, subject) for subject in subjects))
        with opened(cache) as kept:
            engine = Engine(loaded, shown, kept)
            if loaded.costly:
                questions = sum(expected_questions(chosen, subject) for subject in subjects)
                shown.say(loaded.expect(subjects, questions, cached=kept is not None))
            if len(levels) > 1:
                explanations = []
                for subject in subjects:
                    run = _Levels(chosen, target, seed, engine, unused, how)
                    explanations.append(run.explain(subject, levels))
                    engine.forget(run.subjects)
            else:
                explanations = _explained(chosen, subjects, target, seed, engine, unused)
    return explanations if several else explanations[0]


def _one(answer: AnswerChoice) -> str | None:
    if isinstance(answer, list):
        raise PisteError("Expected one answer for one prompt, got a list of answers.")
    return answer


def _each_prompt(
    model: LanguageModel,
    prompts: Sequence[Any],
    answer: AnswerChoice,
    against: AnswerChoice,
    **how: Any,
) -> list[Explanation]:
    """An explanation of the answer to each prompt, one after the other."""
    columns = []
    for name, given in (("answer", answer), ("against", against)):
        column = given if isinstance(given, list) else [given] * len(prompts)
        if len(column) != len(prompts):
            raise PisteError(
                f"{name}: expected one for each of the {len(prompts)} prompts, got {len(column)}."
            )
        columns.append(column)
    found = []
    for number, (prompt, own, other) in enumerate(zip(prompts, *columns, strict=True)):
        try:
            found.append(explain(model, prompt, answer=own, against=other, **how))
        except PisteError as problem:
            raise type(problem)(f"Input {number}: {problem}") from problem
    return found


def _explained(
    method: Method,
    subjects: Sequence[Subject],
    target: TargetChoice,
    seed: int,
    engine: Engine,
    unused: bool,
) -> list[Explanation]:
    run = _Run(engine.classifier, method, subjects, target, seed, engine)
    run.unused = unused
    try:
        return run.explain()
    finally:
        for task in run.tasks:
            task.clear()  # also after a failure: a method may hold a thread


def explain_span(e: Explanation, span: SpanChoice) -> Explanation:
    """The explanation of a span of an answer, from what was asked for ``e``; see its ``of``."""
    assert e.answer is not None
    recorded: Any = RecordedAnswers(e, e.answer)
    target: Any = span
    found = explain(
        recorded,
        e.input,
        method=e.answer.method,
        target=target,
        seed=int(e.settings.get("seed", 0)),
        progress=False,
        **e.answer.options,
    )
    return replace(found, calls=e.calls, cost=e.cost, method=e.method, ranking=e.ranking)


def _options(method: Method) -> dict[str, Any]:
    """The options that make a method again."""
    known: Any = method
    own = fields(known) if is_dataclass(known) else ()
    return {field.name: getattr(method, field.name) for field in own if field.init}


def _bind(classifier: Classifier, input: RawInput, method: Method, **how: Any) -> Subject:
    subject = classifier.subject(input, **how)
    if not subject.fits and how["long"] == "error" and method.short_only:
        # Short questions never meet the limit; only the whole text's own output needs windows.
        subject = classifier.subject(input, **how | {"long": "windows"})
    return subject


class _Levels:
    """One input, from coarse to fine: every level splits the units that matter on the last one.

    All levels ask one engine, so that no question is asked twice.
    """

    def __init__(
        self,
        method: Method,
        target: TargetChoice,
        seed: int,
        engine: Engine,
        unused: bool,
        how: dict[str, Any],
    ) -> None:
        self.method, self.target, self.seed = method, target, seed
        self.engine, self.unused, self.how = engine, unused, how
        self.subjects: list[Subject] = []

    def explain(self, subject: Subject, cuts: Sequence[Cut]) -> Explanation:
        levels: list[Explanation] = []
        asked = 0
        finer = [subject.units, *(self._bind(subject, cut).units for cut in cuts[1:])]
        parts = as_parts(subject)
        for _ in cuts[1:]:
            order, most = [0], sys.maxsize
            if len(subject) > 1:  # what is one piece is split in any case
                if not self.subjects or self.subjects[-1] is not subject:
                    method = coarse_method(self.method, _distinct(subject), len(cuts))
                    levels.append(self._level(method, subject))
                    asked += asked_by(method, levels[-1])
                order, most = standing_out(levels[-1]), most_new(self.method)
            finest = split(parts, order, finer, most)
            if len(finest) > len(parts):
                parts = finest
                subject = self._bind(subject, as_spans(parts, subject))
        seconds = sum(one.seconds for one in levels)
        method = last_method(self.method, _distinct(subject), asked, seconds)
        last = self._level(method, subject)
        calls, cost = self._spent(subject)
        passes = sum(one.calls for one in (*levels, last))
        passes -= sum(map(self.engine.calls, self.subjects))
        return replace(
            last,
            settings=dict(last.settings) | {"levels": [_name(cut) for cut in cuts]},
            levels=tuple(levels),
            calls=calls + max(passes, 0),
            cost=cost + max(passes, 0),
            seconds=seconds + last.seconds,
        )

    def _level(self, method: Method, subject: Subject) -> Explanation:
        self.subjects.append(subject)
        [found] = _explained(method, [subject], self.target, self.seed, self.engine, self.unused)
        return found

    def _bind(self, like: Subject, cut: Cut) -> Subject:
        return _bind(self.engine.classifier, like.input, self.method, units=cut, **self.how)

    def _spent(self, subject: Subject) -> tuple[int, float]:
        return self.engine.spent(subject, *self.subjects)


def _name(cut: Cut) -> str:
    return cut if isinstance(cut, str) else str(getattr(cut, "__name__", "function"))


def _distinct(subject: Subject) -> int:
    return len(np.unique(subject.types))


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
