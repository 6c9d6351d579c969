"""Attention Shapley values: fair shares in games played with attention (Eggen et al.)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from piste.classifiers.introspection.tracing import Trace
from piste.errors import PisteError
from piste.methods.attention_base import GRADIENTS, AttentionMethod, PerUnit, mean_map, rollout_map
from piste.methods.attention_games import AttentionGame, Present, cls_game, mutual_game
from piste.validation import choose

GAMES = ("cls", "mutual", "max_mutual")
MATRICES = ("mean", "rollout")


@dataclass(frozen=True)
class AttentionShapley(AttentionMethod):
    """Shapley values of units in a game whose worth is attention, exactly at any length.

    A is the attention between units, the mean over all layers and heads without special tokens;
    r is the token that the head of the model reads. A coalition S of units is worth

    ===========  ===================================================  ===========================
    game         v(S)                                                 φ_i
    ===========  ===================================================  ===========================
    cls          Σ_{i∈S} A_ri                                         A_ri
    mutual       A_ii for one unit, Σ_{i<j∈S} (A_ij + A_ji) for more  ½ Σ_{j≠i} w_ij + A_ii / n
                                                                      − Σ_{j≠i} A_jj / (n(n−1))
    max_mutual   the same with max(A_ij, A_ji)                        the same
    ===========  ===================================================  ===========================

    ``gradient`` multiplies every head's weights first: by nothing ("none"), by ReLU(∂f/∂A)
    ("relu"), or by ∂f/∂A ("signed", ours), which gives attributions that speak for the explained
    number or against it. ``matrix="rollout"`` (ours) takes attention rolled out over the layers for
    A; ``present`` (ours) makes r a player that every coalition has, which None does with signed
    gradients only, so that the authors' games stay theirs. The defaults are what ranked units best
    on average over five models (see ``docs/attention.md``).

    See :mod:`piste.methods.attention_games` for the games by themselves.

    >>> import piste
    >>> e = piste.explain(piste.load("piste:reviews"), "A fine film.", method="attention_shapley")
    >>> e.units[int(e.score().argmax())].text
    'fine'
    """

    game: str = "mutual"
    gradient: str | None = "signed"
    matrix: str = "mean"
    present: bool | None = None

    name: ClassVar[str] = "attention_shapley"
    about: ClassVar[str] = "fair shares of units in a game whose worth is attention"
    paper: ClassVar[str] = "Eggen et al., 2025"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gradient is None:  # what a command line makes of "none"
            object.__setattr__(self, "gradient", "none")
        choose("game", self.game, GAMES)
        choose("gradient", self.gradient, GRADIENTS)
        choose("matrix", self.matrix, MATRICES)
        if self.present is not None and not isinstance(self.present, bool):
            raise PisteError(f"present: expected True, False or None, got {self.present!r}.")
        if self.present and self.game == "cls":
            raise PisteError(
                "present=True changes nothing in the game 'cls', in which the classification "
                "token takes part anyway: choose game='mutual' or 'max_mutual'."
            )

    @property
    def score(self) -> str:  # type: ignore[override]  # an option says whether there are signs
        return "attribution" if self.gradient == "signed" else "sensitivity"

    @property
    def by_class(self) -> bool:
        return self.gradient != "none"

    @property
    def with_reader(self) -> bool:
        """Whether the reader is a player that every coalition has."""
        if self.game == "cls":
            return False
        return self.gradient == "signed" if self.present is None else self.present

    def weigh(self, trace: Trace) -> PerUnit:
        return self.play(trace).shapley(), {"present": self.with_reader}

    def play(self, trace: Trace) -> AttentionGame:
        """The game of one input."""
        gradient = self.gradient or "none"
        make = rollout_map if self.matrix == "rollout" else mean_map
        tokens = make(trace, gradient)
        row = trace.read(tokens)
        if self.game == "cls":
            return cls_game(trace.per_unit(row))
        between = trace.between_units(tokens)
        if not self.with_reader:
            return mutual_game(between, largest=self.game == "max_mutual")
        column = tokens[:, trace.readers].mean(axis=1)
        reader = Present(
            given=trace.per_unit(row),
            got=trace.mean_per_unit(column),
            own=float(row[trace.readers].mean()),
        )
        return mutual_game(between, largest=self.game == "max_mutual", present=reader)
