"""Which concepts a class reacts to: the whole way from examples to a report."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from piste.classifiers import Classifier, load
from piste.concepts.examples import Source, bind
from piste.concepts.report import SURE, ConceptReport, ConceptScore
from piste.concepts.request import (
    NUMBERS,
    ClassExamples,
    Concepts,
    Data,
    Number,
    TargetClass,
    read_classes,
    read_layers,
    read_negatives,
    read_sets,
    seen_size,
)
from piste.concepts.sensitivity import KINDS, Kind, Sensitivities, measure
from piste.concepts.state_shifts import EXAMPLES, move, reach
from piste.concepts.states import StateReader
from piste.concepts.statistics import (
    CORRECTIONS,
    Correction,
    against_half,
    as_random,
    corrected,
    range_of,
    two_way_interval,
    welch,
)
from piste.concepts.vector_fitting import SPACES, Draws, Fitted, Space, collect, fit_all
from piste.engine import Progress, ProgressOption
from piste.errors import PisteError, need
from piste.validation import check_count, choose


class _Looking(Progress):
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
    pictures), or just names of shipped ones. In every repeat a vector u is fitted that tells the
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
    for name, value, least in (("repeats", repeats, 2), ("tokens", tokens, 1), ("seed", seed, 0)):
        check_count(name, value, least)
    choose("number", number, NUMBERS)
    choose("correction", correction, CORRECTIONS)
    choose("long", long, ("truncate", "error"))
    loaded = _white_box(classifier)
    repeated: Counter[str] = Counter()
    classes = read_classes(loaded, data, target, number, repeated)
    size = seen_size(loaded, classes[0].inputs[0])
    sets = read_sets(loaded, concepts, size, seed, repeated)
    against = read_negatives(loaded, negatives, sets, size, seed, repeated)
    reader = StateReader(loaded, [classes[0].goal])
    depth = reader.probe(next(bind(loaded, classes[0].title, classes[0].inputs, long)))
    chosen = read_layers(layers, depth)
    sizes = {name: len(inputs) for name, inputs in sets.items()}
    draws = Draws(sizes, None if against is None else len(against), repeats, seed)
    titled = {f"The concept {name!r}": inputs for name, inputs in sets.items()}
    if against is not None:
        titled["The set of negatives"] = against
    cut: Counter[str] = Counter()
    with _Looking(progress) as shown:
        shown.plan(sum(map(len, titled.values())))
        given = [several[0].inputs for several in _sharing(classes)]
        shown.plan(sum(len(inputs) + len(chosen) * len(_spread(inputs)) for inputs in given))
        shown.plan(draws.fits * len(chosen) * len(SPACES))
        held = [
            collect(
                reader,
                bind(loaded, title, inputs, long, cut),
                chosen,
                tokens=tokens,
                seed=[seed, 0, place],
                done=shown.advance,
            )
            for place, (title, inputs) in enumerate(titled.items())
        ]
        fitted: list[Mapping[Space, Fitted]] = [
            {
                space: fit_all([one[place][space] for one in held], draws, shown.advance)
                for space in SPACES
            }
            for place in range(len(chosen))
        ]
        reaches = [
            reach([one[place]["tokens"] for one in held], spaces["tokens"])
            for place, spaces in enumerate(fitted)
        ]
        scores: list[ConceptScore] = []
        for several in _sharing(classes):
            reader.goals = tuple(one.goal for one in several)
            title, inputs = several[0].title, several[0].inputs
            subjects = bind(loaded, title, inputs, long, cut)
            found = measure(reader, subjects, chosen, fitted, shown.advance)
            subjects = bind(loaded, title, _spread(inputs), long)
            vectors = [spaces["tokens"] for spaces in fitted]
            moved = move(reader, subjects, chosen, vectors, reaches, shown.advance)
            for goal, one in enumerate(several):
                for place, (layer, spaces) in enumerate(zip(chosen, fitted, strict=True)):
                    kinds = found[goal][place]
                    if moved is not None:
                        kinds["moved"] = moved[goal][place]
                    for kind, numbers in kinds.items():
                        scores += _judged(one, layer, kind, numbers, spaces[KINDS[kind]], seed)
    return ConceptReport(
        scores=_corrected(scores, correction),
        vectors={
            name: {
                layer: spaces["tokens"].concepts[name].mean(axis=0)
                for layer, spaces in zip(chosen, fitted, strict=True)
            }
            for name in sets
        },
        depth=depth,
        goals=tuple(one.goal for one in classes),
        concepts=sizes,
        negatives=None if against is None else len(against),
        examples={one.name: len(one.inputs) for one in classes},
        calls=reader.calls,
        seconds=time.perf_counter() - start,
        settings={
            "repeats": repeats,
            "random_sets": draws.sets,
            "tokens": tokens,
            "number": number,
            "correction": correction,
            "long": long,
            "seed": seed,
        },
        classifier=loaded.describe(),
        versions={
            name: version(name) for name in ("piste", "torch", "transformers", "scikit-learn")
        },
        notes=tuple(_notes(repeated, cut, scores)),
    )


def _white_box(classifier: Any) -> Classifier:
    loaded = load(classifier)
    if type(loaded).inside is Classifier.inside:
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


def _judged(
    of: ClassExamples, layer: int, kind: Kind, found: Sensitivities, fitted: Fitted, seed: int
) -> Iterator[ConceptScore]:
    """Every concept's score against those of the random sets; not corrected yet."""
    random_means = found.random.mean(axis=(1, 2))
    random_shares = (found.random > 0).mean(axis=2)
    low, high = range_of(random_shares.mean(axis=1))
    for name, numbers in found.concepts.items():
        hits = numbers > 0
        shares = hits.mean(axis=1)
        accuracy = float(fitted.accuracies[name].mean())
        accuracy_low, accuracy_high = range_of(fitted.accuracies[name])
        interval = two_way_interval(hits, seed)
        p = as_random(float(numbers.mean()), random_means)
        yield ConceptScore(
            concept=name,
            target=of.name,
            layer=layer,
            kind=kind,
            score=float(shares.mean()),
            low=interval[0],
            high=interval[1],
            sensitivity=float(numbers.mean()),
            random_score=float(random_shares.mean()),
            random_low=low,
            random_high=high,
            p=p,
            p_corrected=p,
            p_welch=welch(shares, random_shares[:, 0]),
            p_half=against_half(shares),
            accuracy=accuracy,
            accuracy_low=accuracy_low,
            accuracy_high=accuracy_high,
            random_accuracy=float(fitted.random_accuracies.mean()),
            separable=as_random(accuracy, fitted.random_accuracies, above=True) < SURE,
        )


def _corrected(scores: Sequence[ConceptScore], how: Correction) -> tuple[ConceptScore, ...]:
    """For all concepts, classes and layers of a kind at once: kinds are views of one question."""
    found = list(scores)
    for kind in KINDS:
        places = [place for place, one in enumerate(scores) if one.kind == kind]
        chances = corrected([scores[place].p for place in places], how)
        for place, p in zip(places, chances, strict=True):
            found[place] = replace(found[place], p_corrected=float(p))
    return tuple(found)


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
