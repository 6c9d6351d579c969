"""What the documents of a corpus told so far: records of them, and the prior for the next ones.

A document is asked in full, or with a prior, and then with a share of the questions. The share is
the smallest with which documents that were asked in full are predicted as well as from all their
answers, up to a hundredth of R² (in the median, by questions that were held out): each of them is
fitted again as if the prior had been learned without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from piste.explanation import r_squared
from piste.slalom.family import Layout
from piste.slalom.fitting import fit_with_prior, threads_for
from piste.slalom.learned_prior import LearnedPrior, Told, learn, orientation, usual_form
from piste.target import Target
from piste.types import Counts, Floats, Ints

Key = bytes | str
"""What a word alone is to the model."""

SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Of the usual questions: those that are tried."""
LEAST_QUESTIONS = 8
LEAST_DOCUMENTS = 16
"""Of one target, before anything is learned about it."""
_JUDGES = 24
"""Documents that were asked in full, by which the share is found."""
_LOSS = 0.01


@dataclass(frozen=True)
class Asked:
    """Answers to a document that was asked in full: held-out questions first, then those fitted.

    Words alone are not among them.
    """

    counts: Counts
    numbers: Floats
    held: int
    r2: float
    """Of its own fit, on the questions held out."""


@dataclass(frozen=True)
class DocumentRecord:
    """What one document told. Numbers are turned so that one class of two is explained."""

    keys: tuple[Key, ...]
    """Of every type of unit."""
    logits: Floats
    """The answers to each alone, types × outputs."""
    alone: Floats
    """The explained number of those."""
    target: str
    told: Told
    asked: Asked | None = None
    """None if the document was not asked in full."""


def turned_target(target: Target) -> tuple[str, float]:
    """A name for what is explained, and 1; of two classes always the second, then maybe −1."""
    if target.kind == "class" and len(target.labels) == 2:
        return "class 1", 1.0 if target.indices[0] == 1 else -1.0
    return f"{target.name} {target.indices}", 1.0


@dataclass(frozen=True)
class TargetPrior:
    """A prior for one explained number, and how many of the usual questions it needs."""

    prior: LearnedPrior
    share: float
    documents: int


@dataclass(frozen=True)
class CorpusPrior:
    """What is known before a document of a corpus is asked about."""

    keys: tuple[Key, ...]
    logits: Floats
    """The answers to all words alone, words × outputs."""
    targets: Mapping[str, TargetPrior]
    documents: int

    @cached_property
    def _places(self) -> dict[Key, int]:
        return {key: place for place, key in enumerate(self.keys)}

    def places(self, keys: Iterable[Key]) -> Ints:
        """Places of words, −1 for new ones."""
        return np.array([self._places.get(key, -1) for key in keys], dtype=np.int64)

    def about(self) -> dict[str, object]:
        """What a manifest says of it."""
        return {
            "documents": self.documents,
            "words": len(self.keys),
            "targets": {
                name: {"form": one.prior.form.name, "share": one.share}
                for name, one in self.targets.items()
            },
        }

    @staticmethod
    def learned(records: Sequence[DocumentRecord], least: int = LEAST_DOCUMENTS) -> CorpusPrior:
        """The prior from what documents told, in their order."""
        words: dict[Key, int] = {}
        rows: list[Floats] = []
        for record in records:
            for key, row in zip(record.keys, record.logits, strict=True):
                if key not in words:
                    words[key] = len(words)
                    rows.append(row)
        logits = np.stack(rows) if rows else np.empty((0, 1))
        targets = {}
        for name in dict.fromkeys(record.target for record in records):
            own = [record for record in records if record.target == name]
            with threads_for(0):
                found = _for_target(own, words) if len(own) >= least else None
            if found is not None:
                targets[name] = found
        return CorpusPrior(tuple(words), logits, targets, len(records))


_Document = tuple[DocumentRecord, Ints, Told]


def _for_target(records: Sequence[DocumentRecord], words: Mapping[Key, int]) -> TargetPrior | None:
    """None where documents need all their questions."""
    documents: list[_Document] = []
    form = usual_form(record.told.form for record in records)
    for record in records:
        if record.told.form.mixing == form.mixing:
            places = np.array([words[key] for key in record.keys], dtype=np.int64)
            documents.append((record, places, record.told))
    prior = learn(form, [(at, one.alone, said) for one, at, said in documents], len(words))
    judges = [one for one in documents if one[0].asked is not None][:_JUDGES]
    share = _share(prior, judges)
    return None if share is None else TargetPrior(prior, share, len(records))


def _share(prior: LearnedPrior, judges: Sequence[_Document]) -> float | None:
    """The smallest share of the questions that loses next to nothing; None if there is none."""
    for share in SHARES:
        losses = [_loss(prior, *judge, share) for judge in judges]
        known = [loss for loss in losses if np.isfinite(loss)]
        if not known:
            return None
        if float(np.median(known)) <= _LOSS:
            return share
    return None


def _loss(
    prior: LearnedPrior, record: DocumentRecord, places: Ints, own: Told, share: float
) -> float:
    """What R² on held-out questions loses with a share of the others and the prior."""
    asked = record.asked
    assert asked is not None
    count = questions_of(share, len(asked.numbers) - asked.held)
    rows = slice(asked.held, asked.held + count)
    found = fit_with_prior(
        asked.counts[rows],
        asked.numbers[rows],
        prior.form,
        prior.at(places, record.alone, without=own),
        prior.noise,
    )
    expected = found.slalom.predict(asked.counts[: asked.held])
    return asked.r2 - r_squared(expected, asked.numbers[: asked.held])


def questions_of(share: float, usual: int) -> int:
    """A share of the usual number of questions, but not too few.

    >>> questions_of(1 / 16, 400), questions_of(1 / 64, 400), questions_of(0.5, 6)
    (25, 8, 6)
    """
    return min(max(round(share * usual), LEAST_QUESTIONS), usual)


def turned_prior(
    prior: LearnedPrior, places: Ints, alone: Floats, sign: float
) -> tuple[Floats, Floats]:
    """Means and standard deviations for a document whose numbers are to be turned by a sign."""
    mean, deviation = prior.at(places, sign * alone)
    return mean * orientation(Layout(len(places), 1, prior.form), sign), deviation
