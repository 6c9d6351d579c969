"""What the documents of a corpus told so far: records of them, and the prior for the next ones.

A document is asked in full, or with a prior: then some questions of all sizes, and a share of the
others, which may all be about a part of the text only: a short question costs little, and where
much is known before it says nearly as much as a long one. What is asked is the cheapest with which
documents that were asked in full are predicted about as well as from all their answers (on average,
by questions that were held out): each is fitted again as if the prior had been learned without it.
Documents have a guide (one gradient) if less is asked with it, its own price included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from piste.explanation import r_squared
from piste.slalom.fitting import fit_with_prior, threads_for
from piste.slalom.learned_prior import LearnedPrior, Told, learn, orientation, usual_form
from piste.target import Target
from piste.types import Counts, Floats, Ints

Key = bytes | str
"""What a word alone is to the model."""

LEAST_QUESTIONS = 8
IN_COMMON = 20
"""Questions of all sizes that every document with a prior is asked besides. They are fitted, too,
and fidelity is by them: each is judged by the fit without it."""
_LEAST_JUDGED = 10
LEAST_DOCUMENTS = 16
"""Of one target, before anything is learned about it."""
_JUDGES = 24
"""Documents that were asked in full, by which it is found what others are asked."""
_GUIDE = 300.0
"""The cost of a guide, in words of a text of 100: one way through the model and back."""
_LOSS, _LOSS_OF_REST = 0.01, 0.15
"""What they may lose on average: of R², or, if that is more, of the variance not explained."""


@dataclass(frozen=True)
class Asking:
    """Which longer questions a document with a prior is asked.

    >>> some = Asking(share=1 / 16, largest=0.5)
    >>> some.count(400), some.count(40), some.count(6)
    (25, 8, 6)
    """

    share: float
    """Of their usual number."""
    largest: float
    """Of the text: only the whole text itself is longer."""

    def count(self, usual: int) -> int:
        """How many of the usual number, but not too few."""
        return min(max(round(self.share * usual), LEAST_QUESTIONS), usual)

    @property
    def cost(self) -> float:
        """In words of a text of 100: sizes are even on a log scale from 2 on."""
        return 100 * self.share * self.largest / np.log(100 * self.largest / 2)


ASKINGS = sorted(
    (
        Asking(share, largest)
        for share in (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
        for largest in (1 / 4, 1 / 2, 1.0)
        if share * largest < 1.0
    ),
    key=lambda one: one.cost,
)
"""Those that are tried, the cheapest first."""


@dataclass(frozen=True)
class Asked:
    """Answers to a document that was asked in full: held-out questions first, then those fitted.

    Words alone are not among them.
    """

    counts: Counts
    numbers: Floats
    expected: Floats
    """What its own fit expected of the questions held out."""


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
    guide: Floats | None = None
    """What a look inside the model said of every type."""


def turned_target(target: Target) -> tuple[str, float]:
    """A name for what is explained, and 1; of two classes always the second, then maybe −1."""
    if target.kind == "class" and len(target.labels) == 2:
        return "class 1", 1.0 if target.indices[0] == 1 else -1.0
    return f"{target.name} {target.indices}", 1.0


@dataclass(frozen=True)
class TargetPrior:
    """A prior for one explained number, and which questions it needs."""

    prior: LearnedPrior
    asking: Asking
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
                name: {"form": one.prior.form.name, "guided": one.prior.guided} | asdict(one.asking)
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


_Document = tuple[DocumentRecord, Ints, Told | None]
"""A document, the places of its words, and what the prior has learned from it, if anything."""


def _for_target(records: Sequence[DocumentRecord], words: Mapping[Key, int]) -> TargetPrior | None:
    """With a guide or without, whichever asks less; None where documents need all questions."""
    plain = _learned(records, words, guided=False, below=np.inf)
    below = np.inf if plain is None else plain.asking.cost
    guided = _learned(records, words, guided=True, below=below - _GUIDE)
    return plain if guided is None else guided


def _learned(
    records: Sequence[DocumentRecord], words: Mapping[Key, int], *, guided: bool, below: float
) -> TargetPrior | None:
    """The prior for documents with a guide or without, if it needs questions of less cost."""
    if below <= ASKINGS[0].cost:
        return None
    texts = [_told(record, guided) for record in records]
    forms = [one.form for one in texts if one is not None]
    if not forms:
        return None
    form = usual_form(forms)
    learned, judges = [], list[_Document]()
    for record, own in zip(records, texts, strict=True):
        places = np.array([words[key] for key in record.keys], dtype=np.int64)
        same = own if own is not None and own.form.mixing == form.mixing else None
        if same is not None:
            learned.append((places, record.alone, same))
        if record.asked is not None and len(record.asked.expected) >= IN_COMMON + _LEAST_JUDGED:
            judges.append((record, places, same))
    prior = learn(form, learned, len(words))
    asking = _cheapest(prior, judges[:_JUDGES], below)
    return None if asking is None else TargetPrior(prior, asking, len(records))


def _told(record: DocumentRecord, guided: bool) -> Told | None:
    """What a document told for fits with a guide or without; None if it had none."""
    if record.told.guided == guided:
        return record.told
    return None if record.guide is None or guided else record.told.unguided(record.guide)


def _cheapest(prior: LearnedPrior, judges: Sequence[_Document], below: float) -> Asking | None:
    """The cheapest questions that lose next to nothing on average, if there are any so cheap."""
    full = [_unexplained(_asked(record).expected, record) for record, _, _ in judges]
    most = sum(full) + max(_LOSS * len(full), _LOSS_OF_REST * sum(full))
    for asking in ASKINGS if judges else ():
        if asking.cost >= below:
            break
        left = 0.0
        for record, places, own in judges:
            expected = _expected(prior.at(places, record.alone, without=own), prior, record, asking)
            left += _unexplained(expected, record)
            if left > most:
                break
        else:
            return asking
    return None


def _expected(
    begun: tuple[Floats, Floats], prior: LearnedPrior, record: DocumentRecord, asking: Asking
) -> Floats:
    """What a fit with a prior to fewer answers says of the held-out questions.

    The first of those are fitted here, as the ones in common are.
    """
    asked = _asked(record)
    held = len(asked.expected)
    sizes = np.asarray(asked.counts.sum(axis=1)).ravel()
    longest = sizes.max()
    may = (sizes <= max(asking.largest * longest, 2)) | (sizes == longest)
    drawn = held + np.nonzero(may[held:])[0]
    drawn = drawn[: asking.count(len(asked.numbers) - held)]
    rows = np.concatenate([np.arange(IN_COMMON), drawn])
    found = fit_with_prior(
        asked.counts[rows],
        asked.numbers[rows],
        prior.form,
        begun,
        prior.noise,
        guide=prior.guide(record.guide, len(record.keys)),
    )
    return found.slalom.predict(asked.counts[:held])


def _unexplained(expected: Floats, record: DocumentRecord) -> float:
    """Of the held-out answers' variance: 1 if a constant is as good, or if it is not a number."""
    held = slice(IN_COMMON, len(expected))
    r2 = r_squared(expected[held], _asked(record).numbers[held])
    return 1.0 - r2 if 0.0 < r2 <= 1.0 else 1.0


def _asked(record: DocumentRecord) -> Asked:
    assert record.asked is not None
    return record.asked


def turned_prior(
    prior: LearnedPrior, places: Ints, alone: Floats, sign: float
) -> tuple[Floats, Floats]:
    """Means and standard deviations for a document whose numbers are to be turned by a sign."""
    mean, deviation = prior.at(places, sign * alone)
    return mean * orientation(prior.layout(len(places)), sign), deviation
