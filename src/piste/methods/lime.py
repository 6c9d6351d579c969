"""LIME: a weighted linear model around the input (Ribeiro et al., 2016), by the library lime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from piste.errors import PisteError
from piste.methods.additive import AdditiveScores, CoalitionMethod
from piste.methods.base import Task
from piste.methods.conversation import Game
from piste.types import Floats


@dataclass(frozen=True)
class LimeMethod(CoalitionMethod):
    """Random removals, ridge regression, weights √e^{−(100 d)²/width²} of the cosine distance d.

    The library sees a text whose words are the units, so every unit is removed by itself;
    sampling, kernel and regression are its own.
    """

    kernel_width: float = 25.0

    name: ClassVar[str] = "lime"
    compared: ClassVar[bool] = True
    evaluated: ClassVar[bool] = True
    about: ClassVar[str] = "weights of a local linear model"
    paper: ClassVar[str] = "Ribeiro et al., KDD 2016"
    library: ClassVar[str] = "lime.lime_text"

    def __post_init__(self) -> None:
        super().__post_init__()
        width = self.kernel_width
        if isinstance(width, bool) or not isinstance(width, (int, float)) or not width > 0:
            raise PisteError(f"kernel_width: expected a number above 0, got {width!r}.")

    def explore(self, game: Game, task: Task, budget: int) -> AdditiveScores:
        from lime import lime_text

        n = len(task.subject)
        places = {f"u{unit}": unit for unit in range(n)}

        def answer(texts: list[str]) -> Floats:
            kept = np.zeros((len(texts), n), dtype=bool)
            for row, text in zip(kept, texts, strict=True):
                row[[places[word] for word in text.split()]] = True
            numbers = game(kept)
            # lime reads one column per class; a single number is a column of its own.
            return numbers if numbers.ndim == 2 else numbers[:, None]

        classes = len(task.target.labels) if task.target.kind == "all" else 1
        explainer = lime_text.LimeTextExplainer(
            kernel_width=self.kernel_width,
            split_expression=str.split,
            random_state=np.random.RandomState(np.random.randint(2**31)),
        )
        found: Any = explainer.explain_instance(
            " ".join(places),
            answer,
            labels=tuple(range(classes)),
            num_features=n,
            num_samples=budget + 1,  # the whole text is the first
        )
        scores = np.zeros((n, classes))
        for label in range(classes):
            for unit, weight in found.local_exp[label]:
                scores[places[found.domain_mapper.indexed_string.word(unit)], label] = weight
        base = np.array([float(found.intercept[label]) for label in range(classes)])
        if task.target.kind == "all":
            return AdditiveScores(scores, base, {})
        return AdditiveScores(scores[:, 0], base[0], {})
