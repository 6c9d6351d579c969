"""SLALOM: a value and an importance for every unit (Leemann et al., TMLR 2025)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from piste.errors import PisteError
from piste.explanation import Fidelity
from piste.methods.base import (
    Floats,
    Method,
    Solution,
    Task,
    WithSlopes,
    check_count,
    choose,
    default_samples,
    held_out_share,
    measure_fidelity,
)
from piste.methods.budget import FIRST_ROUND, Budget
from piste.slalom import analytic, sampling
from piste.slalom.fitting import Ridge, fit
from piste.slalom.results import Fit
from piste.slalom.saturating import MOST_JOINT
from piste.slalom.scores import text_scores
from piste.slalom.surrogate import Slalom
from piste.subject import Sequence1D
from piste.surrogates import SlalomSurrogate

# With slopes, this share of the questions follows from what the others taught, in so many rounds.
_ON_THE_WAY, _ROUNDS = 0.3, 2
_FEW_UNITS = 6
_LEAST_SHARE = 200  # a tenth of it is held out: fewer would be no verdict
_ROUGHLY = 25  # iterations that are enough to see which units are strong


@dataclass(frozen=True)
class SlalomMethod(Method):
    """Ask about sequences of the units, fit the surrogate of eq. 4, derive all scores.

    ``samples`` counts the questions, held-out ones included; None means four for every distinct
    unit, from 300 to 2,000; "auto" asks in growing rounds until scores or errors settle, at most
    ``max_samples``. ``seconds`` asks in rounds too, until another one would take longer than that
    or ``samples`` are asked; what is asked then depends on the machine. ``share`` gives one pair of
    scores to every type of unit (the paper's choice) or to every occurrence.

    ``sampler`` None is "mix", and "subsets" with slopes.

    ``slopes`` asks a white box also how its answers move when attention is turned away from each
    unit: one equation more for every unit present, so a quarter of the questions does (one for
    every distinct unit, from 100 to 300). The last third of them is about what is left when the
    strongest units found so far are gone. ``link`` fits a saturation on top of the surrogate.
    "auto" uses both where they can be had and, the link, where it bends anything; slopes only of
    texts, because patches of a picture stand in for each other. Without both it is the paper's
    SLALOM.
    """

    samples: int | Literal["auto"] | None = None
    sampler: str | None = None
    solver: str = "newton"
    share: str = "type"
    ridge: Ridge = "auto"
    background: bool | Literal["auto"] = "auto"
    slopes: bool | Literal["auto"] = "auto"
    link: bool | Literal["auto"] = "auto"
    max_samples: int = 4000
    seconds: float | None = None
    epochs: int = 60

    name: ClassVar[str] = "slalom"
    about: ClassVar[str] = "value and importance of every unit, by a softmax-linked surrogate"
    paper: ClassVar[str] = "Leemann et al., TMLR 2025"

    def __post_init__(self) -> None:
        if self.sampler is not None:
            choose("sampler", self.sampler, sampling.SAMPLERS)
        choose("solver", self.solver, ("newton", "sgd", "analytic"))
        choose("share", self.share, ("type", "occurrence"))
        check_count("max_samples", self.max_samples)
        check_count("epochs", self.epochs)
        if self.samples not in ("auto", None):
            check_count("samples", self.samples)
        if self.seconds is not None:
            if not isinstance(self.seconds, (int, float)) or not 0 < self.seconds < np.inf:
                raise PisteError(f"seconds={self.seconds!r} is wrong: a number above 0 is wanted.")
            if self.solver == "analytic":
                raise PisteError("seconds needs solver='newton': 'analytic' asks what it must.")
        for name in ("slopes", "link"):
            if getattr(self, name) not in (True, False, "auto"):
                raise PisteError(
                    f"{name}={getattr(self, name)!r} is wrong: True, False or 'auto' is wanted."
                )
            if getattr(self, name) is True and self.solver != "newton":
                raise PisteError(f"{name}=True needs solver='newton', not {self.solver!r}.")

    @property
    def short_only(self) -> bool:
        return self.sampler == "short" or self.solver == "analytic"

    @property
    def _held_out_sampler(self) -> str:
        return "short" if self.short_only else "subsets"

    # -- planning ------------------------------------------------------------------------------

    def plan(self, task: Task) -> list[Sequence1D]:
        memory = task.memory
        if "seen" not in memory:
            memory["no_slopes"] = self._why_no_slopes(task)
            memory["sampler"] = self.sampler or ("mix" if memory["no_slopes"] else "subsets")
            return self._first_round(task)
        if memory.get("steep"):
            return WithSlopes(memory.pop("steep"))
        if memory.get("on_the_way"):
            return self._on_the_way(task, memory["on_the_way"].pop())
        if self.solver == "analytic":
            return self._pairs(task)
        return self._another_round(task) if self._in_rounds else []

    @property
    def _in_rounds(self) -> bool:
        return self.samples == "auto" or self.seconds is not None

    @property
    def _most(self) -> int:
        """The most questions, where they are asked in rounds."""
        return self.samples if isinstance(self.samples, int) else self.max_samples

    def _first_round(self, task: Task) -> list[Sequence1D]:
        n, memory = len(task.subject), task.memory
        seen: sampling.Seen = {sampling.key_of(task.subject.types)}
        memory["seen"] = seen
        if self._in_rounds:
            memory["budget"] = Budget(self._most, self.seconds)
            first = FIRST_ROUND if memory["no_slopes"] else FIRST_ROUND // 2
            total = min(first if self.seconds is None else first // 2, self._most)
            share = 2 * FIRST_ROUND  # rounds to come are judged by the same held-out questions
        else:
            distinct = len(np.unique(self._types(task)))
            usual = default_samples if memory["no_slopes"] else _slope_samples
            total = share = usual(distinct) if self.samples is None else int(self.samples)
            share = share if memory["no_slopes"] else max(share, _LEAST_SHARE)
        held_out = self._held_out(task, held_out_share(share, total, n), seen)
        memory["held_out"] = len(held_out)
        if self.solver == "analytic":
            memory["players"] = _first_of_each(self._types(task))
            return [*held_out, *([int(unit)] for unit in memory["players"])]
        # The whole input was asked for its output, so it counts; short questions only do not fit
        # it, for they must work where it can't be read at once.
        fixed: list[Sequence1D] = [] if self.short_only else [task.subject.whole]
        if task.subject.can_be_empty and self.background:
            fixed.append([])
        count = max(total - len(held_out) - len(fixed) - int(self.short_only), 1)
        if not memory["no_slopes"] and not self.short_only:
            each = int(_ON_THE_WAY * count) // _ROUNDS
            memory["on_the_way"] = [each] * _ROUNDS if each else []
            count -= _ROUNDS * each
        drawn = sampling.draw(memory["sampler"], n, count, task.rng, seen, task.subject.types)
        if self.short_only and not drawn:  # a single unit is short enough
            fixed.append(task.subject.whole)
        return self._steeply(task, [*held_out, *fixed], drawn)

    def _steeply(
        self, task: Task, plain: list[Sequence1D], drawn: Sequence[Sequence1D]
    ) -> list[Sequence1D]:
        """Everything at once, or what is to be asked with slopes in a round of its own."""
        if task.memory["no_slopes"]:
            return [*plain, *drawn]
        if plain:
            task.memory["steep"] = list(drawn)
            return plain
        return WithSlopes(drawn)

    def _on_the_way(self, task: Task, count: int) -> list[Sequence1D]:
        """Questions about what is left when the strongest units go, by what is known so far."""
        found, _ = self._fit(task, max_iterations=_ROUGHLY)
        linear = _ranking_score(found.slalom, self._types(task), task)
        drawn = sampling.draw_on_the_way(
            linear, count, task.rng, task.memory["seen"], task.subject.types
        )
        return WithSlopes(drawn) if drawn else self.plan(task)

    def _why_no_slopes(self, task: Task) -> str | None:
        """Why answers come without slopes; None if they come with them."""
        reason: str | None = None
        if not self.slopes or self.solver != "newton":
            return "not asked for"
        if task.target.kind == "all":
            reason = "every class is explained, and slopes are of one number"
        elif task.target.kind == "function" and self.slopes == "auto":
            reason = "the target is a function, which need not be differentiable"
        elif task.subject.slopes_mislead and self.slopes == "auto":
            reason = task.subject.slopes_mislead
        elif len(task.subject) <= _FEW_UNITS:
            reason = "every removal of so few units can be asked"
        elif len(np.unique(self._types(task))) > MOST_JOINT:
            reason = f"there are more than {MOST_JOINT} different units"
        else:
            reason = task.subject.classifier.why_no_slopes(task.subject)
            reason = reason and f"{task.subject.classifier.name}: {reason}"
        if reason and self.slopes is True:
            raise PisteError(f"slopes=True is not possible here ({reason}): use slopes='auto'.")
        return reason

    def _held_out(self, task: Task, count: int, seen: sampling.Seen) -> list[Sequence1D]:
        """Removals of every size; short questions where only those are asked.

        Long ones would cost several times what all the short ones do, and could not be asked at
        all of a text that is longer than the model reads.
        """
        analytic = self.solver == "analytic"  # asks for singles and pairs, so those prove nothing
        drawn = sampling.draw(
            self._held_out_sampler,
            len(task.subject),
            count * (4 if analytic else 1),
            task.rng,
            seen,
            task.subject.types,
        )
        fresh: list[Sequence1D] = [one for one in drawn if len(one) > 2 or not analytic]
        return fresh[:count]

    def _pairs(self, task: Task) -> list[Sequence1D]:
        players, memory = task.memory["players"], task.memory
        if len(players) < 2 or "pairs" in memory:
            return []
        values = task.numbers()[memory["held_out"] :]
        memory["pairs"] = analytic.pair_questions(values)
        return [sorted((int(players[a]), int(players[b]))) for a, b in memory["pairs"]]

    def _another_round(self, task: Task) -> list[Sequence1D]:
        memory, asked = task.memory, len(task.sequences)
        budget: Budget = memory["budget"]
        begun = time.perf_counter()
        found, fidelity = self._fit(task)
        budget.fitting = time.perf_counter() - begun
        linear = _ranking_score(found.slalom, self._types(task), task)
        if budget.look(found, linear, fidelity.r2, asked):
            return []
        n, types, count = len(task.subject), task.subject.types, budget.next_round(asked)
        more = sampling.draw(memory["sampler"], n, count, task.rng, memory["seen"], types)
        if not more:
            budget.stopped = "every question there is was asked"
        return self._steeply(task, [], more) if more else []

    # -- solving -------------------------------------------------------------------------------

    def _types(self, task: Task) -> NDArray[np.int64]:
        return task.subject.types if self.share == "type" else np.arange(len(task.subject))

    def _fit(self, task: Task, **limits: int) -> tuple[Fit, Fidelity]:
        memory = task.memory
        if memory.get("fitted") == len(task.sequences):
            found: tuple[Fit, Fidelity] = memory["fit"]
            return found
        types, held = self._types(task), memory["held_out"]
        counts = task.counts(types)
        numbers = task.numbers()
        options: dict[str, Any] = {"epochs": self.epochs}
        if self.solver == "newton":
            options = {"ridge": self.ridge, "start": memory["fit"][0] if "fit" in memory else None}
            options["link"] = False if numbers.ndim > 1 else self.link
            options |= limits
        if task.slopes is not None:
            options["slopes"] = _by_type(task.slopes[held:], types)
        result = fit(
            counts[held:],
            numbers[held:],
            solver=self.solver,  # type: ignore[arg-type]  # analytic never comes here
            background=self.background,
            **options,
        )
        fidelity = measure_fidelity(result.predict(counts[:held]), numbers[:held])
        memory["fitted"], memory["fit"] = len(task.sequences), (result, fidelity)
        return result, fidelity

    def solve(self, task: Task) -> Solution:
        memory = task.memory
        settings: dict[str, Any] = {
            "sampler": memory["sampler"],
            "solver": self.solver,
            "share": self.share,
            "samples": self.samples,
            "background": self.background,
            "held_out": task.memory["held_out"],
            "held_out_sampler": self._held_out_sampler,
        }
        found: Fit | None = None
        if self.solver == "analytic":
            slalom, fidelity, more = self._solve_analytic(task)
        else:
            found, fidelity = self._fit(task)
            slalom = found.slalom
            more = {
                "ridge": found.ridge,
                "iterations": found.iterations,
                "converged": found.converged,
                "fit_mse": found.loss,
                "never_asked": int((~found.active).sum()),
                "slopes": memory["no_slopes"] or _count(task.slopes),
            }
            if slalom.link is not None:
                more["saturation"] = [slalom.link.lowest, slalom.link.highest]
            if found.slope_weight:
                more["slope_weight"] = found.slope_weight
            if self._in_rounds:
                more["stopped"] = memory["budget"].stopped
        scores, deviations = text_scores(slalom, self._types(task), found)
        base = slalom.base
        return Solution(
            scores=scores,
            errors=deviations,
            surrogate=SlalomSurrogate(
                float(slalom.weight),
                tuple(map(float, base)) if isinstance(base, np.ndarray) else float(base),
                slalom.link,
            ),
            fidelity=fidelity,
            settings=settings | more,
            ranking="linear",
        )

    def _solve_analytic(self, task: Task) -> tuple[Slalom, Fidelity, dict[str, Any]]:
        memory, numbers, types = task.memory, task.numbers(), self._types(task)
        held, players = memory["held_out"], memory["players"]
        values = numbers[held : held + len(players)]
        if len(players) < 2:
            slalom, more = Slalom(values, np.zeros(1)), {}
        else:
            found = analytic.solve_analytic(values, memory["pairs"], numbers[held + len(players) :])
            slalom = found.slalom
            units = task.subject.units
            more = {
                "failed": [units[players[k]].text for k in found.failed],
                "undetermined": [units[players[k]].text for k in found.undetermined],
            }
        if slalom.values.ndim == 2:
            slalom = Slalom(
                slalom.values, slalom.importances, 0.0, np.zeros(slalom.values.shape[1])
            )
        expected = slalom.predict(task.counts(types)[:held])
        return slalom, measure_fidelity(expected, numbers[:held]), more


def _ranking_score(slalom: Slalom, types: NDArray[np.int64], task: Task) -> Floats:
    """The linear score that ranks units, of the predicted class if there are several."""
    values = slalom.values
    if values.ndim == 2:
        values = values[:, int(np.argmax(task.whole))]
    return (values * np.exp(slalom.importances))[types]


def _slope_samples(distinct: int) -> int:
    """How many questions to ask with slopes if the user does not say."""
    return min(max(distinct, 100), 300)


def _count(slopes: Floats | None) -> int:
    """Questions that were answered with slopes."""
    return 0 if slopes is None else int(np.isfinite(slopes).any(axis=1).sum())


def _by_type(slopes: Floats, types: NDArray[np.int64]) -> Floats:
    """Sums over the units of every type; unknown if one of them is."""
    found = np.zeros((int(types.max()) + 1, len(slopes)))
    np.add.at(found, types, slopes.T)
    return found.T


def _first_of_each(types: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(types, return_index=True)[1]
