"""Tables 7 and 8, figure 4 c–d: is a SLALOM found again in a transformer that learned from it?

Labels are drawn by the log-odds of a known SLALOM over made-up words; transformers learn from
them, a SLALOM is fitted to their answers, and both are held against the one they learned from.

The paper takes values from word frequencies of IMDB and draws importances that go with their size
(its eq. 75). Here both are drawn with a fixed seed: values v from a Laplace distribution of scale
1 (most words say little, a few say much, as in bags of words), importances s = |v| + N(0, ½²),
shifted to mean 0. Texts have 1 to 15 words, every length and every word equally often.

Models learn from single labels, so what they know of the rule is bounded by the number of texts
(steps × 128). Deep models get fewer steps; the error of the model itself is in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from piste import slalom
from piste.evaluation import interval
from piste.show.figures.canvas import panels
from piste.slalom import Slalom
from piste.types import Floats, Ints
from studies.base import Findings, Study, Table, Work, graded, shown
from studies.synthetic import (
    KINDS,
    Recipe,
    Rule,
    answers,
    by_model,
    draw_texts,
    recipes,
    train,
)

Found = Mapping[tuple[str, int], Any]
_STEPS = {1: 2000, 2: 2000, 6: 1000, 12: 600}
_LOGITS = {
    ("distilbert", 1): 0.002, ("bert", 1): 0.002, ("gpt2", 1): 0.011,
    ("distilbert", 2): 0.003, ("bert", 2): 0.003, ("gpt2", 2): 0.017,
    ("distilbert", 6): 0.001, ("bert", 6): 0.011, ("gpt2", 6): 0.001,
    ("distilbert", 12): 0.001, ("bert", 12): 0.001, ("gpt2", 12): 0.001,
}  # fmt: skip
"""The paper's table 7."""
_PARAMETERS = {
    ("distilbert", 1): 0.092, ("bert", 1): 0.540, ("gpt2", 1): 0.940,
    ("distilbert", 2): 0.094, ("bert", 2): 0.368, ("gpt2", 2): 1.652,
    ("distilbert", 6): 0.124, ("bert", 6): 0.830, ("gpt2", 6): 0.569,
    ("distilbert", 12): 0.287, ("bert", 12): 0.394, ("gpt2", 12): 0.385,
}  # fmt: skip
"""The paper's table 8, in a unit that is not known to us."""


def draw_slalom(words: int, rng: np.random.Generator) -> Slalom:
    """A SLALOM as the paper's: words that say much weigh much.

    >>> abs(float(draw_slalom(9, np.random.default_rng(0)).importances.mean())) < 1e-12
    True
    """
    values = rng.laplace(0, 1, words)
    importances = np.abs(values) + rng.normal(0, 0.5, words)
    return Slalom(values, importances - importances.mean())


def rule_of(truth: Slalom, longest: int) -> Rule:
    """Texts of 1 to ``longest`` words whose log-odds are a SLALOM's."""
    mass, values = np.exp(truth.importances), truth.values

    def log_odds(drawn: Ints) -> Floats:
        heavy = mass[drawn]
        return np.asarray((heavy * values[drawn]).sum(axis=-1) / heavy.sum(axis=-1))

    def lengths(count: int, rng: np.random.Generator) -> Ints:
        return rng.integers(1, longest + 1, count)

    words = tuple(f"word{number}" for number in range(len(values)))
    return Rule(f"slalom-{len(words)}-{longest}", words, log_odds, lengths, longest)


def lesson(quick: bool) -> tuple[Slalom, Rule]:
    """What all models of this study learn: the same for every seed of a run."""
    truth = draw_slalom(6 if quick else 20, np.random.default_rng(75))
    return truth, rule_of(truth, 6 if quick else 15)


def lessons(work: Work) -> dict[tuple[str, int], Recipe]:
    """How they learn it."""
    return {
        (kind, layers): replace(
            one, steps=300 if work.quick else _STEPS[layers], batch=128,
            rate=3e-3 if work.quick else 1e-3,
        )
        for (kind, layers), one in recipes(work).items()
    }  # fmt: skip


class Recovery(Study):
    """SLALOMs, learned by transformers and fitted to their answers."""

    name: ClassVar[str] = "recovery"
    title: ClassVar[str] = "A SLALOM that a transformer learned is found again"

    def run(self, work: Work) -> Findings:
        """Train, ask, fit, and compare with what was learned from."""
        found = by_model(work, self.measure, lessons(work))
        truth, _ = lesson(work.quick)
        return Findings(
            self.name,
            self.title,
            work.command(self.name),
            [_logit_table(found), _parameter_table(found, truth)],
            [_logit_claim(found), _parameter_claim(found, truth)],
            {"recovered": partial(_draw, found, truth)},
        )

    def measure(self, recipe: Recipe, work: Work) -> dict[str, Any]:
        """Log-odds by the rule, the model and the surrogate, and the surrogate's parameters."""
        _, rule = lesson(work.quick)
        classifier = train(rule, recipe, work.models)
        fitted, judged = (600, 300) if work.quick else (5000, 1000)
        rng = np.random.default_rng([work.seed, 4])
        drawn, texts = draw_texts(fitted + judged, rng, rule)
        said, counts = answers(classifier, texts), rule.counts(drawn)
        surrogate = slalom.fit(counts[:fitted], said[:fitted], form="paper").slalom
        return {
            "rule": rule.truth(drawn[fitted:]).tolist(),
            "model": said[fitted:].tolist(),
            "surrogate": surrogate.predict(counts[fitted:]).tolist(),
            "values": surrogate.values.tolist(),
            "importances": surrogate.importances.tolist(),
        }


def squared(one: Mapping[str, Any], first: str, second: str) -> Floats:
    """The squared difference of two log-odds of every text."""
    return np.asarray((np.array(one[first]) - np.array(one[second])) ** 2)


def off(values: Any, importances: Any, truth: Slalom) -> tuple[Floats, Floats]:
    """Squared errors of values and of importances, which are compared at mean 0 each.

    >>> truth = Slalom(np.array([1.0, 2.0]), np.array([-0.5, 0.5]))
    >>> [error.tolist() for error in off([1.0, 3.0], [7.0, 8.0], truth)]
    [[0.0, 1.0], [0.0, 0.0]]
    """
    found = np.asarray(importances) - np.mean(importances)
    centred = truth.importances - truth.importances.mean()
    return (np.asarray(values) - truth.values) ** 2, (found - centred) ** 2


def _agreement(one: Mapping[str, Any], truth: Slalom) -> tuple[float, float]:
    """Correlations of values and of importances with the true ones."""
    return (
        float(np.corrcoef(one["values"], truth.values)[0, 1]),
        float(np.corrcoef(one["importances"], truth.importances)[0, 1]),
    )


def _logit_claim(found: Found) -> tuple[str, str, str]:
    errors = [float(squared(one, "surrogate", "rule").mean()) for one in found.values()]
    shares = [e / np.var(one["rule"]) for e, one in zip(errors, found.values(), strict=True)]
    small = max(errors) <= max(_LOGITS.values())
    most = np.median(shares) < 0.1
    return (
        "recovered log-odds are off by 0.001 to 0.017 (squared)",
        f"by {min(errors):.4f} to {max(errors):.4f}, which is {min(shares):.1%} to "
        f"{max(shares):.1%} of their variance",
        graded(small, bool(most)),
    )


def _parameter_claim(found: Found, truth: Slalom) -> tuple[str, str, str]:
    values, importances = np.array([_agreement(one, truth) for one in found.values()]).T
    both = min(values.min(), importances.min()) > 0.9
    some = max(np.median(values), np.median(importances)) > 0.9
    return (
        "there is a good correspondence between true and recovered parameters",
        f"values correlate by {values.min():.3f} to {values.max():.3f}, importances by "
        f"{importances.min():.3f} to {importances.max():.3f}",
        graded(bool(both), bool(some)),
    )


def _mean(errors: Floats) -> str:
    return shown(interval(errors), 4)


def _logit_table(found: Found) -> Table:
    pairs = (("surrogate", "rule"), ("surrogate", "model"), ("model", "rule"))
    rows = [
        (kind, str(layers), *(_mean(squared(one, *pair)) for pair in pairs),
         f"{np.var(one['rule']):.2f}", f"{_LOGITS[kind, layers]:.3f}")
        for (kind, layers), one in found.items()
    ]  # fmt: skip
    return Table(
        "Mean squared difference of log-odds on other texts",
        ("model", "layers", *(" against ".join(pair) for pair in pairs), "variance of the rule",
         "paper: surrogate against rule"),
        rows,
    )  # fmt: skip


def _parameter_table(found: Found, truth: Slalom) -> Table:
    rows = []
    for (kind, layers), one in found.items():
        errors = off(one["values"], one["importances"], truth)
        correlations = (f"{number:.3f}" for number in _agreement(one, truth))
        rows.append(
            (kind, str(layers), _mean(np.concatenate(errors)), *map(_mean, errors), *correlations,
             f"{_PARAMETERS[kind, layers]:.3f}")
        )  # fmt: skip
    return Table(
        "Mean squared error of the parameters",
        ("model", "layers", "both", "values", "importances", "correlation of values",
         "of importances", "paper, times a factor"),
        rows,
    )  # fmt: skip


def _draw(found: Found, truth: Slalom) -> Figure:
    figure, rows = panels((11.0, 9.6), 3, len(KINDS))
    for column, kind in enumerate(KINDS):
        depths = [layers for one, layers in found if one == kind]
        for layers in depths:
            one, label = found[kind, layers], f"{layers} layer{'s' * (layers > 1)}"
            _dots(rows[0][column], one["rule"], one["surrogate"], label, 3)
            _dots(rows[1][column], truth.values, one["values"], label, 16)
            _dots(rows[2][column], truth.importances, one["importances"], label, 16)
        rows[0][column].set_title(kind, loc="left", fontsize=10)
        for row, what in zip(rows, ("log-odds", "values", "importances"), strict=True):
            low, high = row[column].get_xlim()
            row[column].plot([low, high], [low, high], "--", color="#7a7a85", zorder=0)
            row[column].set_xlabel(f"true {what}")
            if column == 0:
                row[column].set_ylabel(f"recovered {what}")
    rows[0][0].legend(frameon=False, fontsize=8, markerscale=2)
    return figure


def _dots(axes: Axes, true: Any, recovered: Any, label: str, size: float) -> None:
    axes.scatter(true, recovered, s=size, alpha=0.7, linewidths=0, label=label)


STUDY = Recovery()
