"""Measures what the defaults of SLALOM gain over what was rejected, on the panel.

    python -m benchmarks.panel.choices --data DATA --weights WEIGHTS --models FOLDER
        [--texts 6] [--group middle] [--only NAME …]

Every variant has 500 questions about the same texts and is judged by the same test questions.
Figures are medians over the texts: R² over all sizes, log sizes, 2 to 6 units, single units, and
the deletion curve in log-odds; then its mean difference to that of AttnLRP, with two standard
errors, where the model can be looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import piste
from benchmarks.panel.command import one_group
from benchmarks.panel.judging import Trial
from piste.errors import PisteError
from piste.explanation import r_squared
from piste.slalom import Fit, fit, sampling, solver, surrogate
from piste.slalom.family import Point, Questions
from piste.slalom.solver import Posterior
from piste.types import Floats, Ints

BUDGET = 500
KINDS = ("all", "log", "few", "one")


def drawn(trial: Trial, sampler: str, singles: bool, count: int = BUDGET) -> list[Any]:
    """The whole text, every unit alone if wanted, and the sampler's questions."""
    rng, types = np.random.default_rng(0), trial.subject.types
    questions: list[Any] = [trial.subject.whole]
    if singles:
        questions += sampling.alone(types, int(0.4 * count), rng)
    more = sampling.draw(
        sampler, len(types), count - len(questions), rng, {sampling.key_of(types)}, types
    )
    return questions + list(more)


def counts_of(trial: Trial, questions: list[Any]) -> Floats:
    """How often each type occurs in each question."""
    types = trial.subject.types
    width = int(types.max()) + 1
    return np.array(
        [np.bincount(types[np.asarray(one)], minlength=width) for one in questions], dtype=float
    )


def answered(trial: Trial, questions: list[Any], **options: Any) -> Fit:
    """A fit to the model's answers."""
    answers = trial.target(trial.engine.ask([(trial.subject, questions)])[0])
    return fit(counts_of(trial, questions), answers, **options)


def most_uncertain(posterior: Posterior, counts: Any, count: int) -> Ints:
    """Rows of ``counts`` (questions × types) to ask, one after the other.

    Each is the one whose answer has the largest predictive variance J C Jᵀ, after what the
    answers to those before it will have taken away from the covariance C.
    """
    asked = Questions(counts)
    point = Point(asked, posterior.layout, posterior.theta)
    moves = np.asarray(point.jacobian() @ posterior.factor)
    logs = np.log(np.maximum(asked.sizes, 1.0))
    noise = posterior.noise.variances(logs, point.slope)[:, 0]
    variances = np.einsum("ij,ij->i", moves, moves)
    chosen: list[int] = []
    for _ in range(min(count, len(variances))):
        best = int(np.argmax(variances))
        chosen.append(best)
        size = float(moves[best] @ moves[best])
        if size > 0:
            own = moves[best] / np.sqrt(size)
            along = moves @ own
            shrink = 1.0 - np.sqrt(noise[best] / (noise[best] + size))
            moves = moves - shrink * np.outer(along, own)
            variances = variances - (1.0 - (1.0 - shrink) ** 2) * along**2
        variances[chosen] = -np.inf
    return np.array(chosen, dtype=np.int64)


def chosen(trial: Trial, **options: Any) -> Fit:
    """Three quarters of the questions drawn, the rest by what a first fit is least certain of."""
    questions = drawn(trial, "log", True, 3 * BUDGET // 4)
    found = answered(trial, questions, **options)
    types, rng = trial.subject.types, np.random.default_rng(1)
    count = BUDGET - len(questions)
    candidates = sampling.draw("log", len(types), 4 * count, rng, None, types)
    assert found.posterior is not None
    best = most_uncertain(found.posterior, counts_of(trial, candidates), count)
    questions += [candidates[place] for place in best]
    answers = trial.target(trial.engine.ask([(trial.subject, questions)])[0])
    return fit(counts_of(trial, questions), answers, start=found)


@contextmanager
def patched(module: Any, name: str, value: Any) -> Iterator[None]:
    """Another constant of the mathematics for a while."""
    before = getattr(module, name)
    try:
        setattr(module, name, value)
        yield
    finally:
        setattr(module, name, before)


def _without_emphasis(trial: Trial) -> Fit:
    with patched(surrogate, "EMPHASIS", 1.0):
        return answered(trial, drawn(trial, "log", True))


def _constant_noise(trial: Trial) -> Fit:
    with patched(solver, "_SHAPED", 10**6):
        return answered(trial, drawn(trial, "log", True))


VARIANTS: dict[str, Callable[[Trial], Fit]] = {
    "default": lambda trial: answered(trial, drawn(trial, "log", True)),
    "additive": lambda trial: answered(trial, drawn(trial, "log", True), form="additive"),
    "mixed": lambda trial: answered(trial, drawn(trial, "log", True), form="mixed"),
    "softmax": lambda trial: answered(trial, drawn(trial, "log", True), form="softmax"),
    "paper, same questions": lambda trial: answered(trial, drawn(trial, "log", True), form="paper"),
    "paper, short questions": lambda trial: answered(
        trial, drawn(trial, "short", False), form="paper"
    ),
    "plain sizes, no singles": lambda trial: answered(trial, drawn(trial, "subsets", False)),
    "plain sizes and singles": lambda trial: answered(trial, drawn(trial, "subsets", True)),
    "log sizes, no singles": lambda trial: answered(trial, drawn(trial, "log", False)),
    "three times the questions": lambda trial: answered(
        trial, drawn(trial, "log", True, 3 * BUDGET)
    ),
    "seven tenths of the questions": lambda trial: answered(
        trial, drawn(trial, "log", True, 7 * BUDGET // 10)
    ),
    "half the questions": lambda trial: answered(trial, drawn(trial, "log", True, BUDGET // 2)),
    "a quarter chosen by variance": chosen,
    "single units count once": _without_emphasis,
    "noise the same everywhere": _constant_noise,
}


def judged(trial: Trial, found: Fit) -> list[float]:
    """R² by kind of question, and the deletion curve of the contributions."""
    r2 = [
        r_squared(found.predict(counts_of(trial, trial.questions[kind])), trial.answers[kind])
        for kind in KINDS
    ]
    slalom = found.slalom
    score = slalom.evidence * np.exp(slalom.mixing * slalom.importances)
    return [*r2, trial.deletion(score[trial.subject.types])["deletion"]]


def relevance(classifier: piste.Classifier, given: Any, trial: Trial) -> float:
    """The deletion curve of AttnLRP; NaN of a model that can't be looked into."""
    try:
        e = piste.explain(classifier, given, method="attnlrp", long="truncate")
    except PisteError:
        return float("nan")
    return trial.deletion(e.score())["deletion"]


def main() -> None:
    """Print one table per model."""
    options, cases = one_group(__doc__ or "", 6)
    for model, classifier, some in cases:
        rows: dict[str, list[list[float]]] = {name: [] for name in VARIANTS}
        for given in some:
            trial = Trial.of(classifier.subject(given, long="truncate"))
            peer = relevance(classifier, given, trial)
            for name, variant in VARIANTS.items():
                found = judged(trial, variant(trial))
                rows[name].append([*found, found[-1] - peer])
        print(f"\n### {model.name}, {options.group}, {len(rows['default'])} inputs\n")
        print("| | R² all | R² log | R² few | R² single | deletion | less AttnLRP |")
        print("|---|---|---|---|---|---|---|")
        for name, all_found in rows.items():
            *medians, _ = np.median(all_found, axis=0)
            less = np.array(all_found)[:, -1]
            error = 2 * less.std(ddof=1) / np.sqrt(len(less)) if len(less) > 1 else np.nan
            cells = [*(f"{number:.2f}" for number in medians), f"{less.mean():+.2f} ± {error:.2f}"]
            print(f"| {name} | {' | '.join(cells)} |".replace("-", "−"), flush=True)


if __name__ == "__main__":
    main()
