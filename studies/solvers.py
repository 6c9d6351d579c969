"""Figure 9: three ways to solve for a SLALOM, by the size of the vocabulary and of the context.

The analytic solution asks about single words and pairs, 2n − 1 texts in all. SGD (the paper's
choice, with the published package's settings) and Newton (ours) are fitted to the same texts of
as many words as the context. What is asked are SLALOMs drawn as in the study ``recovery``, as they
are or with noise on every answer, and the transformers that study trained. The errors are of
parameters (against the SLALOM that was drawn or learned) and of log-odds of other texts of the
same length (against the drawn SLALOM, or against what the transformer itself says).

Runs are 15 drawn SLALOMs, or the twelve transformers; with ``--quick`` three each. Medians are
shown: a pair whose answer no SLALOM gives sends an analytic importance to ±13.8, and one such word
would be all a mean tells.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from piste import slalom
from piste.evaluation import Interval, interval
from piste.show.figures.canvas import panels, plain_ticks
from piste.slalom import Slalom
from piste.slalom.analytic import fit_analytic
from piste.types import Floats
from studies.base import Findings, Study, Table, Work, graded
from studies.recovery import draw_slalom, lesson, lessons, off, rule_of
from studies.synthetic import Recipe, Rule, answers, train

Ask = Callable[[Sequence[Any]], Floats]
Run = Mapping[str, Mapping[str, float]]
SOLVERS = ("analytic", "SGD", "Newton")
SUBJECTS = ("exact", "noisy", "trained")
AXES = {"vocabulary": "words in the vocabulary", "context": "words in a text"}
MEASURES = ("parameters", "log-odds")
_NOISE = 0.1
_JUDGED = 500
_TITLES = {
    "exact": "Drawn SLALOMs",
    "noisy": f"Drawn SLALOMs, answers with noise of {_NOISE}",
    "trained": "Transformers",
}


class Setting(NamedTuple):
    """One point of a panel."""

    subject: str
    axis: str
    words: int
    context: int


Found = Mapping[Setting, Sequence[Run]]


class Solvers(Study):
    """Errors and seconds of three solvers."""

    name: ClassVar[str] = "solvers"
    title: ClassVar[str] = "Solving for a SLALOM: analytic, SGD and Newton"

    def run(self, work: Work) -> Findings:
        """Solve for functions that are known, and for transformers."""
        settings = _settings(work.quick)
        work.plan(len(settings))
        found = {
            one: work.part(
                f"{one.subject}, {one.words} words, texts of {one.context}",
                partial(_runs, one, work),
            )
            for one in settings
        }
        return Findings(
            self.name,
            self.title,
            work.command(self.name),
            [_table(found, subject) for subject in SUBJECTS],
            [_parameter_claim(found), _context_claim(found), _newton_claim(found)],
            {"errors": partial(_draw, found)},
        )


def _settings(quick: bool) -> list[Setting]:
    truth, rule = lesson(quick)
    most, longest = len(truth.importances), rule.longest
    words, lengths = ((5, 20), (2, 30)) if quick else ((5, 10, 20, 50, 100), (2, 5, 10, 30, 100))
    few, short = ((3, most), (2, longest)) if quick else ((5, 10, most), (2, 5, 10, longest))
    return [
        *(Setting(kind, "vocabulary", one, 10) for kind in SUBJECTS[:2] for one in words),
        *(Setting(kind, "context", 20, one) for kind in SUBJECTS[:2] for one in lengths),
        *(Setting("trained", "vocabulary", one, longest) for one in few),
        *(Setting("trained", "context", most, one) for one in short),
    ]


def _runs(setting: Setting, work: Work) -> Sequence[Run]:
    questions = 1000 if work.quick else 5000
    solve = partial(solve_all, words=setting.words, context=setting.context, questions=questions)
    found = []
    if setting.subject == "trained":
        truth, rule = lesson(work.quick)
        for (_, layers), recipe in lessons(work).items():
            if layers == 1 or not work.quick:
                ask = _transformer(recipe, rule, work)
                found.append(solve(ask, ask, truth, seed=work.seed))
        return found
    for run in range(3 if work.quick else 15):
        rng = np.random.default_rng([work.seed, run, 9])
        truth = draw_slalom(setting.words, rng)
        exact = rule_of(truth, setting.context).truth
        noise = _NOISE if setting.subject == "noisy" else 0.0
        found.append(solve(_with_noise(exact, noise, rng), exact, truth, seed=run))
    return found


def _transformer(recipe: Recipe, rule: Rule, work: Work) -> Ask:
    classifier = train(rule, recipe, work.models)
    return lambda drawn: answers(classifier, rule.read(drawn))


def _with_noise(ask: Ask, noise: float, rng: np.random.Generator) -> Ask:
    return lambda drawn: ask(drawn) + noise * rng.normal(size=len(drawn))


def solve_all(
    ask: Ask, judge: Ask, truth: Slalom, *, words: int, context: int, questions: int, seed: int
) -> dict[str, dict[str, float]]:
    """Errors and seconds of every solver, over the first so many words of the truth.

    ``ask`` answers what is fitted to, ``judge`` what the fits are held against.
    """
    rng = np.random.default_rng([seed, words, context])
    drawn = list(rng.integers(0, words, (questions + _JUDGED, context)))
    known = Slalom(truth.values[:words], truth.importances[:words])
    counts = rule_of(known, context).counts(drawn)
    some, rest = counts[:questions], counts[questions:]
    said, wanted = ask(drawn[:questions]), judge(drawn[questions:])
    ways: dict[str, Callable[[], Any]] = {
        "analytic": lambda: fit_analytic(ask, words).slalom,
        "SGD": lambda: slalom.fit(some, said, solver="sgd", seed=seed).slalom,
        "Newton": lambda: slalom.fit(some, said, form="paper").slalom,
    }
    found = {}
    for name, way in ways.items():
        start = time.perf_counter()
        one: Slalom = way()
        seconds = time.perf_counter() - start
        errors = np.concatenate(off(one.values, one.importances, known))
        found[name] = {
            "parameters": float(errors.mean()),
            "log-odds": float(((one.predict(rest) - wanted) ** 2).mean()),
            "seconds": seconds,
        }
    return found


def _middle(runs: Sequence[Run], solver: str, what: str) -> Interval:
    return interval([one[solver][what] for one in runs], average="median")


def _ratio(runs: Sequence[Run], what: str, first: str, second: str) -> float:
    return _middle(runs, first, what).centre / _middle(runs, second, what).centre


def _of(found: Found, subject: str, axis: str) -> list[Setting]:
    return [one for one in found if one.subject == subject and one.axis == axis]


def _verdict(each: Sequence[bool]) -> str:
    return graded(all(each), any(each))


def _parameter_claim(found: Found) -> tuple[str, str, str]:
    ratios = [
        _ratio(runs, "parameters", "analytic", "SGD")
        for one, runs in found.items()
        if one.subject == "trained"
    ]
    return (
        "in their parameters the analytic solution and SGD are about as good",
        f"of transformers, the analytic error is {min(ratios):.2g} to {max(ratios):.2g} times "
        "SGD's",
        _verdict([1 / 3 < ratio < 3 for ratio in ratios]),
    )


def _context_claim(found: Found) -> tuple[str, str, str]:
    settings = _of(found, "trained", "context")
    ends = settings[0], settings[-1]
    exact, descent = (
        [_middle(found[one], solver, "log-odds").centre for one in ends]
        for solver in ("analytic", "SGD")
    )
    lower = exact[1] > descent[1]
    grows = exact[1] / exact[0] > 2 * descent[1] / descent[0]
    return (
        "in log-odds SGD's error is lower and almost constant, the analytic one grows drastically "
        "with the context",
        f"of transformers, from {ends[0].context} to {ends[1].context} words the analytic error "
        f"goes from {exact[0]:.4f} to {exact[1]:.4f}, SGD's from {descent[0]:.4f} to "
        f"{descent[1]:.4f}",
        _verdict([lower, grows]),
    )


def _newton_claim(found: Found) -> tuple[str, str, str]:
    errors = [_ratio(runs, what, "Newton", "SGD") for runs in found.values() for what in MEASURES]
    better = [error <= 1 for error in errors]
    slower = [_ratio(runs, "seconds", "SGD", "Newton") for runs in found.values()]
    return (
        "(nothing of Newton; ours: it is as good as SGD or better, and faster)",
        f"its error is at most SGD's in {sum(better)} of {len(better)} medians, and SGD takes "
        f"{min(slower):.0f} to {max(slower):.0f} times as long",
        _verdict([all(better), min(slower) > 1]),
    )


def _table(found: Found, subject: str) -> Table:
    rows: dict[tuple[int, int], list[str]] = {}
    columns = [(what, solver) for what in MEASURES for solver in SOLVERS]
    for setting, runs in found.items():
        if setting.subject == subject:
            spread = [_middle(runs, solver, what) for what, solver in columns]
            rows[setting.words, setting.context] = [
                str(setting.words),
                str(setting.context),
                *(f"{one.centre:.2g} ({one.low:.2g} to {one.high:.2g})" for one in spread),
                f"{_ratio(runs, 'seconds', 'SGD', 'Newton'):.1f}",
            ]
    names = [f"{what}: {solver}" for what, solver in columns]
    return Table(
        f"{_TITLES[subject]}: median squared errors over runs",
        ("words", "context", *names, "seconds, SGD / Newton"),
        list(rows.values()),
    )


def _draw(found: Found) -> Figure:
    figure, rows = panels((12.0, 6.0), 2, 4, sharey="row")
    places = [(axis, what) for axis in AXES for what in MEASURES]
    for subject, row in zip(SUBJECTS[1:], rows, strict=True):
        for (axis, what), own in zip(places, row, strict=True):
            settings = _of(found, subject, axis)
            sizes = [one.words if axis == "vocabulary" else one.context for one in settings]
            for solver in SOLVERS:
                spread = [_middle(found[one], solver, what) for one in settings]
                low, high = [one.low for one in spread], [one.high for one in spread]
                own.plot(sizes, [one.centre for one in spread], "o-", markersize=3, label=solver)
                own.fill_between(sizes, low, high, alpha=0.15)
            own.set_yscale("log")
            own.set_xscale("log")
            own.set_xticks(sizes)
            plain_ticks(own.xaxis)
            plain_ticks(own.yaxis)
            own.set_xlabel(AXES[axis])
            own.set_title(f"{subject}: {what}", loc="left", fontsize=10)
        row[0].set_ylabel("squared error")
    rows[1][-1].legend(frameon=False, fontsize=8)
    return figure


STUDY = Solvers()
