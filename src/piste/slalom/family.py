"""The family as a function of its parameters: predictions and their exact Jacobian.

With W = Σ c_i w_i, Z' = Z − b and w = e^s, the derivatives are

    ∂Z/∂e_i = c_i w_i^γ / W^γ                         ∂Z/∂b = 1
    ∂Z/∂s_i = γ (c_i w_i^γ e_i / W^γ − Z' c_i w_i / W)
    ∂Z/∂γ   = Σ c_i w_i^γ e_i s_i / W^γ − Z' ln W     ∂Z/∂δ = 1 where both units are there

With a guide g, a number for every unit that its evidence is expected to follow, e_i = e'_i + β g_i:
the parameters are e'_i, how far a unit is from that, and β, for which

    ∂Z/∂β   = Σ c_i w_i^γ g_i / W^γ

and with the link t = tanh((Z − m)/k), ∂F/∂Z = 1 − t², ∂F/∂m = t²,
∂F/∂log k = k t − (Z − m)(1 − t²).
A question touches only the parameters of the units it holds, so the Jacobian is as sparse as the
questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from piste.slalom.surrogate import Background, Parameters, Saturation, Slalom
from piste.types import Flags, Floats, Ints

_STRAIGHT = 50.0
"""Logarithm of a reach that is as good as none."""
MOST_DENSE = 900
"""Parameters up to which the Jacobian is a table and linear algebra is by factors."""


def is_large(types: int, outputs: int) -> bool:
    """Whether some form of so many types is no table: weighted ones have twice the parameters.

    Fits of all its forms are then compared by what is left out, and given more steps for that.

    >>> is_large(440, 1), is_large(450, 1), is_large(180, 4)
    (False, True, True)
    """
    shared = 16  # parameters that all types share, at most
    return types * (1 + outputs) + shared > MOST_DENSE


@dataclass(frozen=True)
class Form:
    """Which member of the family: ``mixing`` fixed or None if it is fitted, and what else."""

    mixing: float | None = None
    saturation: bool = False
    background: bool = False

    @property
    def name(self) -> str:
        """``additive``, ``mixed`` or ``softmax``, with what it has besides."""
        named = {0.0: "additive", 1.0: "softmax"}
        name = "mixed" if self.mixing is None else named.get(self.mixing, f"mixing {self.mixing:g}")
        more = [
            word
            for word, there in (("background", self.background), ("saturation", self.saturation))
            if there
        ]
        return ", ".join([name, *more])

    @property
    def complexity(self) -> int:
        """Of two forms that are as likely, the one with less is preferred.

        Competing units are more than units that add up, a free mixing more than a fixed one.
        """
        return int(self.mixing != 0.0) + int(self.mixing is None) + 3 * self.background


class Layout:
    """Where each parameter stands in a vector: s, e (output by output), b, γ, background, β, δ,
    link.

    Nothing depends on the weights of an additive form (γ = 0), so it has no s. There is one δ for
    every pair of units that the fit is given, and β if it has a guide (one output only).
    """

    def __init__(
        self, types: int, outputs: int, form: Form, pairs: int = 0, guide: Floats | None = None
    ) -> None:
        self.types, self.outputs, self.form, self.guide = types, outputs, form, guide
        self.weighted = form.mixing != 0.0
        self.importances = slice(0, types if self.weighted else 0)
        place = self.importances.stop + types * outputs
        self.evidence = slice(self.importances.stop, place)
        self.base = slice(place, place + outputs)
        place += outputs
        self.mixing: int | None = None
        self.background: int | None = None
        self.guided: int | None = None
        self.link: int | None = None
        if form.mixing is None:
            self.mixing, place = place, place + 1
        if form.background:
            self.background, place = place, place + 1 + outputs
        if guide is not None:
            self.guided, place = place, place + 1
        self.pairs = slice(place, place + pairs)
        place += pairs
        if form.saturation:
            self.link, place = place, place + 2
        self.size = place

    def evidence_of(self, output: int) -> slice:
        start = self.evidence.start + self.types * output
        return slice(start, start + self.types)

    def evidence_at(self, theta: Floats, output: int = 0) -> Floats:
        """E of every type; further axes of theta are kept."""
        own = theta[self.evidence_of(output)]
        if self.guided is None or self.guide is None:
            return own
        return own + np.multiply.outer(self.guide, theta[self.guided])

    def log_weights(self, theta: Floats) -> Floats:
        """S of every type, 0 where the form has none; further axes of theta are kept."""
        if self.weighted:
            return theta[self.importances]
        return np.zeros((self.types, *theta.shape[1:]))

    def gamma(self, theta: Floats) -> float:
        if self.mixing is None:
            assert self.form.mixing is not None
            return self.form.mixing
        return float(theta[self.mixing])

    def slalom(self, theta: Floats, flat: bool) -> Slalom:
        """The surrogate that a parameter vector stands for, with Σ s = 0."""
        s = self.log_weights(theta)
        # A common factor of all weights changes nothing.
        shift = float(s.mean()) if self.types else 0.0
        evidence = np.stack([self.evidence_at(theta, k) for k in range(self.outputs)], axis=1)
        background, link = None, None
        if self.background is not None:
            own = theta[self.background + 1 : self.background + 1 + self.outputs]
            level = float(theta[self.background]) - shift
            background = Background(level, float(own[0]) if flat else own.copy())
        if self.link is not None:
            link = Saturation(
                float(theta[self.link]), float(np.exp(min(theta[self.link + 1], _STRAIGHT)))
            )
        base = theta[self.base]
        return Slalom(
            evidence[:, 0].copy() if flat else evidence.copy(),
            s - shift,
            self.gamma(theta),
            float(base[0]) if flat else base.copy(),
            background,
            link,
        )

    def parameters(self, points: Floats, known: Floats | None = None) -> Parameters:
        """The parameters that columns of ``points`` stand for, of one output.

        ``known`` marks the types the layout has, if it has not all of them.
        """
        importances, evidence = self.log_weights(points), self.evidence_at(points)
        if known is not None:
            every = np.zeros((2, len(known), points.shape[1]))
            every[0][known.astype(bool)], every[1][known.astype(bool)] = importances, evidence
            importances, evidence = every
        if self.mixing is None:
            assert self.form.mixing is not None
            mixing = np.full(points.shape[1], self.form.mixing)
        else:
            mixing = np.clip(points[self.mixing], 0.0, 1.0)
        background = link = None
        if self.background is not None:
            background = points[self.background], points[self.background + 1]
        if self.link is not None:
            link = points[self.link], np.exp(np.minimum(points[self.link + 1], _STRAIGHT))
        base = points[self.base][0]
        return Parameters(importances, evidence, mixing, base, background, link)


class Questions:
    """What was asked, as lists: of every entry its question, its type and its copies.

    ``together`` (questions × pairs) is 1 where a question holds both units of a pair. ``guide`` is
    a number for every type that its evidence is expected to follow.
    """

    def __init__(
        self, counts: Any, together: Floats | None = None, guide: Floats | None = None
    ) -> None:
        listed = sparse.csr_array(counts, dtype=np.float64)
        listed.sum_duplicates()
        listed.eliminate_zeros()
        self.count, self.types = listed.shape
        self.column: Ints = listed.indices.astype(np.int64)
        self.copies: Floats = listed.data
        self.row: Ints = np.repeat(np.arange(self.count), np.diff(listed.indptr))
        self.sizes: Floats = self.sum(self.copies)
        self.together: Floats = np.zeros((self.count, 0)) if together is None else together
        self.guide = guide
        self.there: Flags = np.bincount(self.column, minlength=self.types) > 0
        """Types that some question holds."""

    def layout(self, outputs: int, form: Form) -> Layout:
        """Of the parameters of a form."""
        return Layout(self.types, outputs, form, self.together.shape[1], self.guide)

    def sum(self, entries: Floats) -> Floats:
        """Sums over the entries of every question."""
        return np.asarray(np.bincount(self.row, entries, self.count), dtype=np.float64)


class Point:
    """Predictions (questions × outputs) for one parameter vector, and their Jacobian."""

    def __init__(self, asked: Questions, layout: Layout, theta: Floats) -> None:
        self.asked, self.layout, self.theta = asked, layout, theta
        self.gamma = layout.gamma(theta)
        s = layout.log_weights(theta)
        self.weights = asked.copies * np.exp(s)[asked.column]
        self.parts = asked.copies * np.exp(self.gamma * s)[asked.column]
        total = asked.sum(self.weights)
        extra: Floats | float = 0.0
        if layout.background is not None:
            level = float(theta[layout.background])
            own = theta[layout.background + 1 : layout.background + 1 + layout.outputs]
            total = total + np.exp(level)
            extra = np.exp(self.gamma * level) * own
        self.total = np.where(total > 0, total, 1.0)
        self.share = self.total**-self.gamma
        self.own = [layout.evidence_at(theta, k)[asked.column] for k in range(layout.outputs)]
        tops = [asked.sum(self.parts * own) for own in self.own]
        self.gathered = (np.stack(tops, axis=1) + extra) * self.share[:, None]
        self.evidence = theta[layout.base] + self.gathered
        if asked.together.shape[1]:
            self.evidence = self.evidence + (asked.together @ theta[layout.pairs])[:, None]
        self.predicted, self.slope = self.evidence, np.ones_like(self.evidence)
        if layout.link is not None:
            self.middle = theta[layout.link]
            self.reach = np.exp(min(theta[layout.link + 1], _STRAIGHT))
            self.turned = np.tanh((self.evidence - self.middle) / self.reach)
            self.predicted = self.middle + self.reach * self.turned
            self.slope = 1.0 - self.turned**2

    def jacobian(self) -> Any:
        """Derivatives of all predictions, output by output: a table, or sparse if it is large."""
        blocks = [self._block(output) for output in range(self.layout.outputs)]
        if len(blocks) == 1:
            return blocks[0]
        if isinstance(blocks[0], np.ndarray):
            return np.concatenate(blocks)
        return sparse.csr_array(sparse.vstack(blocks, format="csr"))

    def _block(self, output: int) -> Any:
        asked, layout = self.asked, self.layout
        slope = self.slope[:, output]
        at_row = slope[asked.row]
        by_evidence = self.parts * self.share[asked.row]
        pull = (self.gathered[:, output] / self.total)[asked.row] * self.weights
        by_importance = self.gamma * (by_evidence * self.own[output] - pull) * at_row
        dense = self._globals(output) * slope[:, None]
        if layout.link is not None:
            dense[:, -2] = 1.0 - slope
            distance = self.evidence[:, output] - self.middle
            dense[:, -1] = self.reach * self.turned[:, output] - distance * slope
        columns = self._global_columns(output)
        if layout.size <= MOST_DENSE:
            table = np.zeros((asked.count, layout.size))
            if layout.weighted:
                table[asked.row, asked.column] = by_importance
            table[asked.row, layout.evidence_of(output).start + asked.column] = by_evidence * at_row
            table[:, columns] = dense
            return table
        every = np.arange(asked.count)
        parts = [
            (asked.row, layout.evidence_of(output).start + asked.column, by_evidence * at_row),
            (np.repeat(every, len(columns)), np.tile(columns, asked.count), dense.ravel()),
        ]
        if layout.weighted:
            parts.append((asked.row, asked.column, by_importance))
        rows, places, entries = (np.concatenate(one) for one in zip(*parts, strict=True))
        return sparse.csr_array((entries, (rows, places)), shape=(asked.count, layout.size))

    def _global_columns(self, output: int) -> Ints:
        layout = self.layout
        places = [layout.base.start + output]
        if layout.mixing is not None:
            places.append(layout.mixing)
        if layout.background is not None:
            places += [layout.background, layout.background + 1 + output]
        if layout.guided is not None:
            places.append(layout.guided)
        places += range(layout.pairs.start, layout.pairs.stop)
        if layout.link is not None:
            places += [layout.link, layout.link + 1]
        return np.array(places)

    def _globals(self, output: int) -> Floats:
        """∂Z by the parameters that all units share; columns for the link are still empty."""
        asked, layout, gathered = self.asked, self.layout, self.gathered[:, output]
        columns = [np.ones(asked.count)]
        logs = layout.log_weights(self.theta)[asked.column]
        level = own = 0.0
        if layout.background is not None:
            level = float(self.theta[layout.background])
            own = float(self.theta[layout.background + 1 + output])
        mass = np.exp(self.gamma * level) * self.share
        if layout.mixing is not None:
            turned = asked.sum(self.parts * self.own[output] * logs) * self.share
            columns.append(turned + mass * own * level - gathered * np.log(self.total))
        if layout.background is not None:
            pull = gathered * np.exp(level) / self.total
            columns += [self.gamma * (mass * own - pull), mass]
        if layout.guide is not None:
            columns.append(asked.sum(self.parts * layout.guide[asked.column]) * self.share)
        columns += list(asked.together.T)
        if layout.link is not None:
            columns += [np.zeros(asked.count)] * 2
        return np.stack(columns, axis=1)
