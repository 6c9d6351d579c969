"""Metrics that explain again: with other seeds, of an equal text, of a model without knowledge."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import nn

from piste.classifiers import Classifier
from piste.classifiers.base import linear_weight
from piste.classifiers.text.classifier import TextClassifier
from piste.errors import PisteError
from piste.evaluation.metrics.base import Figure, ReexplainingMetric, RepeatableExplanation, derive
from piste.evaluation.metrics.ranking import agreement, rank_agreement, top_overlap
from piste.evaluation.paraphrases import Paraphrase, swap
from piste.explanation import Explanation
from piste.image import ImageInput
from piste.subject import Input
from piste.validation import check_count


@dataclass(frozen=True)
class Stability(ReexplainingMetric):
    """The same text explained with ``repeats`` other seeds, every pair of them compared.

    Spearman and Pearson correlation of the scores, and the share of the five strongest units
    (by |score|) they have in common; means over all pairs. Methods without chance give 1.
    """

    repeats: int = 2

    name: ClassVar[str] = "stability"
    about: ClassVar[str] = "whether another seed gives the same scores"
    figures = (
        Figure(
            "stability",
            "higher",
            title="stability",
            skill="ranking the units alike with every seed",
            about="rank correlation of the scores between runs that differ in their seed only",
        ),
        Figure(
            "stability_pearson",
            "higher",
            title="stability of scores",
            skill="giving the same scores with every seed",
            about="correlation of the scores between runs that differ in their seed only",
        ),
        Figure(
            "stability_top5",
            "higher",
            title="stability of the top five",
            skill="naming the same five units with every seed",
            about="share of the five strongest units that two runs with different seeds have in "
            "common",
        ),
    )

    def __post_init__(self) -> None:
        check_count("repeats", self.repeats)

    def reexplain(self, first: RepeatableExplanation) -> list[Explanation]:
        return [first.again(seed=derive(first.seed, n)) for n in range(1, self.repeats + 1)]

    def compare(
        self, first: Explanation, others: Sequence[Explanation], score: str | None
    ) -> dict[str, float]:
        made = (first, *others)
        pairs = list(combinations([one.score(score) for one in made], 2))
        sizes = list(combinations([one.size(score) for one in made], 2))
        return {
            "stability": _mean([rank_agreement(a, b) for a, b in pairs]),
            "stability_pearson": _mean([agreement(a, b) for a, b in pairs]),
            "stability_top5": _mean([top_overlap(a, b) for a, b in sizes]),
        }


@dataclass(frozen=True)
class EqualInputs(ReexplainingMetric):
    """The same meaning in other words (``don't`` for ``do not``, ``film`` for ``movie`` …).

    Spearman correlation of the scores over the units that both texts have, explained for the same
    class with the same seed. Where no word can be exchanged, a blank is doubled, which some
    models read and others don't; NaN where that makes no difference to the model.
    """

    name: ClassVar[str] = "equal_inputs"
    about: ClassVar[str] = "whether a text of the same meaning gets the same scores"
    figures = (
        Figure(
            "equal_inputs",
            "higher",
            title="equal inputs",
            skill="ranking equal texts alike",
            about="rank correlation of the scores with those of a text that means the same to the "
            "model",
        ),
    )

    def reexplain(self, first: RepeatableExplanation) -> list[Explanation]:
        given = first.explanation.input
        swapped = _swapped(given)
        if not any(one.edits for one in swapped):
            return []
        if isinstance(given, str):
            return [first.again(input=swapped[0].text)]
        return [first.again(input=(swapped[0].text, swapped[1].text))]

    def compare(
        self, first: Explanation, others: Sequence[Explanation], score: str | None
    ) -> dict[str, float]:
        if not others:
            return {"equal_inputs": math.nan}
        (other,) = others
        words = [[unit.text for unit in one.units] for one in (first, other)]
        if words[0] == words[1] and first.output.logits == other.output.logits:
            return {"equal_inputs": math.nan}  # the doubled blank was not read: nothing was asked
        places = {(unit.segment, unit.start, unit.end): n for n, unit in enumerate(other.units)}
        swapped = _swapped(first.input)
        here, there = [], []
        for number, unit in enumerate(first.units):
            moved = swapped[unit.segment].moved(unit.start, unit.end)
            if moved is not None and (unit.segment, *moved) in places:
                here.append(number)
                there.append(places[(unit.segment, *moved)])
        if len(here) < 2:
            return {"equal_inputs": math.nan}
        shared = first.score(score)[here], other.score(score)[there]
        return {"equal_inputs": rank_agreement(*shared)}


@dataclass(frozen=True)
class Sanity(ReexplainingMetric):
    """The same text explained in a model whose weights were shuffled (Adebayo et al., 2018).

    Every weight of its linear and embedding layers gets another place within its layer, so the
    layers are what they were and know nothing. The size of the Spearman correlation of |score|
    between the two explanations: near 0 is right, near 1 says that the explanation shows the
    text and not the model. White boxes only, else NaN.
    """

    seed: int = 0

    name: ClassVar[str] = "sanity"
    about: ClassVar[str] = "whether the scores change when the model's weights are shuffled"
    figures = (
        Figure(
            "sanity",
            "lower",
            title="sanity",
            skill="depending on what the model learned",
            about="rank correlation of the scores' sizes with those for a model whose weights were "
            "shuffled",
        ),
    )

    def __post_init__(self) -> None:
        check_count("seed", self.seed, least=0)

    def reexplain(self, first: RepeatableExplanation) -> list[Explanation]:
        shuffled = randomised(first.classifier, self.seed)
        return [] if shuffled is None else [first.again(classifier=shuffled)]

    def compare(
        self, first: Explanation, others: Sequence[Explanation], score: str | None
    ) -> dict[str, float]:
        if not others:
            return {"sanity": math.nan}
        return {"sanity": abs(rank_agreement(first.size(score), others[0].size(score)))}


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _swapped(given: Input) -> tuple[Paraphrase, ...]:
    if isinstance(given, ImageInput):
        raise PisteError("Expected a text, whose words can be exchanged, got an image.")
    return tuple(swap(text) for text in ((given,) if isinstance(given, str) else given))


# One copy per classifier: every example of a run is explained in the same one.
_KNOWN: WeakKeyDictionary[Classifier, dict[int, TextClassifier]] = WeakKeyDictionary()


def randomised(classifier: Classifier, seed: int = 0) -> TextClassifier | None:
    """The classifier around a copy of its model with shuffled weights; None of a black box.

    The entries of every weight matrix of linear and embedding layers change places within it, so
    their distribution stays; biases and norms are left alone. The user's model is not touched.
    """
    if not isinstance(classifier, TextClassifier):
        return None
    found = _KNOWN.setdefault(classifier, {})
    if seed not in found:
        stranger = TextClassifier(
            shuffled(classifier.model, seed),
            classifier.tokenizer,
            name=f"{classifier.name} with shuffled weights",
            budget=classifier.budget,
        )
        stranger.labels, stranger.kind = classifier.labels, classifier.kind
        found[seed] = stranger
    return found[seed]


def shuffled(model: nn.Module, seed: int) -> nn.Module:
    """A deep copy whose linear and embedding weights changed places; shared ones only once."""
    twin = copy.deepcopy(model).eval()
    generator = torch.Generator().manual_seed(seed)
    done: set[int] = set()
    with torch.no_grad():
        for part in twin.modules():
            known = linear_weight(part) is not None or isinstance(part, nn.Embedding)
            weight = getattr(part, "weight", None) if known else None
            if weight is None or id(weight) in done:
                continue
            done.add(id(weight))
            order = torch.randperm(weight.numel(), generator=generator).to(weight.device)
            weight.copy_(weight.reshape(-1)[order].reshape(weight.shape))
    return twin
