"""Which concepts a class reacts to: the whole way from examples to a report."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from piste.classifiers import Classifier, load
from piste.concepts.examples import Source, bind
from piste.concepts.report import ConceptReport, ConceptScore
from piste.concepts.request import (
    NUMBERS,
    ClassExamples,
    Concepts,
    Data,
    Number,
    TargetClass,
    input_size,
    read_classes,
    read_layers,
    read_negatives,
    read_sets,
)
from piste.concepts.sensitivity import EXAMPLES, KINDS, measure, move, reach
from piste.concepts.states import StateReader
from piste.concepts.statistics import CORRECTIONS, Correction, correct_scores, tested_scores
from piste.concepts.vectors import SPACES, Draws, FittedVectors, Space, collect, fit_all
from piste.engine import Progress, ProgressOption
from piste.errors import PisteError, need
from piste.validation import check_count, choose

_NEGATIVES = "The set of negatives"


class _ConceptProgress(Progress):
    title = "looking inside"


def score(
    classifier: Any,
    data: Data,
    concepts: Concepts,
    *,
    target: TargetClass | Sequence[TargetClass] | None = None,
    negatives: Source | None = None,
    layers: Sequence[int] | None = None,
    repeats: int = 50,
    tokens: int = 24,
    number: Number = "log-odds",
    correction: Correction = "holm",
    long: Literal["truncate", "error"] = "truncate",
    seed: int = 0,
    progress: ProgressOption = None,
) -> ConceptReport:
    """How much a class reacts to concepts that examples define, in several layers.

    ``data`` are examples of the class ``target``; for several classes give a mapping from each
    to its examples. ``concepts`` are names with examples (a list, a file of texts, a folder of
    images), or just names of shipped ones. In every repeat a vector u is fitted that tells the
    states of a concept's examples from as many of ``negatives`` (None: of the other concepts; a
    single one is told from a shipped set of everyday sentences or of blotches). The score is

        share of examples x with  Σ_t w_t · (∂f/∂h_t · u) > 0,

    w_t the attention that the classification token pays to token t ("attention"), or equal for
    all ("tokens"); the same is done with vectors fitted to the mean of the tokens ("mean") and to
    what the head reads ("reader"). A model that is sure of its answers has hardly any derivatives;
    so first of all comes the share for which f(h + r u) > f(h − r u), with all states of up
    to 40 examples moved as far as the concept lies away ("moved", ours). Random sets of examples go
    the same way, and show what a score is worth: see :class:`ConceptScore`.

    ``layers`` are numbers of blocks behind which states are looked at (0: embeddings; None: all
    but those, or six of them), ``tokens`` the most that are fitted to of one example. ``number``
    is f: the class's log-odds against the rest, or as in the papers its logit (in which the part
    that all logits share, and that decides nothing, is counted too).

    >>> import piste
    >>> from piste.concepts import sentences
    >>> report = piste.concepts.score(
    ...     "piste:reviews", sentences("acting"), ["praise", "music", "price"],
    ...     target="positive", layers=[1], repeats=5,
    ... )
    >>> [report.of(name, layer=1).verdict for name in ("praise", "price")]
    ['raises', 'unclear']
    """
    start = time.perf_counter()
    need("sklearn", "concepts", "Concept activation vectors")
    options = _Options(repeats, tokens, number, correction, long, seed)
    task = _prepare(_white_box(classifier), data, concepts, target, negatives, layers, options)
    with _ConceptProgress(progress) as shown:
        _plan(task, shown)
        vectors = _fit(task, shown)
        scores = [
            one
            for several in _sharing(task.classes)
            for one in _score(task, several, vectors, shown)
        ]
    return _report(task, vectors, scores, time.perf_counter() - start)


@dataclass(frozen=True)
class _Options:
    """The numbers and choices of :func:`score`, checked."""

    repeats: int
    tokens: int
    number: Number
    correction: Correction
    long: Literal["truncate", "error"]
    seed: int

    def __post_init__(self) -> None:
        for name, least in (("repeats", 2), ("tokens", 1), ("seed", 0)):
            check_count(name, getattr(self, name), least)
        choose("number", self.number, NUMBERS)
        choose("correction", self.correction, CORRECTIONS)
        choose("long", self.long, ("truncate", "error"))


@dataclass(frozen=True)
class _Task:
    """What is scored, with all examples read."""

    classifier: Classifier
    classes: Sequence[ClassExamples]
    sets: Mapping[str, Sequence[Any]]
    negatives: Sequence[Any] | None
    reader: StateReader
    depth: int
    layers: Sequence[int]
    draws: Draws
    options: _Options
    repeated: Counter[str]
    """Examples that were left out, by the set they came with."""
    cut: Counter[str] = field(default_factory=Counter)
    """Examples that were cut, by their set."""

    @property
    def titled_sets(self) -> dict[str, Sequence[Any]]:
        """The concepts, then the negatives, as errors name them."""
        titled = {f"The concept {name!r}": inputs for name, inputs in self.sets.items()}
        return titled if self.negatives is None else titled | {_NEGATIVES: self.negatives}

    @property
    def sizes(self) -> dict[str, int]:
        """How many examples every concept has."""
        return {name: len(inputs) for name, inputs in self.sets.items()}


@dataclass(frozen=True)
class _Vectors:
    """The vectors of every layer, and how far states are moved along them."""

    fitted: Sequence[Mapping[Space, FittedVectors]]
    reaches: Sequence[float]

    @property
    def tokens(self) -> list[FittedVectors]:
        return [spaces["tokens"] for spaces in self.fitted]


def _prepare(
    classifier: Classifier,
    data: Data,
    concepts: Concepts,
    target: TargetClass | Sequence[TargetClass] | None,
    negatives: Source | None,
    layers: Sequence[int] | None,
    options: _Options,
) -> _Task:
    """Read classes, concepts and negatives, and find out how deep the model is."""
    repeated: Counter[str] = Counter()
    classes = read_classes(classifier, data, target, options.number, repeated)
    first = classes[0]
    size = input_size(classifier, first.inputs[0])
    sets = read_sets(classifier, concepts, size, options.seed, repeated)
    against = read_negatives(classifier, negatives, sets, size, options.seed, repeated)
    reader = StateReader(classifier, [first.goal])
    depth = reader.probe(next(bind(classifier, first.title, first.inputs, options.long)))
    sizes = {name: len(inputs) for name, inputs in sets.items()}
    many = None if against is None else len(against)
    return _Task(
        classifier=classifier,
        classes=classes,
        sets=sets,
        negatives=against,
        reader=reader,
        depth=depth,
        layers=read_layers(layers, depth),
        draws=Draws(sizes, many, options.repeats, options.seed),
        options=options,
        repeated=repeated,
    )


def _plan(task: _Task, shown: Progress) -> None:
    """Announce all the work: examples that are read or moved, and vectors that are fitted."""
    shown.plan(sum(map(len, task.titled_sets.values())))
    given = [several[0].inputs for several in _sharing(task.classes)]
    shown.plan(sum(len(inputs) + len(task.layers) * len(_spread(inputs)) for inputs in given))
    shown.plan(task.draws.fits * len(task.layers) * len(SPACES))


def _fit(task: _Task, shown: Progress) -> _Vectors:
    """Collect the states of all sets, and fit vectors to them in every layer."""
    held = [
        collect(
            task.reader,
            bind(task.classifier, title, inputs, task.options.long, task.cut),
            task.layers,
            tokens=task.options.tokens,
            seed=[task.options.seed, 0, place],
            done=shown.advance,
        )
        for place, (title, inputs) in enumerate(task.titled_sets.items())
    ]
    fitted: list[Mapping[Space, FittedVectors]] = [
        {
            space: fit_all([one[place][space] for one in held], task.draws, shown.advance)
            for space in SPACES
        }
        for place in range(len(task.layers))
    ]
    reaches = [
        reach([one[place]["tokens"] for one in held], spaces["tokens"])
        for place, spaces in enumerate(fitted)
    ]
    return _Vectors(fitted, reaches)


def _score(
    task: _Task, several: Sequence[ClassExamples], vectors: _Vectors, shown: Progress
) -> Iterator[ConceptScore]:
    """Every concept's scores for classes that share their examples, not corrected yet."""
    reader, long = task.reader, task.options.long
    reader.goals = tuple(one.goal for one in several)
    title, inputs = several[0].title, several[0].inputs
    subjects = bind(task.classifier, title, inputs, long, task.cut)
    found = measure(reader, subjects, task.layers, vectors.fitted, shown.advance)
    subjects = bind(task.classifier, title, _spread(inputs), long)
    moved = move(reader, subjects, task.layers, vectors.tokens, vectors.reaches, shown.advance)
    for goal, one in enumerate(several):
        for place, (layer, spaces) in enumerate(zip(task.layers, vectors.fitted, strict=True)):
            kinds = found[goal][place]
            if moved is not None:
                kinds["moved"] = moved[goal][place]
            for kind, numbers in kinds.items():
                space = spaces[KINDS[kind]]
                yield from tested_scores(one, layer, kind, numbers, space, task.options.seed)


def _report(
    task: _Task, vectors: _Vectors, scores: Sequence[ConceptScore], seconds: float
) -> ConceptReport:
    return ConceptReport(
        scores=correct_scores(scores, task.options.correction),
        vectors={
            name: {
                layer: fitted.concepts[name].mean(axis=0)
                for layer, fitted in zip(task.layers, vectors.tokens, strict=True)
            }
            for name in task.sets
        },
        depth=task.depth,
        goals=tuple(one.goal for one in task.classes),
        concepts=task.sizes,
        negatives=None if task.negatives is None else len(task.negatives),
        examples={one.name: len(one.inputs) for one in task.classes},
        calls=task.reader.calls,
        seconds=seconds,
        settings={**asdict(task.options), "random_sets": task.draws.sets},
        classifier=task.classifier.describe(),
        versions={
            name: version(name) for name in ("piste", "torch", "transformers", "scikit-learn")
        },
        notes=tuple(_notes(task.repeated, task.cut, scores)),
    )


def _white_box(classifier: Any) -> Classifier:
    loaded = load(classifier)
    if type(loaded).gradient_access is Classifier.gradient_access:
        raise PisteError(
            f"{loaded.name!r} only gives answers, and concepts are looked for inside a model: load "
            "the model itself."
        )
    return loaded


def _sharing(classes: Sequence[ClassExamples]) -> list[list[ClassExamples]]:
    """Classes with the same examples go through the model together."""
    groups: dict[int, list[ClassExamples]] = {}
    for one in classes:
        groups.setdefault(id(one.inputs), []).append(one)
    return list(groups.values())


def _spread(inputs: Sequence[Any]) -> Sequence[Any]:
    """As many as states are moved of, from all over."""
    places = np.linspace(0, len(inputs) - 1, min(len(inputs), EXAMPLES)).round()
    return [inputs[int(place)] for place in places]


def _notes(
    repeated: Mapping[str, int], cut: Mapping[str, int], scores: Sequence[ConceptScore]
) -> Iterator[str]:
    for title, count in repeated.items():
        yield f"{title}: {count} repeated examples were left out."
    for title, count in cut.items():
        yield f"{title}: {count} were longer than the model reads, and cut."
    if not any(one.kind == "moved" for one in scores):
        yield "It was not found where the model makes its states, so they could not be moved."
    if not any(one.kind == "attention" for one in scores):
        yield "The model's attention was not met: scores weighted by it are left out."
