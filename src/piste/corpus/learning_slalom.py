"""SLALOM in a corpus: documents tell what words do, and later ones are asked less."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from piste.methods.base import (
    Solution,
    Task,
    default_samples,
    fidelity_of,
    held_out_share,
    r2_of,
)
from piste.methods.slalom import SlalomMethod, pairs_beside
from piste.slalom import sampling
from piste.slalom.family import Questions
from piste.slalom.fitting import Fit, fit_with_prior
from piste.slalom.learned_prior import Told, told
from piste.slalom.scores import text_scores
from piste.subject import Sequence1D
from piste.surrogates import SlalomSurrogate
from piste.types import Counts, Floats, Ints
from piste.vocabulary.corpus_prior import (
    IN_COMMON,
    Asked,
    CorpusPrior,
    DocumentRecord,
    Key,
    TargetPrior,
    turned_prior,
    turned_target,
)

_FEW_UNITS = 12
"""A shorter text has few subsets: it is asked in full."""
_LEAST_TOLD = 8
"""Questions of a document from which something is learned."""


@dataclass
class _PriorState:
    """A document that is asked with a prior."""

    known: TargetPrior
    first: Ints
    """A unit of every type."""
    keys: tuple[Key, ...]
    places: Ints
    """Of every type, its place among the words of the corpus, −1 for new ones."""
    fitted: int
    """Questions that are fitted; those about new words alone come after them."""


@dataclass(frozen=True)
class LearningSlalom(SlalomMethod):
    """SLALOM with what a corpus told so far.

    With a ``prior`` for what is explained, a document is asked fewer and shorter questions, and
    words alone only if they are new. Their answers are their values; the fit is to longer
    questions, and begins at what words usually do. ``records``, if it is given, gets what every
    input told.
    """

    prior: CorpusPrior | None = None
    records: dict[Any, DocumentRecord] | None = field(default=None, compare=False)

    def is_guided(self, task: Task) -> bool:
        known = self._known(task)
        return self.guide and (known is None or known.prior.guided)

    def _known(self, task: Task) -> TargetPrior | None:
        """The prior for an input; None if it is asked in full."""
        if self.prior is None or len(task.subject) < _FEW_UNITS:
            return None
        return self.prior.targets.get(turned_target(task.target)[0])

    def _first_round(self, task: Task) -> list[Sequence1D]:
        known = self._known(task)
        if known is None or self.prior is None:
            return super()._first_round(task)
        n, types = len(task.subject), task.subject.types
        first = np.unique(types, return_index=True)[1]
        keys = _keys(task, first)
        places = self.prior.places(keys)
        seen: sampling.SeenKeys = {sampling.key_of(types)}
        usual = default_samples(len(first))
        judged = self._held_out(task, IN_COMMON, seen)
        task.held_out = len(judged)
        fixed: list[Sequence1D] = [task.subject.whole]
        if task.subject.can_be_empty:
            fixed.append([])
        longer = usual - held_out_share(usual, usual, n) - len(fixed) - len(first)
        asking = known.asking
        count = asking.count(max(longer, 1))
        drawn = sampling.draw("log", n, count, task.rng, seen, types, asking.largest)
        new: list[Sequence1D] = [[int(unit)] for unit in first[places < 0]]
        longer_ones = [*judged, *fixed, *drawn]
        task.state = _PriorState(known, first, keys, places, len(longer_ones))
        return [*longer_ones, *new]

    def plan(self, task: Task) -> list[Sequence1D]:
        return [] if isinstance(task.state, _PriorState) else super().plan(task)

    def solve(self, task: Task) -> Solution:
        if isinstance(task.state, _PriorState):
            return self._solve_with_prior(task, task.state)
        solution = super().solve(task)
        if self.records is not None and isinstance(task.subject.input, (str, tuple)):
            record = self._record(task)
            if record is not None:
                self.records[task.subject.input] = record
        return solution

    def _solve_with_prior(self, task: Task, state: _PriorState) -> Solution:
        assert self.prior is not None
        types, numbers = task.subject.types, task.numbers()
        counts = task.counts(types)
        logits = _alone(self.prior, state, task.logits[state.fitted :])
        alone, (name, sign) = task.target(logits), turned_target(task.target)
        known, rows = state.known, slice(0, state.fitted)
        begun = turned_prior(known.prior, state.places, alone, sign)
        found = fit_with_prior(
            counts[rows],
            numbers[rows],
            known.prior.form,
            begun,
            known.prior.noise,
            guide=known.prior.guide(task.guide, len(state.places)),
        )
        fitted = np.arange(len(numbers)) < state.fitted
        fidelity = fidelity_of(found, counts, numbers, task.held_out or 0, fitted)
        slalom = found.slalom
        scores, errors = text_scores(slalom, types, found)
        scores["value"], errors["value"] = alone[types], np.zeros(len(types))
        guided = known.prior.guided and task.guide is not None
        tells = guided == known.prior.guided  # or it would say what words do without a guide
        if tells and self.records is not None and isinstance(task.subject.input, (str, tuple)):
            said = _said(found, counts[rows], numbers[rows], begun[0])
            if said is not None:
                guide = None if task.guide is None else sign * task.guide
                self.records[task.subject.input] = DocumentRecord(
                    state.keys, logits, sign * alone, name, said.turned(sign), guide=guide
                )
        settings: dict[str, Any] = {
            "sampler": "log",
            "solver": self.solver,
            "share": self.share,
            "samples": self.samples,
            "held_out": task.held_out,
            "form": known.prior.form.name,
            "iterations": found.iterations,
            "converged": found.converged,
            "fit_mse": found.loss,
            "guided": guided,
            "prior": {
                "documents": known.documents,
                "share": known.asking.share,
                "largest": known.asking.largest,
                "new_words": int((state.places < 0).sum()),
            },
        }
        if slalom.link is not None:
            settings["saturation"] = [slalom.link.lowest, slalom.link.highest]
        return Solution(
            scores=scores,
            errors=errors,
            surrogate=SlalomSurrogate.of(slalom, types, found.mixing_error),
            fidelity=replace(fidelity, single=r2_of(slalom.values, alone)),
            settings=settings,
            ranking="contribution",
            pairs=pairs_beside(found, task, counts, numbers, fitted) if self.pairs else (),
        )

    def _record(self, task: Task) -> DocumentRecord | None:
        """What a document that was asked in full told; None if that is too little."""
        found, types = self.found(task), task.subject.types
        held, numbers = task.held_out or 0, task.numbers()
        counts = task.counts(types)
        sizes = np.asarray(counts.sum(axis=1)).ravel()
        single = np.nonzero(sizes == 1)[0]  # some may be among those that are held out
        longer = np.nonzero((np.arange(len(numbers)) >= held) & (sizes != 1))[0]
        asked_alone = counts[single].indices
        every = len(np.unique(asked_alone)) == counts.shape[1]
        if numbers.ndim != 1 or not every or len(longer) < _LEAST_TOLD or len(found.pairs):
            return None
        said = _said(found, counts[longer], numbers[longer])
        if said is None or not found.active.all():
            return None
        name, sign = turned_target(task.target)
        logits = np.empty((counts.shape[1], task.logits.shape[1]))
        logits[asked_alone] = task.logits[single]
        kept = np.concatenate([np.arange(held), longer])
        return DocumentRecord(
            _keys(task, np.unique(types, return_index=True)[1]),
            logits,
            sign * task.target(logits),
            name,
            said.turned(sign),
            Asked(counts[kept], sign * numbers[kept], sign * found.predict(counts[:held])),
            None if task.guide is None else sign * task.guide,
        )


def _keys(task: Task, first: Ints) -> tuple[Key, ...]:
    """Each type alone, as the model is asked about it."""
    encoded = task.subject.encode_all([[int(unit)] for unit in first])
    return tuple(parts[0][0].key for parts in encoded)


def _alone(prior: CorpusPrior, state: _PriorState, new: Floats) -> Floats:
    """The answers to all types alone, types × outputs: known ones, and those just asked."""
    logits = np.empty((len(state.places), prior.logits.shape[1]))
    known = state.places >= 0
    logits[known] = prior.logits[state.places[known]]
    logits[~known] = new
    return logits


def _said(found: Fit, counts: Counts, numbers: Floats, mean: Floats | None = None) -> Told | None:
    if found.posterior is None:
        return None
    return told(Questions(counts), numbers, found.posterior, mean)
