"""Concept scores, each tested against the scores of random sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from piste.concepts.report import SURE, ConceptScore
from piste.concepts.request import ClassExamples
from piste.concepts.sensitivity import KINDS, Kind, Sensitivities
from piste.concepts.statistics import (
    Correction,
    against_half,
    as_random,
    corrected,
    range_of,
    two_way_interval,
    welch,
)
from piste.concepts.vector_fitting import FittedVectors


def tested_scores(
    of: ClassExamples,
    layer: int,
    kind: Kind,
    found: Sensitivities,
    fitted: FittedVectors,
    seed: int,
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


def correct_scores(scores: Sequence[ConceptScore], how: Correction) -> tuple[ConceptScore, ...]:
    """For all concepts, classes and layers of a kind at once: kinds are views of one question."""
    found = list(scores)
    for kind in KINDS:
        places = [place for place, one in enumerate(scores) if one.kind == kind]
        chances = corrected([scores[place].p for place in places], how)
        for place, p in zip(places, chances, strict=True):
            found[place] = replace(found[place], p_corrected=float(p))
    return tuple(found)
