"""Several explanations of one input, made comparable: shared units, scaled scores, verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from piste.comparison import VERDICTS, Comparison
from piste.errors import PisteError
from piste.evaluation.metrics import Figure
from piste.explanation import Explanation
from piste.show import labels, wording
from piste.show.labels import family
from piste.types import Floats
from piste.verification import Check

Verdicts = Mapping[str, Mapping[str, float]]

FIGURES: Mapping[str, Figure] = {
    "r2": Figure(
        "r2",
        "higher",
        title="R²",
        skill="predicting answers it was not fitted to",
        about="how well the explanation predicts the model on questions of its own that it was not "
        "fitted to, as it says where it stands alone: 1 is perfect, 0 no better than a constant",
    ),
    **VERDICTS,
}
"""What can be shown of a method: its own R², and what was measured by the same questions."""
SCALED = "Every method's scores are divided by its largest, because their units differ."


@dataclass(frozen=True)
class SideBySide:
    """Explanations with the same units, and what was measured of them."""

    explanations: tuple[Explanation, ...]
    verdicts: Verdicts
    kinds: list[wording.Kind]
    """Units with the same text and the same scores in every method, shown as one."""
    scaled: Floats
    """Methods × units: every method's ranking score over its largest |score|."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Methods that could not explain this classifier, with the reason."""
    checks: Sequence[Check] = ()
    """Removals the model was really asked about."""

    @staticmethod
    def of_comparison(comparison: Comparison) -> SideBySide:
        """The explanations of a comparison."""
        explained = list(comparison.explanations.values())
        return SideBySide.of(explained, comparison.verdicts, comparison.skipped, comparison.checks)

    @staticmethod
    def of(
        explanations: Sequence[Explanation],
        verdicts: Verdicts,
        skipped: Mapping[str, str] | None = None,
        checks: Sequence[Check] = (),
    ) -> SideBySide:
        """Check that the explanations can stand side by side, and scale their scores."""
        given = tuple(explanations)
        if not given:
            raise PisteError("There is nothing to compare: give at least one explanation.")
        first = given[0]
        for other in given[1:]:
            if other.input != first.input or other.units != first.units:
                raise PisteError(
                    f"{other.method} explains another input, or other units of it, than "
                    f"{first.method}: only explanations of the same can stand side by side."
                )
        scores = np.array([e.score() for e in given])
        largest = np.nanmax(np.abs(np.nan_to_num(scores, posinf=0, neginf=0)), axis=1)
        scaled = scores / np.where(largest > 0, largest, 1.0)[:, None]
        kinds = wording.grouped(first.units, list(scores))
        return SideBySide(given, verdicts, kinds, scaled, dict(skipped or {}), checks)

    @property
    def first(self) -> Explanation:
        return self.explanations[0]

    @property
    def methods(self) -> list[str]:
        return [e.method for e in self.explanations]

    @property
    def caution(self) -> str:
        """Why the verdict is no more than one case."""
        if wording.of_image(self.first):
            return "One image proves little: measure many."
        return "One text proves little: measure many with “piste evaluate”."

    @property
    def left_out(self) -> list[str]:
        """A sentence for every method that could not explain this classifier."""
        return [f"Left out: {name}. {reason}" for name, reason in self.skipped.items()]

    def strongest(self, most: int) -> list[int]:
        """Kinds by their mean strength over all methods that know the model (not controls)."""
        knowing = [family(method) != "control" for method in self.methods]
        rows = self.scaled[knowing] if any(knowing) else self.scaled
        strength = np.nan_to_num(np.abs(rows), posinf=0.0).mean(axis=0)
        order = wording.by_size(strength[[kind.first for kind in self.kinds]])
        return order[:most]

    def figure(self, method: str, name: str) -> float:
        """A figure of a method, NaN where it wasn't measured."""
        if name == "r2":
            return float(self.explanations[self.methods.index(method)].fidelity.r2)
        value = self.verdicts.get(method, {}).get(name)
        return float("nan") if value is None else float(value)

    def column(self, name: str) -> dict[str, float]:
        """A figure of all methods."""
        return {method: self.figure(method, name) for method in self.methods}

    def known_figures(self) -> list[str]:
        """Figures that at least one method has; no second R² beside its own."""
        hidden = "r2_all" if self._removal_figure == "mse_all" else "r2"
        return [
            name
            for name in FIGURES
            if name != hidden and np.isfinite(list(self.column(name).values())).any()
        ]

    @property
    def _removal_figure(self) -> str:
        """What tells who predicts removals best; results of earlier versions have R² alone."""
        measured = np.isfinite(list(self.column("mse_all").values())).any()
        return "mse_all" if measured else "r2_all"

    def best(self, name: str) -> list[str]:
        """The best methods in a figure; more than one if they look equal as they are shown.

        None in their own R², which no two methods measure by the same questions.
        """
        column = {m: value for m, value in self.column(name).items() if np.isfinite(value)}
        if not column or name == "r2":
            return []
        top = (max if FIGURES[name].better == "higher" else min)(column.values())
        rule = labels.places(name, column.values())
        shown = labels.shown(top, rule)
        return [m for m, value in column.items() if labels.shown(value, rule) == shown]

    def shown(self, method: str, name: str) -> str:
        """A figure of a method as text."""
        rule = labels.places(name, self.column(name).values())
        return labels.shown(self.figure(method, name), rule)

    def badge(self, e: Explanation) -> str:
        """How faithful one method is, in a few words."""
        parts = [
            f"{title} {self.shown(e.method, name)}"
            for name, title in (("r2", "R²"), ("aopc", "AOPC"))
            if np.isfinite(self.figure(e.method, name))
        ]
        return " · ".join(parts) or "faithfulness not measured"

    def verdict(self) -> str:
        """Who is most faithful here, in a sentence or two, and that one text proves little."""
        if len(self.explanations) == 1:
            return f"Only one method was asked, so there is nothing to compare. {self.caution}"
        removal = self._removal_figure
        skills = {
            removal: ("predicting removals", "error" if removal == "mse_all" else "R²"),
            "aopc": ("finding what the answer hangs on", "AOPC"),
        }
        winners = {name: best for name in skills if (best := self.best(name))}
        if not winners:
            return "Faithfulness was not measured, so no method can be called better."
        at = [
            f"at {skills[name][0]} ({skills[name][1]} {self.shown(best[0], name)})"
            for name, best in winners.items()
        ]
        firsts = list(winners.values())
        are = "is" if len(firsts[0]) == 1 else "are"
        if len(firsts) == 2 and firsts[0] == firsts[1]:
            said = f"{_names(firsts[0])} {are} the most faithful here: best {at[0]} and {at[1]}."
        else:
            more = f", {_names(firsts[1])} {at[1]}" if len(firsts) == 2 else ""
            said = f"Here {_names(firsts[0])} {are} best {at[0]}{more}."
        if removal in winners and self.figure(winners[removal][0], "r2_all") < 0.5:
            said += " But no method predicts removals well here."
        return f"{said} {self.caution}"


def _names(methods: Sequence[str]) -> str:
    named = [f"{m} (a control)" if family(m) == "control" else m for m in methods]
    return " and ".join([", ".join(named[:-1]), named[-1]]) if len(named) > 1 else named[0]
