"""One surrogate for a whole corpus.

A few questions about each of some thousand documents are enough, because documents share their
words; every word is asked about alone, too, once for all documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse

from piste.classifiers import Classifier
from piste.engine import Engine
from piste.errors import PisteError
from piste.explanation import r_squared
from piste.slalom import sampling
from piste.slalom.family import Form, Layout, Questions
from piste.slalom.fitting import threads_for
from piste.slalom.solver import Posterior, solve
from piste.slalom.surrogate import Parameters, Slalom
from piste.subject import Sequence1D, Subject
from piste.target import Target, resolve
from piste.types import Counts, Flags, Floats, Ints
from piste.vocabulary.table import Vocabulary, keys

QUESTIONS = 12
"""Questions about each document."""
MOST_ALONE = 8000
"""Words that are asked about alone, the most frequent first."""
LEAST_DOCUMENTS = 10
_HELD_OUT = 0.1
_CHOOSING = 200
"""Documents that the form is chosen on; a fifth of them judge it."""
_JUDGES = 0.2
_MARGIN = 3.0
"""Standard errors by which a form must predict better than a simpler one to be preferred."""
_POOLED = 32
"""Documents that are asked about at once."""
_STEP = 1e-3  # of a direction of the covariance, on both sides


def fit_vocabulary(
    classifier: Classifier,
    subjects: Iterable[Subject],
    *,
    target: int | str | None = None,
    questions: int = QUESTIONS,
    seed: int = 0,
    about: Mapping[str, Any] | None = None,
) -> Vocabulary:
    """Ask ``questions`` about every subject and about every word alone, and fit.

    The questions are the whole text and parts of it with sizes spread evenly on a log scale. The
    target is a class, by default the last (of two: what speaks for the second).
    """
    index = len(classifier.labels) - 1 if target is None else target
    chosen = resolve(index, np.zeros(len(classifier.labels)), classifier.labels, classifier.kind)
    folded = _folds(classifier)
    asking = _Asking(Engine(classifier), chosen, folded, questions, seed)
    asked = asking.ask(subjects)
    documents = int(asked.owners.max(initial=-1)) + 1
    if documents < LEAST_DOCUMENTS:
        raise PisteError(
            f"Expected at least {LEAST_DOCUMENTS} documents to fit a vocabulary to, got "
            f"{documents}: give more."
        )
    with threads_for(0):
        posterior, r2 = _fit(asked, seed)
        slalom = posterior.layout.slalom(posterior.theta, True)
        whole = asked.counts[np.unique(asked.owners[asked.owners >= 0], return_index=True)[1]]
        return Vocabulary(
            tuple(asking.words),
            slalom,
            _errors(posterior, whole),
            np.asarray((whole > 0).sum(axis=0)).ravel().astype(np.int64),
            folded,
            {
                **(about or {}),
                "target": chosen.name,
                "class": index if isinstance(index, int) else classifier.labels.index(index),
                "labels": list(classifier.labels),
                "model": classifier.describe(),
                "documents": documents,
                "questions": len(asked.outputs),
                "alone": int((asked.owners < 0).sum()),
                "form": posterior.layout.form.name,
                "converged": posterior.converged,
                "usual_weight": float(_usual_weight(Parameters.of(slalom), whole)[0]),
                "r2": r2,
                "seed": seed,
            },
            _mixing_error(posterior),
        )


def _folds(classifier: Classifier) -> bool:
    """Whether capitals make no difference to it."""
    types = classifier.subject("word Word").types
    return bool(types[0] == types[-1])


# -- asking ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Asked:
    """Questions × words, and the answers. The first question of a document is its whole text."""

    counts: Counts
    outputs: Floats
    owners: Ints
    """The document of each question; −1 for a word alone."""

    def about(self, documents: Ints) -> Flags:
        """Questions about these documents, and about the words in them alone."""
        own = np.isin(self.owners, documents)
        known = np.asarray(self.counts[own].sum(axis=0)).ravel() > 0
        alone = np.nonzero(self.owners < 0)[0]
        own[alone] = known[self.counts[alone].indices]
        return own


class _Asking:
    """Collects answers; ``words`` grows with what the subjects have."""

    def __init__(
        self, engine: Engine, target: Target, folded: bool, questions: int, seed: int
    ) -> None:
        self.engine, self.target, self.folded, self.questions = engine, target, folded, questions
        self.rng = np.random.default_rng(seed)
        self.words: dict[str, int] = {}
        self._units: list[Ints] = []
        self._outputs: list[Floats] = []
        self._owners: list[int] = []
        self._first: list[tuple[Subject, int]] = []
        """Of every word, a unit that it is asked through."""
        self._documents: list[int] = []

    def ask(self, subjects: Iterable[Subject]) -> _Asked:
        number, rest = 0, iter(subjects)
        while group := list(islice(rest, _POOLED)):
            self._ask_group(group, number)
            number += len(group)
        self._ask_alone()
        lengths = [len(one) for one in self._units]
        columns = np.concatenate(self._units) if self._units else np.empty(0, dtype=np.int64)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        shape = (len(lengths), len(self.words))
        counts = sparse.csr_array((np.ones(len(columns)), (rows, columns)), shape=shape)
        counts.sum_duplicates()
        outputs = np.concatenate(self._outputs) if self._outputs else np.empty(0)
        return _Asked(counts, outputs, np.array(self._owners, dtype=np.int64))

    def _ask_group(self, group: Sequence[Subject], number: int) -> None:
        jobs = [(subject, self._questions(subject)) for subject in group]
        for (subject, sequences), logits in zip(jobs, self.engine.ask(jobs), strict=True):
            places = self._places(subject)
            self._units += [places[np.asarray(one, dtype=np.int64)] for one in sequences]
            self._outputs.append(self.target(logits))
            self._owners += [number] * len(sequences)
            number += 1
        self.engine.forget(group)

    def _questions(self, subject: Subject) -> list[Sequence1D]:
        n, types = len(subject), subject.types
        seen = {sampling.key_of(types)}
        drawn = sampling.draw("log", n, self.questions - 1, self.rng, seen, types)
        return [subject.whole, *drawn]

    def _places(self, subject: Subject) -> Ints:
        places = np.empty(len(subject), dtype=np.int64)
        for unit, word in enumerate(keys(subject, self.folded)):
            places[unit] = self.words.setdefault(word, len(self.words))
            if places[unit] == len(self._first):
                self._first.append((subject, unit))
                self._documents.append(0)
        for place in np.unique(places):
            self._documents[place] += 1
        return places

    def _ask_alone(self) -> None:
        order = np.argsort(-np.array(self._documents, dtype=np.int64), kind="stable")[:MOST_ALONE]
        for places in _batches(order, 1000):
            jobs = [(self._first[place][0], [[self._first[place][1]]]) for place in places]
            logits = np.concatenate(self.engine.ask(jobs))
            self.engine.forget([subject for subject, _ in jobs])
            self._units += [np.array([place]) for place in places]
            self._outputs.append(self.target(logits))
            self._owners += [-1] * len(places)


def _batches(order: Ints, size: int) -> Iterator[Ints]:
    for start in range(0, len(order), size):
        yield order[start : start + size]


# -- fitting -----------------------------------------------------------------------------------


def _fit(asked: _Asked, seed: int) -> tuple[Posterior, float]:
    """The fit to everything, and R² of the same form on documents that were left out."""
    rng = np.random.default_rng(seed)
    documents = int(asked.owners.max()) + 1
    order = rng.permutation(documents)
    held = order[: max(int(_HELD_OUT * documents), 2)]
    rest = order[len(held) :]
    form, begun = _choose(asked, rest[:_CHOOSING])
    training = _solve(asked, asked.about(rest), form, begun, roughly=True)
    test = np.isin(asked.owners, held)
    r2 = r_squared(training.slalom.predict(asked.counts[test]), asked.outputs[test])
    everything = np.ones(len(asked.outputs), dtype=np.bool_)
    return _solve(asked, everything, form, training).posterior, r2


@dataclass(frozen=True)
class _Part:
    """A fit to some of the questions, which may not have all words."""

    posterior: Posterior
    active: Flags

    @property
    def slalom(self) -> Slalom:
        """For all words; those no question had get no evidence and the mean weight."""
        found = self.posterior.layout.slalom(self.posterior.theta, True)
        evidence, importances = np.zeros((2, len(self.active)))
        evidence[self.active], importances[self.active] = found.evidence, found.importances
        return replace(found, evidence=evidence, importances=importances)

    def as_start(self, active: Flags) -> Posterior:
        """The same for other words: new ones begin with no evidence and the mean weight."""
        mine = self.posterior.layout
        other = Layout(int(active.sum()), 1, mine.form)
        slalom, theta = self.slalom, np.zeros(other.size)
        if other.weighted:
            theta[other.importances] = slalom.importances[active]
        theta[other.evidence] = slalom.evidence[active]
        theta[other.base.start :] = self.posterior.theta[mine.base.start :]
        if other.background is not None and slalom.background is not None:
            theta[other.background] = slalom.background.importance
        return replace(self.posterior, layout=other, theta=theta)


def _solve(
    asked: _Asked,
    rows: Flags,
    form: Form,
    start: _Part | None = None,
    *,
    roughly: bool = False,
) -> _Part:
    counts = asked.counts[rows]
    active = np.asarray(counts.sum(axis=0)).ravel() > 0
    begun = None if start is None else start.as_start(active)
    outputs = asked.outputs[rows][:, None]
    questions = Questions(counts[:, active])
    return _Part(solve(questions, outputs, form, start=begun, roughly=roughly), active)


def _choose(asked: _Asked, documents: Ints) -> tuple[Form, _Part]:
    """The form that predicts other documents best, the simplest of equals."""
    judges = documents[: max(int(_JUDGES * len(documents)), 2)]
    rows = asked.about(documents[len(judges) :])
    test = np.isin(asked.owners, judges)
    counts, answers = asked.counts[test], asked.outputs[test]
    tried: list[tuple[_Part, Floats]] = []

    def attempt(form: Form, start: _Part | None = None) -> _Part:
        part = _solve(asked, rows, form, start, roughly=True)
        tried.append((part, (part.slalom.predict(counts) - answers) ** 2))
        return part

    attempt(Form(0.0, saturation=True), attempt(Form(0.0)))
    for mixing in (0.5, 1.0):
        attempt(Form(mixing, saturation=True))
    best = min(tried, key=_loss)[0]
    attempt(Form(None, saturation=best.posterior.layout.form.saturation), best)
    best = min(tried, key=_loss)[0]
    form = best.posterior.layout.form
    if form.saturation and form.mixing != 0.0:
        attempt(replace(form, saturation=False), best)
    # The mixing between the ends is fitted: the one that was only begun at is no form.
    forms = [one for one in tried if one[0].posterior.layout.form.mixing != 0.5]
    forms.sort(key=lambda one: one[0].posterior.layout.form.complexity)
    chosen = forms[0]
    for one in forms[1:]:
        gain = chosen[1] - one[1]
        if gain.mean() > _MARGIN * gain.std() / np.sqrt(len(gain)):
            chosen = one
    return chosen[0].posterior.layout.form, chosen[0]


def _loss(one: tuple[_Part, Floats]) -> float:
    return float(one[1].mean())


# -- errors ------------------------------------------------------------------------------------


def _errors(posterior: Posterior, whole: Counts) -> dict[str, Floats]:
    """Standard errors, from changes along all directions of the covariance."""
    ends = [
        _numbers(
            posterior.layout.parameters(posterior.theta[:, None] + side * posterior.factor),
            whole,
        )
        for side in (_STEP, -_STEP)
    ]
    above, below = ends
    errors = {
        name: np.linalg.norm((above[name] - below[name]) / (2 * _STEP), axis=1) for name in above
    }
    if not posterior.layout.weighted:
        errors["importance"] = np.full_like(errors["importance"], np.inf)
    return errors


def _numbers(parameters: Parameters, whole: Counts) -> dict[str, Floats]:
    """What a vocabulary tells of its words, words × points."""
    weight, part = parameters.always
    alone = parameters.gathered(parameters.weights + weight, parameters.parts + part)
    usual = _usual_weight(parameters, whole)
    return {
        "value": parameters.answer(alone),
        "importance": parameters.importances - parameters.importances.mean(axis=0),
        "evidence": parameters.evidence,
        "effect": parameters.parts * usual**-parameters.mixing,
    }


def _usual_weight(parameters: Parameters, whole: Counts) -> Floats:
    """The median weight of a whole text."""
    return np.asarray(np.median(whole @ parameters.weights, axis=0) + parameters.always[0])


def _mixing_error(posterior: Posterior) -> float:
    if posterior.layout.mixing is None:
        return 0.0
    return float(np.linalg.norm(posterior.factor[posterior.layout.mixing]))
