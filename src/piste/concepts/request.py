"""What the user chose, brought into one shape: classes, concepts, negatives, layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from piste.classifiers import Classifier
from piste.concepts.examples import (
    CONTROLS,
    LEAST,
    Source,
    check_count,
    distinct,
    examples_of,
)
from piste.concepts.shipped_concepts import shipped
from piste.errors import PisteError, shorten
from piste.image import ImageInput
from piste.target import Target, resolve

TargetClass: TypeAlias = int | str
Data: TypeAlias = "Source | Mapping[TargetClass, Source]"
Concepts: TypeAlias = "Mapping[str, Source] | Sequence[str]"
Number: TypeAlias = Literal["logit", "log-odds"]
NUMBERS: tuple[str, ...] = ("logit", "log-odds")
Size: TypeAlias = Callable[[], tuple[int, int]]

_FEW_LAYERS = 6


@dataclass(frozen=True)
class ClassExamples:
    """A class, the number of it that is differentiated, and examples of it."""

    name: str
    goal: Target
    inputs: list[Any]

    @property
    def title(self) -> str:
        """As errors name it."""
        return f"The data of {self.name!r}"


def read_classes(
    classifier: Classifier,
    data: Data,
    target: TargetClass | Sequence[TargetClass] | None,
    number: Number,
    repeated: Counter[str],
) -> list[ClassExamples]:
    """Every class with its examples; one list of examples serves all classes that are named.

    ``repeated`` counts examples that were left out, here and below.
    """
    if isinstance(data, Mapping):
        if target is not None:
            raise PisteError(
                "Classes were given twice, as the keys of the data and as target: leave target out."
            )
        pairs = list(data.items())
    elif target is None:
        listed = ", ".join(repr(label) for label in classifier.labels[:20])
        raise PisteError(f"No class was named: choose target from {listed}.")
    else:
        several: Any = target if isinstance(target, (list, tuple)) else [target]
        pairs = [(one, data) for one in several]
    if not pairs:
        raise PisteError("No class was named: give at least one.")
    found: list[ClassExamples] = []
    read: dict[int, list[Any]] = {}
    for choice, source in pairs:
        goal = goal_of(classifier, choice, number)
        name = classifier.labels[goal.indices[0]]
        if any(one.name == name for one in found):
            raise PisteError(f"The class {name!r} was named twice.")
        if id(source) not in read:  # one list serves several classes
            every = examples_of(source, classifier.reads, _no_size)
            read[id(source)] = _checked(f"The data of {name!r}", every, repeated)
        found.append(ClassExamples(name, goal, read[id(source)]))
    return found


def goal_of(classifier: Classifier, choice: TargetClass, number: Number) -> Target:
    """The number of a class that is differentiated; a class that isn't there is refused."""
    if not isinstance(choice, (str, int, np.integer)) or isinstance(choice, bool):
        raise PisteError(f"Expected a class by name or number, got {shorten(choice)}.")
    labels = classifier.labels
    found = resolve(choice, np.zeros(len(labels)), labels, classifier.kind)
    if len(found.indices) != 1:
        raise PisteError(f"Expected one class, got {choice!r}: name it alone.")
    if number == "log-odds":
        return found
    index = found.indices[0]
    return Target("output", f"logit of {labels[index]!r}", (index,), labels)


def _no_size() -> tuple[int, int]:
    raise PisteError(
        "The data must be real images: shipped ones are drawn at the size of the data."
    )


def input_size(classifier: Classifier, input: Any) -> Size:
    """How large the model sees an image, found out when it is asked for."""

    def size() -> tuple[int, int]:
        seen = classifier.subject(input).input
        assert isinstance(seen, ImageInput)
        return seen.width, seen.height

    return size


def read_sets(
    classifier: Classifier, concepts: Concepts, size: Size, seed: int, repeated: Counter[str]
) -> dict[str, list[Any]]:
    """The examples of every concept by its name."""
    if isinstance(concepts, str):
        concepts = [concepts]
    if not isinstance(concepts, Mapping):
        concepts = {name: name for name in concepts}
    if not concepts:
        raise PisteError(
            f"No concept was given: name some with their examples, or shipped ones, of "
            f"{', '.join(shipped(classifier.reads))}."
        )
    found = {}
    for name, source in concepts.items():
        if not isinstance(name, str) or not name.strip():
            raise PisteError(f"Expected a name of a concept, got {shorten(name)}.")
        every = examples_of(source, classifier.reads, size, seed=seed)
        found[name] = _checked(f"The concept {name!r}", every, repeated)
    return found


def read_negatives(
    classifier: Classifier,
    negatives: Source | None,
    sets: Mapping[str, Any],
    size: Size,
    seed: int,
    repeated: Counter[str],
) -> list[Any] | None:
    """What concepts are told from; None if from each other."""
    if negatives is None and len(sets) > 1:
        return None
    if negatives is None:
        negatives = CONTROLS[classifier.reads]
        if negatives in sets:
            raise PisteError(
                f"{negatives!r} is what a single concept is told from: give another concept, or "
                "negatives of your own."
            )
    every = examples_of(negatives, classifier.reads, size, seed=seed)
    # Random sets are drawn from it, and told from the rest of it.
    return _checked("The set of negatives", every, repeated, 2 * LEAST)


def _checked(title: str, every: list[Any], repeated: Counter[str], least: int = LEAST) -> list[Any]:
    """All different examples, if there are enough."""
    found = distinct(every)
    if len(found) < len(every):
        repeated[title] += len(every) - len(found)
    check_count(title, found, least)
    return found


def read_layers(layers: Sequence[int] | None, depth: int) -> list[int]:
    """Which layers to look at, in order.

    >>> read_layers(None, 12), read_layers([2, 0], 2)
    ([2, 4, 6, 8, 10, 12], [0, 2])
    """
    if layers is None:
        few = min(depth, _FEW_LAYERS)
        return [round(depth * (place + 1) / few) for place in range(few)]
    if isinstance(layers, (str, int)) or not len(layers):
        raise PisteError(f"layers: expected a list of numbers, such as [1, 2], got {layers!r}.")
    for layer in layers:
        whole = isinstance(layer, (int, np.integer)) and not isinstance(layer, bool)
        if not whole or not 0 <= layer <= depth:
            raise PisteError(
                f"There is no layer {layer!r}: the model has 0 (its embeddings) to {depth}."
            )
    return sorted({int(layer) for layer in layers})
