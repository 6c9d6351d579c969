"""A model that has the same layers and knows nothing: the control of sanity checks."""

from __future__ import annotations

import copy
from weakref import WeakKeyDictionary

import torch
from torch import nn

from piste.classifiers import Classifier
from piste.classifiers.backends.weight_sharing import linear_weight
from piste.classifiers.text.classifier import TextClassifier

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
