"""Figure 3: a transformer that learned from additive data says the same however often a word comes.

The paper's proposition 4.1: attention is a mean, so a text of one word repeated k times looks the
same to a transformer for every k (but for its positions). The log-odds of such texts are k times
the word's weight; no transformer can say so, whatever it learned from.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from piste.show.figures.canvas import panels
from studies.base import Findings, Study, Table, Work
from studies.synthetic import (
    ADDITIVE,
    KINDS,
    MOST_WORDS,
    SUM,
    Recipe,
    answers,
    by_model,
    draw_texts,
    train_additive,
)

WORD = "perfect"
_TEXTS = 400
_TRUE = ADDITIVE[WORD]


class Additive(Study):
    """Trained transformers, asked about one word repeated."""

    name: ClassVar[str] = "additive"
    title: ClassVar[str] = "Transformers that learned from additive data are not additive"

    def run(self, work: Work) -> Findings:
        """Train, ask, and compare with the true line."""
        found = by_model(work, self.measure)
        slopes = [_slope(one["repeated"]) for one in found.values()]
        return Findings(
            self.name,
            self.title,
            work.command(self.name),
            [_table(found)],
            [
                (
                    f'the output for "{WORD}" does not change with the number of repetitions, '
                    "where the true log-odds grow by 1.5 with each",
                    f"from 5 to {MOST_WORDS} repetitions it grows by "
                    f"{min(slopes):.3f} to {max(slopes):.3f} with each",
                    "holds" if max(np.abs(slopes)) < 0.1 * _TRUE else "holds in part",
                )
            ],
            {"repeated": lambda: _draw(found)},
        )

    def measure(self, recipe: Recipe, work: Work) -> dict[str, Any]:
        """Answers to repetitions, and how well it does on texts like those it learned from."""
        classifier = train_additive(recipe, work.models)
        repeated = answers(classifier, [" ".join([WORD] * k) for k in range(1, MOST_WORDS + 1)])
        rng = np.random.default_rng([work.seed, 1])
        drawn, texts = draw_texts(_TEXTS, rng)
        truth = SUM.truth(drawn)
        said = answers(classifier, texts)
        labels = rng.random(_TEXTS) < 1 / (1 + np.exp(-truth))
        return {
            "repeated": repeated.tolist(),
            "accuracy": float(np.mean((said > 0) == labels)),
            "best": float(np.mean((truth > 0) == labels)),
            "correlation": float(np.corrcoef(said, truth)[0, 1]),
        }


def _slope(repeated: list[float]) -> float:
    """Growth with each further repetition from the fifth on, by least squares."""
    numbers = np.array(repeated)[4:]
    return float(np.polyfit(np.arange(len(numbers)), numbers, 1)[0])


def _table(found: dict[tuple[str, int], Any]) -> Table:
    rows = [
        (
            kind,
            str(layers),
            f"{one['repeated'][0]:.2f}",
            f"{one['repeated'][-1]:.2f}",
            f"{_slope(one['repeated']):.3f}",
            f"{one['accuracy']:.3f}",
            f"{one['best']:.3f}",
            f"{one['correlation']:.3f}",
        )
        for (kind, layers), one in found.items()
    ]
    rows.append(
        ("the rule itself", "", f"{_TRUE:.2f}", f"{MOST_WORDS * _TRUE:.2f}", f"{_TRUE:.3f}", "",
         "", "1.000")
    )  # fmt: skip
    return Table(
        f'Log-odds of "{WORD}" repeated',
        (
            "model",
            "layers",
            "once",
            f"{MOST_WORDS} times",
            "growth",
            "accuracy",
            "best possible",
            "correlation with the rule",
        ),
        rows,
    )


def _draw(found: dict[tuple[str, int], Any]) -> Figure:
    figure, (axes,) = panels((11.0, 3.6), 1, len(KINDS), sharey=True)
    times = np.arange(1, MOST_WORDS + 1)
    for place, (kind, own) in enumerate(zip(KINDS, axes, strict=True)):
        own.plot(times, _TRUE * times, "--", color="#7a7a85", label="the rule")
        for layers in sorted({layers for _, layers in found}):
            own.plot(times, found[kind, layers]["repeated"], label=f"{layers} layers")
        own.set_title(kind, loc="left", fontsize=10)
        own.set_xlabel(f'times "{WORD}"')
        if place == 0:
            own.set_ylabel("log-odds")
            own.legend(frameon=False, fontsize=8)
    return figure


STUDY = Additive()
