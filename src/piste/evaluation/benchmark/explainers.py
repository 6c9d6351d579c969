"""What is compared, and where its explanations come from: the methods themselves, or files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from piste.classifiers import Classifier
from piste.data.examples import Example
from piste.engine import AnswerCache
from piste.errors import PisteError, shorten
from piste.evaluation.metrics.base import RepeatableExplanation, derive
from piste.explanation import Explanation
from piste.methods import make, options_of
from piste.options import Samples, read_options, split_names, written
from piste.pipeline import explain
from piste.subject import Input
from piste.validation import check_count

_FORM = re.compile(r"(?P<method>\w+)(?:\[(?P<options>[^\[\]]*)\])?(?::(?P<score>\w+))?")


@dataclass(frozen=True)
class Entry:
    """One line of the comparison.

    ``variant`` is the method with its options, as ``slalom[form=paper]``. Entries of the same
    variant share their explanations: they differ in the score only.
    """

    label: str
    method: str
    variant: str
    score: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def make_entries(
    names: str | Iterable[str],
    samples: Samples = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[Entry, ...]:
    """Entries by name: ``slalom``, ``slalom:value``, ``slalom[form=paper]``, or both.

    Every method that has the option gets the same ``samples``; ``options`` holds more of them by
    method, and those in brackets count before both. Unknown names are refused at once.

    >>> make_entries(["slalom[form=paper]:value"], samples=200)[0].options
    {'samples': 200, 'form': 'paper'}
    """
    if samples not in (None, "auto"):
        check_count("samples", samples)
    if not isinstance(names, Iterable):
        raise PisteError(f"methods: expected a list of names, got {shorten(names)}.")
    listed = split_names(names) if isinstance(names, str) else list(names)
    if options is not None and not isinstance(options, Mapping):
        raise PisteError(
            f"options: expected options by method, as {{'lime': {{…}}}}, got {shorten(options)}."
        )
    if not listed:
        raise PisteError("No method was given: name at least one (see `piste methods`).")
    entries = [_entry(name, samples, options or {}) for name in listed]
    check_once(entries)
    _check_options(options or {}, entries)
    return tuple(entries)


def check_once(entries: Sequence[Entry]) -> None:
    """Refuse a label that is given twice: rows are told apart by it."""
    labels = [entry.label for entry in entries]
    for label in labels:
        if labels.count(label) > 1:
            raise PisteError(f"The method {label!r} was given twice: name every method once.")


def _entry(name: str, samples: Samples, options: Mapping[str, Mapping[str, Any]]) -> Entry:
    found = _FORM.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise PisteError(
            f"The method {name!r} can't be read: write a name, name:score, "
            "name[option=value,option=value], or name[option=value]:score."
        )
    method, score = found["method"], found["score"]
    own = read_options(found["options"] or "", name)
    chosen: dict[str, Any] = {}
    if samples is not None and "samples" in options_of(method):
        chosen["samples"] = samples
    if "held_out" in options_of(method):
        chosen["held_out"] = 0  # the verdict of a method's own would only cost: all are judged
    chosen |= {**options.get(method, {}), **own}
    make(method, chosen)  # refuses what the method does not know
    listed = ",".join(f"{key}={written(value)}" for key, value in own.items())
    variant = f"{method}[{listed}]" if own else method
    label = variant if score is None else f"{variant}:{score}"
    return Entry(label, method, variant, score, chosen)


def _check_options(options: Mapping[str, Any], entries: Sequence[Entry]) -> None:
    there = dict.fromkeys(entry.method for entry in entries)
    for method in options:
        if method not in there:
            raise PisteError(
                f"Options were given for {method!r}, which is not among the methods: expected one "
                f"of {', '.join(there)}."
            )


class Explainer(Protocol):
    """Gives an explanation of an example by an entry's method, or refuses."""

    def explain(self, example: Example, entry: Entry) -> Explanation:
        """The explanation."""

    def repeatable(
        self, example: Example, entry: Entry, explanation: Explanation
    ) -> RepeatableExplanation:
        """The explanation with the means to make more like it."""


class MethodExplainer:
    """Explains by methods. An example's seed depends on the run's seed and on its id only."""

    def __init__(
        self,
        classifier: Classifier,
        seed: int,
        how: Mapping[str, Any],
        cache: AnswerCache | None = None,
    ) -> None:
        self.classifier, self.seed, self.how, self.cache = classifier, seed, how, cache

    def explain(self, example: Example, entry: Entry) -> Explanation:
        return self._explain(self.classifier, example.input, entry, self._seed(example), None)

    def repeatable(
        self, example: Example, entry: Entry, explanation: Explanation
    ) -> RepeatableExplanation:
        first = self._seed(example)
        # Other texts and models may predict another class: the same one is explained.
        target = explanation.target.indices[0]

        def again(
            *,
            input: Input | None = None,
            seed: int | None = None,
            classifier: Classifier | None = None,
        ) -> Explanation:
            return self._explain(
                classifier or self.classifier,
                example.input if input is None else input,
                entry,
                first if seed is None else seed,
                target,
            )

        return RepeatableExplanation(explanation, self.classifier, first, again)

    def _seed(self, example: Example) -> int:
        return derive(self.seed, example.id)

    def _explain(
        self,
        classifier: Classifier,
        input: Input,
        entry: Entry,
        seed: int,
        target: int | None,
    ) -> Explanation:
        how: dict[str, Any] = {**self.how, **entry.options}
        return explain(
            classifier,
            input,
            method=entry.method,
            target=target,
            seed=seed,
            progress=False,
            cache=self.cache,
            **how,
        )


class SavedExplainer:
    """Hands out explanations that were made before, by label and example."""

    def __init__(self, saved: Mapping[tuple[str, str], Explanation]) -> None:
        self.saved = saved

    def explain(self, example: Example, entry: Entry) -> Explanation:
        found = self.saved.get((entry.variant, example.id))
        if found is None:
            raise PisteError("no explanation of this example was saved")
        return found

    def repeatable(
        self, example: Example, entry: Entry, explanation: Explanation
    ) -> RepeatableExplanation:
        raise PisteError("saved explanations can't be made again")
