"""SLALOM: a value and an importance for every unit (Leemann et al., TMLR 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from piste.explanation import Fidelity
from piste.methods.base import (
    Floats,
    Method,
    Solution,
    Task,
    check_count,
    choose,
    default_samples,
    held_out_share,
    measure_fidelity,
)
from piste.slalom import analytic, sampling
from piste.slalom.fitting import Fit, Ridge, fit
from piste.slalom.scores import text_scores
from piste.slalom.surrogate import Slalom
from piste.subject import Sequence1D
from piste.surrogates import SlalomSurrogate

FIRST_ROUND = 128
SETTLED_SCORES = 0.98
SETTLED_R2 = 0.02
SETTLED_ERROR = 0.05


@dataclass(frozen=True)
class SlalomMethod(Method):
    """Ask about sequences of the units, fit the surrogate of eq. 4, derive all scores.

    ``samples`` counts the questions, held-out ones included; None means four for every distinct
    unit, from 300 to 2,000; "auto" asks in growing rounds until scores or errors settle, at most
    ``max_samples``. ``share`` gives one pair of scores to every
    type of unit (the paper's choice) or to every occurrence.
    """

    samples: int | Literal["auto"] | None = None
    sampler: str = "mix"
    solver: str = "newton"
    share: str = "type"
    ridge: Ridge = "auto"
    background: bool | Literal["auto"] = "auto"
    max_samples: int = 4000
    epochs: int = 60

    name: ClassVar[str] = "slalom"
    about: ClassVar[str] = "value and importance of every unit, by a softmax-linked surrogate"
    paper: ClassVar[str] = "Leemann et al., TMLR 2025"

    def __post_init__(self) -> None:
        choose("sampler", self.sampler, sampling.SAMPLERS)
        choose("solver", self.solver, ("newton", "sgd", "analytic"))
        choose("share", self.share, ("type", "occurrence"))
        check_count("max_samples", self.max_samples)
        check_count("epochs", self.epochs)
        if self.samples not in ("auto", None):
            check_count("samples", self.samples)

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
            return self._first_round(task)
        if self.solver == "analytic":
            return self._pairs(task)
        if self.samples != "auto":
            return []
        return self._another_round(task)

    def _first_round(self, task: Task) -> list[Sequence1D]:
        n, memory = len(task.subject), task.memory
        seen: sampling.Seen = {sampling.key_of(task.subject.types)}
        memory["seen"] = seen
        if self.samples == "auto":
            total = min(FIRST_ROUND, self.max_samples)
            share = 2 * FIRST_ROUND  # rounds to come are judged by the same held-out questions
        else:
            distinct = len(np.unique(self._types(task)))
            total = share = self.samples or default_samples(distinct)
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
        drawn = sampling.draw(self.sampler, n, count, task.rng, seen, task.subject.types)
        if self.short_only and not drawn:  # a single unit is short enough
            fixed.append(task.subject.whole)
        return [*held_out, *fixed, *drawn]

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
        found, fidelity = self._fit(task)
        linear = _ranking_score(found.slalom, self._types(task), task)
        memory["stopped"] = self._reason_to_stop(memory, found, fidelity, linear, asked)
        if memory["stopped"]:
            return []
        memory["linear"], memory["r2"] = linear, fidelity.r2
        count = min(asked, self.max_samples - asked)
        more = sampling.draw(
            self.sampler, len(task.subject), count, task.rng, memory["seen"], task.subject.types
        )
        if not more:
            memory["stopped"] = "every question there is was asked"
        return list(more)

    def _reason_to_stop(
        self, memory: dict[str, Any], found: Fit, fidelity: Fidelity, linear: Floats, asked: int
    ) -> str | None:
        if "linear" in memory:
            # Not of ranks: the order of the many units that hardly count never settles.
            moving = min(np.ptp(linear), np.ptp(memory["linear"])) > 0
            agreement = float(np.corrcoef(linear, memory["linear"])[0, 1]) if moving else 1.0
            if agreement >= SETTLED_SCORES and fidelity.r2 - memory["r2"] < SETTLED_R2:
                return f"scores settled (correlation {agreement:.3f} between rounds)"
        errors = found.errors["value"][found.active]
        spread = float(np.std(found.values[found.active])) or 1.0
        if float(np.median(errors)) < SETTLED_ERROR * spread:
            return "errors settled (small against the spread of the values)"
        if asked >= self.max_samples:
            return f"cap of {self.max_samples} questions reached"
        return None

    # -- solving -------------------------------------------------------------------------------

    def _types(self, task: Task) -> NDArray[np.int64]:
        return task.subject.types if self.share == "type" else np.arange(len(task.subject))

    def _fit(self, task: Task) -> tuple[Fit, Fidelity]:
        memory = task.memory
        if memory.get("fitted") == len(task.sequences):
            found: tuple[Fit, Fidelity] = memory["fit"]
            return found
        types, held = self._types(task), memory["held_out"]
        counts = task.counts(types)
        numbers = task.numbers()
        options: dict[str, Any] = (
            {"ridge": self.ridge} if self.solver == "newton" else {"epochs": self.epochs}
        )
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
        settings: dict[str, Any] = {
            "sampler": self.sampler,
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
            }
            if self.samples == "auto":
                more["stopped"] = task.memory["stopped"]
        scores, deviations = text_scores(slalom, self._types(task), found)
        base = slalom.base
        return Solution(
            scores=scores,
            errors=deviations,
            surrogate=SlalomSurrogate(
                float(slalom.weight),
                tuple(map(float, base)) if isinstance(base, np.ndarray) else float(base),
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


def _first_of_each(types: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(types, return_index=True)[1]
