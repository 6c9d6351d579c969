"""Where in one input a class reacts to a concept: words of a text, patches of an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from piste.classifiers import load
from piste.concepts.report import ConceptReport
from piste.concepts.states import StateReader
from piste.errors import PisteError
from piste.subject import Input, Unit, UnitChoice
from piste.types import Floats
from piste.views import VIEWS

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType


@dataclass(frozen=True, eq=False)
class ConceptMap:
    """For every concept one number per unit: w_t d_t, summed over the unit's tokens.

    d_t = g_t · u says how the class's number changes when the state of token t moves along the
    concept, rescaled to the length of w; w_t how much the classification token looks there.
    Positive: more of the concept here would raise the class. It does not say that the concept is
    there.
    """

    input: Input
    units: tuple[Unit, ...]
    scores: Mapping[str, Floats]
    target: str
    layer: int
    kind: str
    """"attention", or "tokens" where the model's attention was not met."""
    notes: Mapping[str, Any]
    """What was done to the input."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", MappingProxyType(dict(self.scores)))

    def top(self, concept: str, count: int = 5) -> list[tuple[str, float]]:
        """The units that carry most of a concept, with their numbers."""
        if concept not in self.scores:
            raise PisteError(
                f"This map has no concept {concept!r}: it has {', '.join(self.scores)}."
            )
        scores = self.scores[concept]
        order = np.argsort(-np.abs(scores), kind="stable")[:count]
        return [(self.units[place].text, float(scores[place])) for place in order]

    def plot(self, path: str | Path | None = None) -> Figure:
        """Heat maps over an image, or a table of words and concepts."""
        return VIEWS["concept_map_plot"](self, path)

    def __rich__(self) -> RenderableType:
        return VIEWS["concept_map_terminal"](self)

    def _repr_html_(self) -> str:
        return VIEWS["concept_map_notebook"](self)

    def __repr__(self) -> str:
        return (
            f"<ConceptMap of {', '.join(self.scores)} for {self.target}, layer {self.layer}: "
            f"{len(self.units)} units>"
        )


def locate(
    classifier: Any,
    input: Any,
    report: ConceptReport,
    *,
    concepts: Sequence[str] | None = None,
    target: str | None = None,
    layer: int | None = None,
    units: UnitChoice = None,
) -> ConceptMap:
    """Which units of an input carry what a class's reaction to concepts is made of.

    ``concepts``, ``target`` and ``layer`` are chosen among those of the report: all concepts, the
    only class, the last layer that other tokens are still read in (behind the last block the head
    may read one token alone). Units are words, or patches.

    >>> import piste
    >>> from piste.concepts import sentences
    >>> report = piste.concepts.score(
    ...     "piste:reviews", sentences("acting"), ["praise", "price"],
    ...     target="positive", layers=[1], repeats=5,
    ... )
    >>> found = piste.concepts.locate("piste:reviews", "A dull but wonderful film", report)
    >>> len(found.scores["praise"]), found.layer
    (5, 1)
    """
    loaded = load(classifier)
    names = list(report.concepts) if concepts is None else list(concepts)
    for name in names:
        report.select(concept=name)  # refuses what isn't there
    goal = _goal(report, target)
    chosen = _layer(report, layer)
    if units is None and loaded.reads == "images":
        units = "patches"
    subject = loaded.subject(input, units=units, long="truncate")
    reader = StateReader(loaded, [report.goals[goal]])
    (seen,) = reader.read([subject], [chosen])
    slope, token_units = seen.gradients[0][0][0], seen.token_units[0]
    width = slope.shape[-1]
    weights = (
        torch.full_like(slope[:, 0], 1 / len(slope))
        if seen.attention is None
        else seen.attention[0][0]
    )
    scores = {}
    for name in names:
        vector = report.vectors[name][chosen]
        if len(vector) != width:
            raise PisteError(
                f"The report is of a model with states of {len(vector)} numbers, but this one has "
                f"{width}: take the model that the concepts were scored on."
            )
        along = slope @ torch.tensor(vector).to(slope)
        size = along.norm()
        along = along * weights.norm() / size if size > 0 else along
        products = (weights * along).cpu().double().numpy()
        real = token_units >= 0
        scores[name] = np.bincount(
            token_units[real], products[real], minlength=len(subject)
        ).astype(np.float64)
    return ConceptMap(
        input=subject.input,
        units=subject.units,
        scores=scores,
        target=report.targets[goal],
        layer=chosen,
        kind="tokens" if seen.attention is None else "attention",
        notes=dict(subject.notes),
    )


def _goal(report: ConceptReport, target: str | None) -> int:
    if target is None and len(report.targets) == 1:
        return 0
    if target not in report.targets:
        raise PisteError(
            f"The report has the classes {', '.join(report.targets)}: choose target among them, "
            f"not {target!r}."
        )
    return report.targets.index(target)


def _layer(report: ConceptReport, layer: int | None) -> int:
    if layer is None:
        inner = [one for one in report.layers if one < report.depth]
        return inner[-1] if inner else report.layers[-1]
    if layer not in report.layers:
        listed = ", ".join(map(str, report.layers))
        raise PisteError(f"The report has no layer {layer!r}: it has {listed}.")
    return layer
