"""One SLALOM for a whole corpus.

A few questions with slopes about each of some thousand documents are enough, because documents
share their words: a whole text with its slopes says something about each of its units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from piste.classifiers import Classifier
from piste.engine import Engine
from piste.errors import PisteError
from piste.slalom import sampling
from piste.slalom.surrogate import Slalom
from piste.slalom.wide import Asked, fit_wide, gather
from piste.subject import Subject
from piste.target import Target, resolve
from piste.vocabulary.table import Vocabulary, keys

Floats = NDArray[np.float64]

_PATH = ((0.1, 1e-3), (0.03, 3e-4), (0.01, 1e-4), (0.003, 3e-5), (0.001, 1e-5))
"""Ridges that are tried, from strong to weak, each beginning where the one before ended."""
_HELD_OUT = 0.1
GROUPS = 5
"""Of documents, each left out once, for the standard errors."""
_AGAIN = 40
"""Iterations of a fit that begins near its end."""


def fit_vocabulary(
    classifier: Classifier,
    subjects: Iterable[Subject],
    *,
    target: int | str | None = None,
    questions: int = 3,
    seed: int = 0,
    about: Mapping[str, Any] | None = None,
) -> Vocabulary:
    """Ask ``questions`` about every subject, with slopes where there are any, and fit.

    The target is a class, by default the last (of two: what speaks for the second).
    """
    index = len(classifier.labels) - 1 if target is None else target
    chosen = resolve(index, np.zeros(len(classifier.labels)), classifier.labels, classifier.kind)
    folded = _folds(classifier)
    parts, owners = [], []
    words: dict[str, int] = {}
    for number, part in enumerate(
        _ask(classifier, subjects, chosen, folded, words, questions, seed)
    ):
        parts.append(part)
        owners += [number] * len(part.output)
    if len(parts) < 2 * GROUPS:
        raise PisteError(
            f"A vocabulary is fitted to many documents, but only {len(parts)} came: give at least "
            f"{2 * GROUPS}."
        )
    asked = gather(parts, len(words))
    slalom, ridge, r2 = _fit(asked, np.array(owners), seed)
    usual = _usual_weight(asked, slalom, np.array(owners))
    pairs = np.unique(np.array(owners)[asked.question] * len(words) + asked.type)
    return Vocabulary(
        tuple(words),
        slalom,
        _errors(asked, np.array(owners), slalom, ridge, usual, seed),
        np.bincount(pairs % len(words), minlength=len(words)),
        folded,
        {
            **(about or {}),
            "target": chosen.name,
            "class": index if isinstance(index, int) else classifier.labels.index(index),
            "labels": list(classifier.labels),
            "model": classifier.describe(),
            "documents": len(parts),
            "questions": len(asked.output),
            "slopes": bool(np.isfinite(asked.slope).any()),
            "ridge": list(ridge),
            "usual_weight": usual,
            "r2": r2,
            "seed": seed,
        },
    )


def _folds(classifier: Classifier) -> bool:
    """Whether capitals make no difference to it."""
    types = classifier.subject("word Word").types
    return bool(types[0] == types[-1])


def _ask(
    classifier: Classifier,
    subjects: Iterable[Subject],
    target: Target,
    folded: bool,
    words: dict[str, int],
    questions: int,
    seed: int,
) -> Iterator[Asked]:
    """The answers about every subject; ``words`` grows with what comes up."""
    engine = Engine(classifier)
    rng = np.random.default_rng(seed)
    for subject in subjects:
        places = np.array([words.setdefault(word, len(words)) for word in keys(subject, folded)])
        drawn = sampling.draw("subsets", len(subject), questions - 1, rng)
        sequences = [subject.whole, *drawn]
        if classifier.why_no_slopes(subject) is None:
            logits, slopes = engine.ask_slopes(subject, sequences, target)
        else:
            (logits,) = engine.ask([(subject, sequences)])
            slopes = np.full((len(sequences), len(subject)), np.nan)
        engine.forget([subject])
        units = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
        yield Asked(
            np.repeat(np.arange(len(units)), [len(one) for one in units]),
            places[np.concatenate(units)],
            np.concatenate([row[one] for row, one in zip(slopes, units, strict=True)]),
            target(logits),
            0,
        )


def _fit(
    asked: Asked, owners: NDArray[np.int64], seed: int
) -> tuple[Slalom, tuple[float, float], float]:
    """The fit with the ridge that foretells documents best that were left out, and how well."""
    rng = np.random.default_rng(seed)
    documents = int(owners.max()) + 1
    held = rng.permutation(documents)[: max(int(_HELD_OUT * documents), 2)]
    out = np.isin(owners, held)
    training, test = asked.of(~out), asked.of(out)
    found: Slalom | None = None
    best: tuple[float, tuple[float, float], Slalom] | None = None
    spread = float(((test.output - training.output.mean()) ** 2).mean()) or 1.0
    for ridge in _PATH:
        found = fit_wide(training, ridge, start=found)
        error = float(((predict(found, test) - test.output) ** 2).mean())
        if best is None or error < best[0]:
            best = error, ridge, found
    assert best is not None
    error, ridge, found = best
    return fit_wide(asked, ridge, start=found, iterations=_AGAIN), ridge, 1 - error / spread


def _usual_weight(asked: Asked, slalom: Slalom, owners: NDArray[np.int64]) -> float:
    """Of the whole texts, which are the first questions about each document."""
    first = np.unique(owners, return_index=True)[1]
    mass = np.exp(slalom.importances)[asked.type]
    totals = np.bincount(asked.question, mass, len(asked.output)) + slalom.weight
    return float(np.median(totals[first]))


def predict(slalom: Slalom, asked: Asked) -> Floats:
    """What a SLALOM says to questions that are lists of units."""
    mass = np.exp(slalom.importances)[asked.type]
    count = len(asked.output)
    total = np.bincount(asked.question, mass, count) + slalom.weight
    top = np.bincount(asked.question, mass * slalom.values[asked.type], count)
    evidence = (top + slalom.weight * float(slalom.base)) / total
    return evidence if slalom.link is None else slalom.link(evidence)


def _errors(
    asked: Asked,
    owners: NDArray[np.int64],
    slalom: Slalom,
    ridge: tuple[float, float],
    usual: float,
    seed: int,
) -> dict[str, Floats]:
    """Delete-a-group jackknife over documents: what other documents would have said."""
    group = np.random.default_rng([seed, 1]).integers(0, GROUPS, int(owners.max()) + 1)[owners]
    fits = [
        fit_wide(asked.of(group != left), ridge, start=slalom, iterations=_AGAIN)
        for left in range(GROUPS)
    ]

    def error(numbers: Sequence[Floats]) -> Floats:
        spread = np.var(np.stack(numbers), axis=0) * (GROUPS - 1)
        return np.asarray(np.sqrt(spread))

    return {
        "value": error([one.values for one in fits]),
        "importance": error([one.importances - one.importances.mean() for one in fits]),
        "effect": error(
            [np.exp(one.importances) * (one.values - one.base) / usual for one in fits]
        ),
    }
