"""SLALOM: a value, an importance and a contribution for every unit."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from piste.errors import PisteError
from piste.explanation import Fidelity
from piste.methods.base import (
    FEW,
    LEAST_FOR_R2,
    Method,
    Solution,
    Task,
    default_samples,
    fidelity_of,
    held_out_share,
    measure_fidelity,
    sizes_of,
)
from piste.methods.budget import FIRST_ROUND, Budget
from piste.methods.guide import guide_of
from piste.slalom import analytic, sampling
from piste.slalom.fitting import FORMS, Fit, fit
from piste.slalom.pairs import PairEffect, can_have_pairs, find_pairs, neighbours
from piste.slalom.scores import text_scores
from piste.slalom.surrogate import Slalom
from piste.subject import Sequence1D
from piste.surrogates import SlalomSurrogate
from piste.types import Counts, Flags, Floats, Ints
from piste.validation import check_count, choose

_ALONE = 0.4
"""The largest share of the questions that are about one unit alone."""
_MOST_NEAR = 4000
"""Pairs of neighbours that are looked at: a matrix of them is made."""
_FEW_QUESTIONS = 80
"""Below, only an eighth is held out, and each answer is judged by the fit without it, if there
are enough for every unit that such a fit says something."""
_PER_UNIT = 3
_GUIDED = 1.5
"""Questions for every distinct unit below which a gradient is looked at: with more it gains
nothing."""
_MOST_WITH_PAIRS = 60
"""Units up to which a fit may carry pairs: in longer texts it gained nothing on the panel."""
_WORTH_PAIRS = 0.75
"""Of the held-out variance that a fit without pairs leaves: what one with pairs may leave at most.
Pairs that gain less cost ranking, for half of what a pair says goes to each of its units."""


@dataclass
class _State:
    """What is planned and found for one input."""

    seen: sampling.SeenKeys
    sampler: str
    budget: Budget | None = None
    players: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    apart: bool = False
    """Whether units alone are asked for their values only, and no part of the fit."""
    pairs: list[list[int]] | None = None
    found: _Found | None = None
    """What the last fit found."""


@dataclass(frozen=True)
class _Found:
    """A fit to all answers so far, how good it is, and the pairs of units that stand out."""

    questions: int
    fit: Fit
    fidelity: Fidelity
    pairs: tuple[PairEffect, ...] = ()
    carried: bool = False
    """Whether the fit has the pairs: only where questions it has not seen gain enough by them."""


@dataclass(frozen=True)
class SlalomMethod(Method):
    """Ask about sequences of the units, fit the surrogate, derive all scores.

    ``form`` "auto" chooses among additive, mixed and softmax forms, with and without saturation;
    "paper" is SLALOM as published, fitted to short questions. ``samples`` counts the questions,
    held-out ones included (fidelity is that of a fit without them, the scores are of a last fit to
    all); None means five for every distinct unit, from 300 to 2,000; "auto" asks in growing rounds
    until scores and fidelity settle, at most ``max_samples``. ``seconds`` asks in rounds too, until
    another one would take longer than that or ``samples`` are asked; what is asked then depends on
    the machine. ``share`` gives one pair of scores to every type of unit (the paper's choice) or to
    every occurrence.

    ``sampler`` None is every unit alone and sizes spread evenly on a log scale; "short" for the
    paper's form. In an image a part alone is too far from the whole to say what it does there:
    parts alone are asked for their values only, the fit is to larger sets ("mix"), and there are
    ten questions for every part. ``pairs`` looks for neighbouring units of a text that say
    something together; ``guide`` asks one question less and looks at one gradient instead, where
    there are fewer questions than one and a half for every distinct unit of a text, and the model
    can be looked into; ``shapley=False`` leaves out Shapley values, which take longer than all
    other scores together. ``solver`` "sgd" and "analytic" are the paper's own fits.
    """

    samples: int | Literal["auto"] | None = None
    form: str = "auto"
    sampler: str | None = None
    solver: str = "newton"
    share: str = "type"
    max_samples: int = 4000
    seconds: float | None = None
    pairs: bool = True
    guide: bool = True
    shapley: bool = True
    epochs: int = 60

    name: ClassVar[str] = "slalom"
    compared: ClassVar[bool] = True
    evaluated: ClassVar[bool] = True
    about: ClassVar[str] = "value, importance and contribution of every unit, by one surrogate"
    paper: ClassVar[str] = "Leemann et al., TMLR 2025"

    def __post_init__(self) -> None:
        choose("form", self.form, ("auto", *FORMS))
        if self.sampler is not None:
            choose("sampler", self.sampler, sampling.SAMPLERS)
        choose("solver", self.solver, ("newton", "sgd", "analytic"))
        choose("share", self.share, ("type", "occurrence"))
        check_count("max_samples", self.max_samples)
        check_count("epochs", self.epochs)
        if self.samples not in ("auto", None):
            check_count("samples", self.samples)
        if self.solver != "newton" and self.form not in ("auto", "paper"):
            raise PisteError(
                f"solver={self.solver!r} fits the paper's form only, but form={self.form!r} was "
                "given: leave form out, or use solver='newton'."
            )
        if self.seconds is not None:
            if not isinstance(self.seconds, (int, float)) or not 0 < self.seconds < np.inf:
                raise PisteError(f"seconds: expected a number above 0, got {self.seconds!r}.")
            if self.solver == "analytic":
                raise PisteError("seconds needs solver='newton': 'analytic' asks what it must.")

    @property
    def _published(self) -> bool:
        """Whether it is the paper's form."""
        return self.form == "paper" or self.solver != "newton"

    @property
    def finds_pairs(self) -> bool:
        return self.pairs and not self._published

    @property
    def short_only(self) -> bool:
        chosen = self.sampler or ("short" if self._published else "log")
        return chosen == "short" or self.solver == "analytic"

    # -- planning ------------------------------------------------------------------------------

    def trace(self, task: Task) -> None:
        if self.is_guided(task):
            task.guide = guide_of(task, self._types(task))

    def is_guided(self, task: Task) -> bool:
        """Whether there are so few questions that a gradient says more than it costs."""
        if not self.guide or self._published or task.subject.is_image:
            return False
        return self._first_total(task) < _GUIDED * len(np.unique(self._types(task)))

    @property
    def _most(self) -> int | None:
        """Questions of all rounds together; None where there is one round."""
        if self.samples != "auto" and self.seconds is None:
            return None
        return self.samples if isinstance(self.samples, int) else self.max_samples

    def _first_total(self, task: Task) -> int:
        """Questions of the first round."""
        if self._most is not None:
            return min(FIRST_ROUND if self.seconds is None else FIRST_ROUND // 2, self._most)
        distinct = len(np.unique(self._types(task)))
        usual = default_samples(2 * distinct if self._apart(task) else distinct)
        return int(self.samples) if isinstance(self.samples, int) else usual

    def _apart(self, task: Task) -> bool:
        own = self.sampler is None and not self.short_only
        return own and task.subject.is_image and len(task.subject) > FEW

    def plan(self, task: Task) -> list[Sequence1D]:
        if task.state is None:
            return self._first_round(task)
        state = task.state_as(_State)
        if self.solver == "analytic":
            return self._pairs(task, state)
        return self._another_round(task, state) if state.budget is not None else []

    def _first_round(self, task: Task) -> list[Sequence1D]:
        n, types = len(task.subject), task.subject.types
        seen: sampling.SeenKeys = {sampling.key_of(types)}
        apart = self._apart(task)
        total = max(self._first_total(task) - task.passes, 1)
        budget = None if self._most is None else Budget(self._most, self.seconds)
        # Rounds to come are judged by the same held-out questions.
        share = total if budget is None else 2 * FIRST_ROUND
        sampler = "short" if self.short_only else "mix" if apart else "log"
        state = _State(seen, self.sampler or sampler, budget, apart=apart)
        task.state = state
        kept = held_out_share(share, total, n)
        if self.solver == "newton" and _PER_UNIT * n <= total < _FEW_QUESTIONS:
            kept = min(kept, total // 8)
        if task.guide is not None and kept < LEAST_FOR_R2 <= total:
            kept = 0  # so few prove nothing: each answer is judged by the fit without it
        held_out = self._held_out(task, kept, seen)
        task.held_out = len(held_out)
        if self.solver == "analytic":
            state.players = np.unique(self._types(task), return_index=True)[1]
            return [*held_out, *([int(unit)] for unit in state.players)]
        # The whole input was asked for its output, so it counts; short questions only do not fit
        # it, for they must work where it can't be read at once.
        fixed: list[Sequence1D] = [] if self.short_only else [task.subject.whole]
        if task.subject.can_be_empty and not self._published:
            fixed.append([])
        count = max(total - len(held_out) - len(fixed) - int(self.short_only), 1)
        if state.sampler == "log" or apart:
            most = max(int(_ALONE * total), 1)
            fixed += _fresh(sampling.alone(self._types(task), most, task.rng), types, seen)[:count]
            count = max(total - len(held_out) - len(fixed), 0)
        drawn = sampling.draw(state.sampler, n, count, task.rng, seen, types)
        if not drawn and not fixed:  # a single unit is short enough
            fixed.append(task.subject.whole)
        return [*held_out, *fixed, *drawn]

    def _held_out(self, task: Task, count: int, seen: sampling.SeenKeys) -> list[Sequence1D]:
        """Questions of all sizes, "mix".

        Short questions where only those are asked: long ones would cost several times what all
        the short ones do, and could not be asked of a text that is longer than the model reads.
        """
        n, types = len(task.subject), task.subject.types
        if self.solver == "analytic":  # asks for singles and pairs, so those prove nothing
            drawn = sampling.draw("short", n, 4 * count, task.rng, seen, types)
            return list([one for one in drawn if len(one) > 2][:count])
        if self.short_only:
            return list(sampling.draw("short", n, count, task.rng, seen, types))
        return list(sampling.draw("mix", n, count, task.rng, seen, types))

    def _pairs(self, task: Task, state: _State) -> list[Sequence1D]:
        if len(state.players) < 2 or state.pairs is not None:
            return []
        values = task.numbers()[_held(task) :]
        state.pairs = analytic.pair_questions(values)
        players = state.players
        return [sorted((int(players[a]), int(players[b]))) for a, b in state.pairs]

    def _another_round(self, task: Task, state: _State) -> list[Sequence1D]:
        budget, asked = state.budget, len(task.sequences)
        assert budget is not None
        begun = time.perf_counter()
        found = self._fit(task, state)
        budget.fitting = time.perf_counter() - begun
        ranked = _ranked(found.fit.slalom, self._types(task), task)
        if budget.look(ranked, found.fidelity.r2, asked):
            return []
        n, types, count = len(task.subject), task.subject.types, budget.next_round(asked)
        more = sampling.draw(state.sampler, n, count, task.rng, state.seen, types)
        if not more:
            budget.stopped = "every question there is was asked"
        return list(more)

    # -- solving -------------------------------------------------------------------------------

    def _types(self, task: Task) -> Ints:
        return task.subject.types if self.share == "type" else np.arange(len(task.subject))

    def _fit(self, task: Task, state: _State) -> _Found:
        if state.found is not None and state.found.questions == len(task.sequences):
            return state.found
        held = _held(task)
        counts, numbers = task.counts(self._types(task)), task.numbers()
        fitted = np.arange(len(numbers)) >= held
        if state.apart:
            fitted &= sizes_of(counts) != 1
        plain = self.fitted(counts[fitted], numbers[fitted], task.guide)
        fidelity = fidelity_of(plain, counts, numbers, held, fitted)
        state.found = _Found(len(numbers), plain, fidelity)
        if self.pairs and not self._published and not task.subject.is_image:
            state.found = self._with_pairs(task, state.found, counts, numbers, fitted)
        return state.found

    def found(self, task: Task) -> Fit:
        """The fit that fidelity was measured of: to all answers but the held-out ones."""
        return self._fit(task, task.state_as(_State)).fit

    def _to_all(self, task: Task, state: _State) -> _Found:
        """What was found, fitted once more: now that fidelity is known, held-out answers count."""
        known = self._fit(task, state)
        if not _held(task) or known.fit.posterior is None:
            return known
        counts, numbers = task.counts(self._types(task)), task.numbers()
        used = sizes_of(counts) != 1 if state.apart else np.ones(len(numbers), dtype=np.bool_)
        both = _both(task, known.pairs)[used] if known.carried else None
        guide = task.guide
        last = fit(counts[used], numbers[used], start=known.fit, together=both, guide=guide)
        pairs = _as_fitted(known.pairs, last) if known.carried else known.pairs
        return replace(known, fit=last, pairs=pairs)

    def fitted(self, counts: Any, numbers: Floats, guide: Floats | None = None) -> Fit:
        """The surrogate without pairs."""
        if self.solver == "sgd":
            return fit(counts, numbers, solver="sgd", epochs=self.epochs)
        form: Any = "paper" if self._published else self.form  # one of the names, as was checked
        return fit(counts, numbers, form=form, guide=guide)

    def _with_pairs(
        self, task: Task, found: _Found, counts: Counts, numbers: Floats, fitted: Flags
    ) -> _Found:
        """The fit with pairs of neighbours that stand out, if it predicts better with them."""
        units = task.subject.units
        pairs = pairs_beside(found.fit, task, counts, numbers, fitted)
        if not pairs or len(units) > _MOST_WITH_PAIRS:
            return replace(found, pairs=pairs)
        both = _both(task, pairs)
        form: Any = self.form  # one of the names, as was checked
        richer = fit(
            counts[fitted], numbers[fitted], form=form, together=both[fitted], guide=task.guide
        )
        fidelity = fidelity_of(richer, counts, numbers, _held(task), fitted, both)
        if not 1.0 - fidelity.r2 < _WORTH_PAIRS * (1.0 - found.fidelity.r2):
            return replace(found, pairs=pairs)
        return _Found(found.questions, richer, fidelity, _as_fitted(pairs, richer), carried=True)

    def solve(self, task: Task) -> Solution:
        state = task.state_as(_State)
        settings: dict[str, Any] = {
            "sampler": state.sampler,
            "solver": self.solver,
            "share": self.share,
            "samples": self.samples,
            "held_out": _held(task),
        }
        types, found, known = self._types(task), None, None
        if self.solver == "analytic":
            slalom, fidelity, more = self._solve_analytic(task, state)
            settings |= {"form": "paper"} | more
        else:
            known = self._to_all(task, state)
            found, fidelity = known.fit, known.fidelity
            slalom = found.slalom
            settings |= {
                "form": "paper" if self._published else found.form.name,
                "compared": {name: round(value, 1) for name, value in found.compared},
                "iterations": found.iterations,
                "converged": found.converged,
                "fit_mse": found.loss,
                "never_asked": int((task.counts(types).sum(axis=0) == 0).sum()),
                "guided": task.guide is not None,
            }
            if slalom.link is not None:
                settings["saturation"] = [slalom.link.lowest, slalom.link.highest]
            if state.budget is not None:
                settings["stopped"] = state.budget.stopped
        pairs = () if known is None else known.pairs
        carried = pairs if known is not None and known.carried else ()
        scores, errors = text_scores(
            slalom,
            types,
            found,
            linear=self._published,
            pairs=np.array([(one.first, one.second) for one in carried]) if carried else None,
            with_shapley=self.shapley,
        )
        if state.apart:
            _set_asked_values(task, _held(task), types, scores["value"], errors["value"])
        error = 0.0 if found is None else found.mixing_error
        return Solution(
            scores=scores,
            errors=errors,
            surrogate=SlalomSurrogate.of(
                slalom, types, error, tuple((one.first, one.second, one.effect) for one in carried)
            ),
            fidelity=fidelity,
            settings=settings,
            ranking="linear" if self._published else "contribution",
            pairs=pairs,
        )

    def _solve_analytic(self, task: Task, state: _State) -> tuple[Slalom, Fidelity, dict[str, Any]]:
        numbers, types = task.numbers(), self._types(task)
        held, players = _held(task), state.players
        values = numbers[held : held + len(players)]
        more: dict[str, Any] = {}
        if len(players) < 2:
            slalom = Slalom(values, np.zeros(1))
        else:
            assert state.pairs is not None
            found = analytic.solve_analytic(values, state.pairs, numbers[held + len(players) :])
            slalom, units = found.slalom, task.subject.units
            more = {
                "failed": [units[players[k]].text for k in found.failed],
                "undetermined": [units[players[k]].text for k in found.undetermined],
            }
        if slalom.evidence.ndim == 2:
            slalom = replace(slalom, base=np.zeros(slalom.evidence.shape[1]))
        expected = slalom.predict(task.counts(types)[:held])
        return slalom, measure_fidelity(expected, numbers[:held]), more


def _both(task: Task, pairs: tuple[PairEffect, ...]) -> Floats:
    """1 where a question holds both units of a pair, questions × pairs."""
    present: Flags = task.counts(np.arange(len(task.subject))).toarray() > 0
    places = np.array([(pair.first, pair.second) for pair in pairs])
    return _together(present, places).astype(np.float64)


def _as_fitted(pairs: tuple[PairEffect, ...], found: Fit) -> tuple[PairEffect, ...]:
    """Pairs with the effects and errors of a fit that has them."""
    return tuple(
        replace(pair, effect=float(effect), error=float(error))
        for pair, effect, error in zip(pairs, found.pairs, found.pair_errors, strict=True)
    )


def _held(task: Task) -> int:
    return task.held_out or 0


def _fresh(questions: list[Ints], types: Ints, seen: sampling.SeenKeys) -> list[Sequence1D]:
    """Those that were not drawn before; from now on they were."""
    new: list[Sequence1D] = []
    for question in questions:
        key = sampling.key_of(types[question])
        if key not in seen:
            seen.add(key)
            new.append(question)
    return new


def pairs_beside(
    found: Fit, task: Task, counts: Counts, numbers: Floats, fitted: Flags
) -> tuple[PairEffect, ...]:
    """Pairs of neighbours that stand out from what a fit without pairs expects."""
    units = task.subject.units
    able = np.array([any(map(str.isalnum, unit.text)) for unit in units])
    near = neighbours(able, np.array([unit.segment for unit in units]))
    kinds = task.subject.types[near]
    near = near[kinds[:, 0] != kinds[:, 1]]  # copies of one word are a matter of the mixing
    if not 0 < len(near) <= _MOST_NEAR or not can_have_pairs(found, numbers):
        return ()
    present: Flags = task.counts(np.arange(len(units))).toarray() > 0
    together = _together(present, near)
    return find_pairs(found, counts[fitted], numbers[fitted], together[fitted], near)


def _set_asked_values(task: Task, held: int, types: Ints, value: Floats, error: Floats) -> None:
    """A unit that was asked about alone has the value that was answered, without an error."""
    numbers = task.numbers()
    for row in range(held, len(numbers)):
        if len(task.sequences[row]) == 1:
            same = types == types[task.sequences[row][0]]
            value[same], error[same] = numbers[row], 0.0


def _together(present: Flags, pairs: Ints) -> Flags:
    """Which questions hold both units of each pair."""
    return present[:, pairs[:, 0]] & present[:, pairs[:, 1]]


def _ranked(slalom: Slalom, types: Ints, task: Task) -> Floats:
    """Contributions up to a factor, of the predicted class if there are several."""
    evidence = slalom.evidence
    if evidence.ndim == 2:
        evidence = evidence[:, int(np.argmax(task.whole))]
    return np.asarray((evidence * np.exp(slalom.mixing * slalom.importances))[types])
