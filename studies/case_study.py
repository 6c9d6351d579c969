"""A shortcut is planted in training texts: does SLALOM's plane expose it?

A harmless word is put into most positive training texts and few negative ones, a control word into
half of both. Models learn from these texts, or from the same texts without the shortcut. Both words
then stand in every test text of both classes: where do they lie in the plane of value and
importance (of SLALOM as published), and does removing them change the answer as predicted?

Only openings of reviews are read. Models that can tell the class without the shortcut don't learn
it, and the bundled ones have learned from whole reviews already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

import piste
from piste import zoo
from piste.classifiers import Classifier
from piste.evaluation import Example, read_data
from piste.explanation import Explanation
from studies.base import Findings, Study, Work
from studies.case_report import report
from studies.finetuning import Training, fine_tune
from studies.planting import (
    CONTROL,
    METHODS,
    PAPER,
    SHORTCUT,
    WORDS,
    Case,
    by_word,
    corpus,
    insert,
    opening,
    plant,
    rank,
    remove,
    sizes,
)
from studies.reviews import LABELS, made_up
from studies.synthetic import answers

_CONTROL_SHARE = 0.5
_CORNER = 0.2
"""Which share of a text's words lies high or far to the right in the plane."""


@dataclass(frozen=True)
class Scale:
    """How much is read, learned, asked and explained."""

    words: int
    learned: int
    asked: int
    explained: int
    training: dict[str, Any]


QUICK = Scale(6, 1600, 200, 24, {"tokens": 32, "rate": 3e-3, "size": 16})
FULL = Scale(30, 4000, 500, 60, {"tokens": 128, "rate": 5e-4, "epochs": 2.0})
_QUICK_CASES = (Case("reviews", 0.0, 0.0), Case("reviews", 0.8, 0.05))
_FULL_CASES = (
    *_QUICK_CASES,
    Case("reviews-gpt", 0.0, 0.0),
    Case("reviews-gpt", 0.8, 0.05),
    Case("reviews", 0.6, 0.4),
    Case("reviews", 0.8, 0.2),
    Case("reviews", 0.95, 0.05),
)


class CaseStudy(Study):
    """Models that learned a shortcut, explained and asked without it."""

    name: ClassVar[str] = "case-study"
    title: ClassVar[str] = "A planted shortcut, found in the plane"

    def run(self, work: Work) -> Findings:
        """Plant, learn, explain, remove."""
        cases = _QUICK_CASES if work.quick else _FULL_CASES
        scale = QUICK if work.quick else FULL
        work.plan(len(cases))
        found = {
            case: work.part(f"{case.name} {scale}", partial(self.measure, case, scale, work))
            for case in cases
        }
        return report(found, self.name, self.title, work.command(self.name))

    def measure(self, case: Case, scale: Scale, work: Work) -> dict[str, Any]:
        """What one model says with and without the words, and what explanations say of them."""
        classifier = _learn(case, scale, work)
        tests = _reviews("test", scale.asked, scale, work)
        rng = np.random.default_rng([work.seed, 2])
        texts = [insert(insert(one.text, CONTROL, rng), SHORTCUT, rng) for one in tests]
        said = answers(classifier, texts)
        without = {w: answers(classifier, [remove(t, w) for t in texts]) for w in WORDS}
        explained = {method: _explain(classifier, texts, method, scale, work) for method in METHODS}
        published = explained[PAPER]
        return {
            "labels": [one.label for one in tests],
            "with": said.tolist(),
            "without": {word: one.tolist() for word, one in without.items()},
            "predicted": {m: {w: _predicted(es, w) for w in WORDS} for m, es in explained.items()},
            "first": {m: {w: _first(es, w) for w in WORDS} for m, es in explained.items()},
            "plane": {word: [_place(e, word) for e in published] for word in WORDS},
            "corpus": [asdict(one) for one in corpus(published, max(3, len(published) // 20))],
        }


def _learn(case: Case, scale: Scale, work: Work) -> Classifier:
    """The case's model; all settings are in the name it is kept under."""
    training = Training(seed=work.seed, **scale.training)
    rng = np.random.default_rng([work.seed, 1])
    examples = _reviews("train", scale.learned, scale, work)
    examples = plant(examples, CONTROL, {0: _CONTROL_SHARE, 1: _CONTROL_SHARE}, rng)
    examples = plant(examples, SHORTCUT, {0: case.negative, 1: case.positive}, rng)
    kept = f"{case.name}-{SHORTCUT}-{CONTROL}-{scale.words}-{scale.learned}-{training.name}"
    folder = work.models / f"shortcut-{'made-up' if work.quick else 'imdb'}-{kept}"
    return fine_tune(
        zoo.folder(f"piste:{case.model}"), examples, LABELS, folder, **asdict(training)
    )


def _reviews(split: str, count: int, scale: Scale, work: Work) -> list[Example]:
    """Openings of reviews; any that have one of the words of their own are left out."""
    if work.quick:
        found = made_up(count, 2 * work.seed + (split == "test"))
    else:
        path = work.need("imdb.parquet", "data")
        few = (scale.words, None)
        found = read_data(path, split=split, examples=count, words=few, seed=work.seed)
    cut = [opening(one, scale.words) for one in found]
    return [one for one in cut if not any(word in one.text.casefold() for word in WORDS)]


def _explain(
    classifier: Classifier, texts: Sequence[str], method: str, scale: Scale, work: Work
) -> list[Explanation]:
    """Always of the class the shortcut speaks for, so that signs mean the same in all texts."""
    some = list(texts[: scale.explained])
    return piste.explain(
        classifier, some, target=LABELS[1], seed=work.seed, progress=False, **METHODS[method]
    )


def _predicted(explanations: Sequence[Explanation], word: str) -> list[float]:
    """How far the answer falls without the word, by each explanation."""
    found = []
    for e in explanations:
        keep = np.array([unit.text.strip().casefold() != word for unit in e.units])
        whole, rest = np.asarray(e.predict(np.stack([np.ones_like(keep), keep])))
        found.append(float(whole - rest))
    return found


def _first(explanations: Sequence[Explanation], word: str) -> list[bool]:
    """Whether no other word has a larger score."""
    return [rank(sizes(by_word(e, e.ranking)), word) == 1 for e in explanations]


def _place(e: Explanation, word: str) -> dict[str, Any]:
    """Where a word lies in the plane of its text, and how many words lie above or right of it."""
    value, importance = by_word(e, "value"), by_word(e, "importance")
    right, high = rank(value, word), rank(importance, word)
    most = int(np.ceil(_CORNER * len(value)))
    return {
        "value": value[word],
        "importance": importance[word],
        "right": right,
        "high": high,
        "words": len(value),
        "corner": max(right, high) <= most,
    }


STUDY = CaseStudy()
