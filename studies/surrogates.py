"""Table 6, figure 4 a–b: which surrogate describes transformers that learned from additive data?

A linear model of the word counts, a generalised additive model (a weight for every word at every
position, LASSO) and SLALOM, fitted to the same answers of the same models as in the study
``additive``, and judged by answers to other texts. All see the words only, never the rule.

Two forms are ours: the one that Piste chooses between an additive model and SLALOM, with or without
a saturation, and, to be fair, a linear model with a saturation. How long a model was trained is not
known of the paper's, and decides: on texts like those it learned from, one that learned long comes
near the sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import least_squares

from piste import slalom
from piste.errors import need
from piste.evaluation import interval
from piste.show.figures.canvas import panels
from piste.slalom.surrogate import Saturation
from piste.types import Floats, Ints
from studies.base import Findings, Study, Table, Work, graded, shown
from studies.synthetic import (
    ADDITIVE,
    KINDS,
    MOST_WORDS,
    SUM,
    Recipe,
    answers,
    by_model,
    draw_texts,
    recipes,
    train_additive,
)

FORMS = ("linear", "GAM", "SLALOM", "linear, saturating", "Piste")
_PAPERS = FORMS[:3]
_LIGHTLY = 250
"""Steps of a model that learned for a short time."""
_PAPER: dict[tuple[str, int], tuple[float, float, float]] = {
    ("bert", 1): (26.33, 43.30, 7.34),
    ("bert", 2): (28.43, 48.28, 9.92),
    ("bert", 6): (50.82, 68.23, 23.99),
    ("bert", 12): (44.58, 51.38, 18.77),
    ("distilbert", 1): (28.28, 44.43, 10.83),
    ("distilbert", 2): (32.58, 53.87, 16.82),
    ("distilbert", 6): (31.49, 49.35, 17.26),
    ("distilbert", 12): (50.82, 71.64, 27.50),
    ("gpt2", 1): (20.31, 48.78, 16.92),
    ("gpt2", 2): (24.81, 54.33, 22.17),
    ("gpt2", 6): (32.66, 57.08, 21.59),
    ("gpt2", 12): (25.74, 54.36, 20.25),
}
"""Its table 6; in what unit is not known to us."""
_TITLE = "Mean squared error of the log-odds on other texts"


class Surrogates(Study):
    """Five forms, fitted to the answers of trained transformers."""

    name: ClassVar[str] = "surrogates"
    title: ClassVar[str] = "Which surrogate describes a transformer?"

    def run(self, work: Work) -> Findings:
        """Ask, fit, and judge by texts that were not fitted to."""
        found = by_model(work, self.measure)
        tables = [_table(f"{_TITLE}, {_steps(work)} steps of training", found)]
        lightly: dict[tuple[str, int], Any] = {}
        if not work.quick:
            short = {key: replace(one, steps=_LIGHTLY) for key, one in recipes(work).items()}
            lightly = by_model(work, self.measure, short)
            tables.append(_table(f"{_TITLE}, {_LIGHTLY} steps of training", lightly))
        rows = [one for one in (found, lightly) if one]
        return Findings(
            self.name,
            self.title,
            work.command(self.name),
            tables,
            [
                (
                    "SLALOM has a lower error than a linear model and a GAM in all twelve rows",
                    *_first("SLALOM", _PAPERS[:2], rows),
                ),
                (
                    "(ours) the form that Piste chooses has, and lower than SLALOM",
                    *_first(FORMS[-1], _PAPERS, rows),
                ),
                (
                    "(ours) it is also better than a linear model with a saturation",
                    *_first(FORMS[-1], FORMS[3:4], rows),
                ),
            ],
            {"errors": partial(_draw, found)}
            | ({"lightly": partial(_draw, lightly)} if lightly else {}),
        )

    def measure(self, recipe: Recipe, work: Work) -> dict[str, Any]:
        """Squared errors of every form on texts it was not fitted to."""
        classifier = train_additive(recipe, work.models)
        rng = np.random.default_rng([work.seed, 2])
        fitted, judged = (600, 300) if work.quick else (5000, 1000)
        drawn, texts = draw_texts(fitted + judged, rng)
        said = answers(classifier, texts)
        counts, places = SUM.counts(drawn), _places(drawn)
        some, rest = slice(fitted), slice(fitted, None)
        predicted = {
            "linear": _linear(counts[some], said[some], counts[rest]),
            "GAM": _lasso(places[some], said[some], places[rest], work.seed),
            "SLALOM": slalom.fit(counts[some], said[some], form="paper").predict(counts[rest]),
            "linear, saturating": _saturating(counts[some], said[some], counts[rest]),
            "Piste": slalom.fit(counts[some], said[some]).predict(counts[rest]),
        }
        return {
            "variance": float(said[rest].var()),
            **{form: ((one - said[rest]) ** 2).tolist() for form, one in predicted.items()},
        }


def _places(drawn: list[Ints]) -> Floats:
    """Texts × (words × positions): whether the word stands there."""
    found = np.zeros((len(drawn), MOST_WORDS, len(ADDITIVE)))
    for row, one in zip(found, drawn, strict=True):
        row[np.arange(len(one)), one] = 1
    return found.reshape(len(drawn), -1)


def _linear(counts: Floats, said: Floats, others: Floats) -> Floats:
    weights, *_ = np.linalg.lstsq(_with_constant(counts), said, rcond=None)
    return np.asarray(_with_constant(others) @ weights)


def _with_constant(rows: Floats) -> Floats:
    return np.hstack([rows, np.ones((len(rows), 1))])


def _saturating(counts: Floats, said: Floats, others: Floats) -> Floats:
    """A linear model under the same saturation as Piste's: m + k tanh((w·c − m) / k)."""
    start, *_ = np.linalg.lstsq(_with_constant(counts), said, rcond=None)
    begin = np.append(start, [said.mean(), np.log(2 * np.abs(said).max())])

    def predicted(parameters: Floats, rows: Floats) -> Floats:
        *weights, middle, reach = parameters
        return Saturation(middle, float(np.exp(reach)))(_with_constant(rows) @ np.array(weights))

    found = least_squares(lambda at: predicted(at, counts) - said, begin)
    return predicted(found.x, others)


def _lasso(places: Floats, said: Floats, others: Floats, seed: int) -> Floats:
    linear: Any = need("sklearn.linear_model", "concepts", "The GAM of this study")
    model = linear.LassoCV(alphas=20, cv=3, max_iter=20_000, random_state=seed).fit(places, said)
    return np.asarray(model.predict(others))


def _steps(work: Work) -> int:
    return next(iter(recipes(work).values())).steps


def _first(
    form: str, others: Sequence[str], tables: Sequence[Mapping[Any, Any]]
) -> tuple[str, str]:
    """In how many rows a form is better than others, table by table, and whether that holds."""
    won = [
        [all(np.mean(one[form]) < np.mean(one[other]) for other in others) for one in rows.values()]
        for rows in tables
    ]
    every = [one for own in won for one in own]
    told = " and ".join(f"{sum(own)} of {len(own)}" for own in won)
    return f"in {told}", graded(all(every), any(every))


def _table(title: str, found: dict[tuple[str, int], Any]) -> Table:
    rows = []
    for (kind, layers), one in found.items():
        cells = [shown(interval(one[form]), 4) for form in FORMS]
        known = " / ".join(f"{number:.2f}" for number in _PAPER[kind, layers])
        rows.append((kind, str(layers), f"{one['variance']:.2f}", *cells, known))
    columns = ("variance of the log-odds", *FORMS, "paper: linear / GAM / SLALOM")
    return Table(title, ("model", "layers", *columns), rows)


def _draw(found: dict[tuple[str, int], Any]) -> Figure:
    figure, (axes,) = panels((11.0, 3.6), 1, len(KINDS), sharey=True)
    for place, (kind, own) in enumerate(zip(KINDS, axes, strict=True)):
        depths = [layers for one, layers in found if one == kind]
        for number, form in enumerate(FORMS):
            shares = [np.mean(found[kind, d][form]) / found[kind, d]["variance"] for d in depths]
            own.bar(np.arange(len(depths)) + 0.17 * (number - 2), shares, 0.15, label=form)
        own.set_xticks(range(len(depths)), [str(depth) for depth in depths])
        own.set_title(kind, loc="left", fontsize=10)
        own.set_xlabel("layers")
        if place == 0:
            own.set_ylabel("error, of the variance")
            handles = own.get_legend_handles_labels()[0]
            figure.legend(
                handles=handles,
                loc="outside upper right",
                ncols=len(FORMS),
                frameon=False,
                fontsize=8,
            )
    return figure


STUDY = Surrogates()
