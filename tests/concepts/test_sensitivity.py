"""Moved states: small steps are derivatives, large ones see what derivatives miss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste.concepts.sensitivity import move, reach
from piste.concepts.states import StateReader
from piste.concepts.vectors import FittedVectors, Rows
from piste.target import Target
from tests.classifiers import images
from tests.conftest import FAMILIES, SENTENCES, build

FIRST = Target("output", "first", (0,))
SECOND = Target("output", "second", (1,))
MOVABLE = [name for name in FAMILIES if name != "xlnet"]


def vectors(width: int, seed: int = 0) -> FittedVectors:
    """Two concepts with two vectors each, three random sets with two."""
    rng = np.random.default_rng(seed)
    every = rng.normal(size=(10, width))
    every /= np.linalg.norm(every, axis=1, keepdims=True)
    return FittedVectors(
        {"one": every[:2], "two": every[2:4]},
        {},
        every[4:].reshape(3, 2, width),
        np.empty(0),
    )


def check_small_steps(classifier: Any, inputs: list[Any], first: int = 0) -> None:
    subjects = [classifier.subject(given) for given in inputs]
    reader = StateReader(classifier, [FIRST, SECOND])
    depth = reader.probe(subjects[0])
    layers = list(range(first, depth + 1))
    slopes: dict[tuple[int, int, int], Any] = {}
    width = 0
    for seen in reader.read(subjects, layers):
        width = seen.states[0].shape[-1]
        for goal in range(2):
            for place in range(len(layers)):
                for row, number in enumerate(seen.numbers):
                    slopes[goal, place, number] = seen.gradients[goal][place][row].sum(dim=0)
    fitted = vectors(width)
    step = 1e-2
    found = move(
        reader, subjects, layers, [fitted] * len(layers), [step] * len(layers), lambda _: None
    )
    assert found is not None
    for (goal, place, number), slope in slopes.items():
        for name, directions in fitted.concepts.items():
            expected = 2 * step * (directions @ slope.double().numpy())
            got = found[goal][place].concepts[name][:, number]
            np.testing.assert_allclose(got, expected, rtol=0.1, atol=2e-4)
        expected = 2 * step * (fitted.random.mean(axis=1) @ slope.double().numpy())
        np.testing.assert_allclose(
            found[goal][place].random[:, 0, number], expected, rtol=0.1, atol=2e-4
        )


@pytest.mark.parametrize("name", MOVABLE)
def test_small_steps_are_derivatives(name: str, request: pytest.FixtureRequest) -> None:
    kind, config, tokenizer = FAMILIES[name]
    classifier = piste.load(build(kind, **config), request.getfixturevalue(tokenizer))
    # OPT adds positions to its embeddings by itself, so no module hands on the sum.
    check_small_steps(classifier, SENTENCES[:3], first=int(name == "opt"))


@pytest.mark.parametrize("family", ["vit", "deit", "dinov2-registers", "siglip", "beit"])
def test_small_steps_are_derivatives_in_images(family: str) -> None:
    check_small_steps(images.loaded(family), [images.photo(seed=seed) for seed in range(2)])


def test_the_reach_spans_both_sides() -> None:
    rng = np.random.default_rng(1)
    owners = np.repeat(np.arange(10), 4)
    ones, others = (rng.normal(scale=0.01, size=(40, 3)).astype(np.float32) for _ in range(2))
    ones[::4, 0] += 3.0  # one token of four has it
    fitted = FittedVectors({"one": np.array([[1.0, 0, 0]])}, {}, np.empty((0, 1, 3)), np.empty(0))
    assert reach([Rows(ones, owners), Rows(others, owners)], fitted) == pytest.approx(6, abs=0.1)


def test_nothing_is_left_in_the_model() -> None:
    classifier = images.loaded("vit")
    hooks = [len(module._forward_hooks) for module in classifier.model.modules()]
    weights = [tensor.clone() for tensor in classifier.model.state_dict().values()]
    reader = StateReader(classifier, [FIRST])
    subject = classifier.subject(images.photo())
    width = classifier.model.config.hidden_size
    move(reader, [subject], [1], [vectors(width)], [1.0], lambda _: None)
    assert hooks == [len(module._forward_hooks) for module in classifier.model.modules()]
    after = classifier.model.state_dict().values()
    assert all(torch.equal(one, other) for one, other in zip(weights, after, strict=True))
