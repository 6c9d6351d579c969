"""How far any description of the answers gets, with how many questions.

    python -m benchmarks.panel.limits --data DATA --weights WEIGHTS --models FOLDER
        [--texts 5] [--group middle] [--only NAME …]

SLALOM's family with 500 and 5,000 questions stands beside descriptions that are free to
learn anything from how often each unit is there: boosted trees, and the family with a Gaussian
process or boosted trees on what it leaves. Where they stay close to it with ten times the
questions, neither another form nor more questions would help. R² are medians over the texts, on
test questions of sizes even on a plain scale, on a log scale, and of 2 to 6 units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from benchmarks.panel.choices import BUDGET, counts_of, drawn
from benchmarks.panel.command import one_group
from benchmarks.panel.judging import Trial
from piste.explanation import r_squared
from piste.slalom import fit, sampling
from piste.types import Floats

Predict = Callable[[Floats], Floats]
KINDS = ("all", "log", "few")
MANY = 10 * BUDGET


def _directions(counts: Floats) -> Floats:
    """Rows of length one: questions are alike if they hold the same units, few or many."""
    return counts / np.sqrt(np.maximum((counts**2).sum(axis=1, keepdims=True), 1.0))


def _with_sizes(counts: Floats) -> Floats:
    return np.hstack([counts, counts.sum(axis=1, keepdims=True)])


def trees(counts: Floats, answers: Floats) -> Predict:
    """Boosted trees on the counts and the size."""
    model = HistGradientBoostingRegressor(max_iter=300, learning_rate=0.05, min_samples_leaf=8)
    model.fit(_with_sizes(counts), answers)
    return lambda more: model.predict(_with_sizes(more))


def process(counts: Floats, answers: Floats) -> Predict:
    """A Gaussian process; its width is learned from the first questions."""
    kernel = ConstantKernel(0.1) * RBF(1.0, (0.1, 10.0)) + WhiteKernel(0.1)
    first = GaussianProcessRegressor(kernel).fit(_directions(counts[:BUDGET]), answers[:BUDGET])
    model = GaussianProcessRegressor(first.kernel_, optimizer=None)
    model.fit(_directions(counts), answers)
    return lambda more: model.predict(_directions(more))


def descriptions(counts: Floats, answers: Floats) -> dict[str, Predict]:
    """All that are compared, fitted to the same answers."""
    family = fit(counts, answers, form="mixed")
    left = answers - family.predict(counts)
    rest = {"a Gaussian process": process(counts, left), "trees": trees(counts, left)}
    found: dict[str, Predict] = {"family": family.predict, "trees": trees(counts, answers)}
    for name, more in rest.items():
        found[f"family and {name}"] = _sum_of(family.predict, more)
    return found


def _sum_of(one: Predict, other: Predict) -> Predict:
    return lambda counts: one(counts) + other(counts)


def judged(trial: Trial) -> dict[str, list[float]]:
    """R² by kind of question, of every description with every number of questions."""
    questions = drawn(trial, "log", True)
    rng, types = np.random.default_rng(77), trial.subject.types
    seen = {sampling.key_of(types[np.asarray(one)]) for one in questions}
    for some in trial.questions.values():  # the test questions are not among them
        seen |= {sampling.key_of(types[np.asarray(one)]) for one in some}
    questions += sampling.draw("log", len(types), MANY - len(questions), rng, seen, types)
    answers = trial.target(trial.engine.ask([(trial.subject, questions)])[0])
    counts = counts_of(trial, questions)
    rows: dict[str, list[float]] = {}
    for count in (BUDGET, MANY):
        for name, predict in descriptions(counts[:count], answers[:count]).items():
            rows[f"{name}, {count:,} questions"] = _r2(trial, predict)
    return rows


def _r2(trial: Trial, predict: Predict) -> list[float]:
    def of(kind: str) -> tuple[Any, Floats]:
        return predict(counts_of(trial, trial.questions[kind])), trial.answers[kind]

    return [r_squared(*of(kind)) for kind in KINDS]


def main() -> None:
    """Print one table per model."""
    options, cases = one_group(__doc__ or "", 5)
    for model, classifier, some in cases:
        found = [judged(Trial.of(classifier.subject(one, long="truncate"))) for one in some]
        print(f"\n### {model.name}, {options.group}, {len(found)} inputs\n")
        print("| | R² all | R² log | R² 2–6 units |\n|---|---|---|---|")
        for name in found[0]:
            numbers = np.median([one[name] for one in found], axis=0)
            cells = " | ".join(f"{number:.2f}".replace("-", "−") for number in numbers)
            print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
