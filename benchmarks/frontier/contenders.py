"""Who takes part, with how many questions, and how each is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import piste
from benchmarks.frontier.libraries import Answer, Libraries
from benchmarks.panel.judging import Trial
from piste.classifiers.text.classifier import TextClassifier

OURS = "Piste"
PAPER = "Piste, the paper's form"
BUDGETS = (6, 15, 30, 60, 120, 250, 500, None, 1000, 2000)
"""Questions of Piste's default; None is what it takes itself."""
PEERS = (60, 250, 1000)
ENGINE, LIBRARY = "engine", "library"
"""Called through Piste, with its batches, or as the peer's users call it."""


@dataclass
class Input:
    """What is explained, and what judges the explanation."""

    classifier: Any
    given: Any
    trial: Trial

    @cached_property
    def libraries(self) -> Libraries:
        return Libraries(self.trial.subject, self.trial.target, self.trial.whole)

    def explained(self, **options: Any) -> Answer:
        e = piste.explain(self.classifier, self.given, long="truncate", **options)
        return Answer(lambda masks: np.asarray(e.predict(masks)), e.score(), e.calls)


@dataclass(frozen=True)
class Contender:
    """One explainer with one budget."""

    family: str
    way: str
    budget: int | None
    run: Callable[[Input], Answer]

    @property
    def name(self) -> str:
        return f"{self.family}, {self.way}, {self.budget or 'default'}"


def contenders(classifier: Any) -> Iterator[Contender]:
    """All that can explain this classifier, each family from the smallest budget to the largest.

    Libraries of texts are called directly only if there is a transformer that reads texts: a
    function costs nothing that batches could save, and a peer's own code for images is not here.
    """
    yield from _through_piste(OURS, {}, BUDGETS)
    yield from _through_piste(PAPER, {"form": "paper"}, PEERS)
    for family, method in SAMPLERS.items():
        yield from _through_piste(family, {"method": method}, PEERS)
    yield from _through_piste("AttnLRP", {"method": "attnlrp", "held_out": 0}, (None,))
    yield from _through_piste(
        "captum, gradient × input", {"method": "gradient_x_input", "held_out": 0}, (None,)
    )
    yield from _through_piste(
        "captum, integrated gradients",
        {"method": "integrated_gradients", "held_out": 0},
        (10, 50),
        "steps",
    )
    if isinstance(classifier, TextClassifier):
        for family, (run, budgets) in DIRECT.items():
            for budget in budgets:
                yield Contender(family, LIBRARY, budget, _direct(run, budget))


SAMPLERS = {
    "LIME": "lime",
    "Kernel SHAP": "kernel_shap",
    "Partition SHAP": "partition_shap",
    "Permutation SHAP": "permutation_shap",
    "ContextCite": "contextcite",
    "SPEX": "spex",
    "ProxySPEX": "proxyspex",
}
DIRECT: dict[str, tuple[Callable[[Libraries, int], Answer], tuple[int, ...]]] = {
    "published, short": (lambda own, calls: own.published(calls, "short"), (500, 2000)),
    "published, deletion": (lambda own, calls: own.published(calls, "deletion"), (500,)),
    "published, deletion, least squares": (
        lambda own, calls: own.published(calls, "deletion", least_squares=True),
        (500,),
    ),
    "LIME": (lambda own, calls: own.lime(calls), PEERS),
    "Kernel SHAP": (lambda own, calls: own.kernel_shap(calls), PEERS),
    "Partition SHAP": (lambda own, calls: own.partition_shap(calls), PEERS),
    "Permutation SHAP": (lambda own, calls: own.permutation_shap(calls), PEERS),
    "interpreto, Kernel SHAP": (lambda own, calls: own.interpreto(calls, "KernelShap"), PEERS[1:]),
    "interpreto, LIME": (lambda own, calls: own.interpreto(calls, "Lime"), PEERS[1:]),
    "captum, Kernel SHAP": (lambda own, calls: own.captum(calls, "KernelShap"), PEERS),
    "captum, integrated gradients": (
        lambda own, calls: own.captum(calls, "IntegratedGradients"),
        (10, 50),
    ),
    "captum, gradient × input": (lambda own, calls: own.captum(calls, "GradientXActivation"), (1,)),
}


def _through_piste(
    family: str, options: dict[str, Any], budgets: tuple[int | None, ...], named: str = "samples"
) -> Iterator[Contender]:
    for budget in budgets:
        more = {} if budget is None else {named: budget}
        yield Contender(family, ENGINE, budget, _explained(options | more))


def _explained(options: dict[str, Any]) -> Callable[[Input], Answer]:
    return lambda given: given.explained(**options)


def _direct(run: Callable[[Libraries, int], Answer], budget: int) -> Callable[[Input], Answer]:
    return lambda given: run(given.libraries, budget)
