"""States, attention and gradients are the model's own, alone and in company."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste import PisteError
from piste.concepts.states import StateBatch, StateReader
from piste.target import Target
from tests.classifiers import images
from tests.conftest import FAMILIES, SENTENCES, TEXT, build

FIRST = Target("output", "first", (0,))
KNOWN = [name for name in FAMILIES if name != "xlnet"]


def family_of(name: str, request: pytest.FixtureRequest) -> Any:
    kind, config, tokenizer = FAMILIES[name]
    return piste.load(build(kind, **config), request.getfixturevalue(tokenizer))


def read(classifier: Any, texts: list[str], layers: list[int]) -> list[StateBatch]:
    reader = StateReader(classifier, [FIRST, Target("output", "second", (1,))])
    return list(reader.read([classifier.subject(text) for text in texts], layers))


@pytest.mark.parametrize("name", KNOWN)
def test_they_are_what_the_model_computes(name: str, request: pytest.FixtureRequest) -> None:
    classifier = family_of(name, request)
    (seen,) = read(classifier, [TEXT], [0, 1, 2])
    inputs = classifier.tensors(classifier.subject(TEXT))
    output = classifier.model(**inputs, output_hidden_states=True)
    for place in range(3):
        state = output.hidden_states[place]
        torch.testing.assert_close(seen.states[place], state.detach())
        for goal in (0, 1):
            (slope,) = torch.autograd.grad(output.logits[0, goal], state, retain_graph=True)
            torch.testing.assert_close(seen.gradients[goal][place], slope, atol=1e-5, rtol=1e-4)
    readers = np.flatnonzero(seen.readers[0]).tolist()
    last = seen.readers.shape[1] - 1
    assert readers == ([last] if FAMILIES[name][2] == "byte_pairs" else [0])


@pytest.mark.parametrize("name", ["bert", "gpt2-no-pad"])
def test_attention_is_that_of_the_block_that_reads_a_state(
    name: str, request: pytest.FixtureRequest
) -> None:
    classifier = family_of(name, request)
    (seen,) = read(classifier, [TEXT], [0, 1, 2])
    inputs = classifier.tensors(classifier.subject(TEXT))
    kind, config, _ = FAMILIES[name]
    model = build(kind, **config, attn_implementation="eager")
    attentions = model(**inputs, output_attentions=True).attentions
    reader = int(np.flatnonzero(seen.readers[0])[0])
    assert seen.attention is not None
    for block in (0, 1):
        own = attentions[block][0].mean(dim=0)[reader].detach()
        torch.testing.assert_close(seen.attention[block][0], own, atol=1e-5, rtol=1e-4)
    assert seen.attention[2][0, reader] == 1  # the head reads nothing else


@pytest.mark.parametrize("name", KNOWN)
def test_company_changes_nothing(name: str, request: pytest.FixtureRequest) -> None:
    """Texts of several lengths, two of each: some share a pass, none is padded."""
    classifier = family_of(name, request)
    texts = [*SENTENCES, *(" ".join(reversed(text.split(" "))) for text in SENTENCES)]
    together = read(classifier, texts, [1])
    assert sorted(number for seen in together for number in seen.numbers) == list(range(8))
    for seen in together:
        for row, number in enumerate(seen.numbers):
            (alone,) = read(classifier, [texts[number]], [1])
            tokens = len(classifier.subject(texts[number]).token_units)
            assert seen.states[0][row].shape[0] == tokens
            torch.testing.assert_close(
                seen.states[0][row], alone.states[0][0], atol=2e-5, rtol=1e-3
            )
            torch.testing.assert_close(
                seen.gradients[0][0][row], alone.gradients[0][0][0], atol=2e-5, rtol=1e-3
            )
            assert torch.equal(seen.readers[row], alone.readers[0])
            if seen.attention is not None and alone.attention is not None:
                torch.testing.assert_close(
                    seen.attention[0][row], alone.attention[0][0], atol=2e-5, rtol=1e-3
                )
                assert float(seen.attention[0][row].sum()) == pytest.approx(1, abs=1e-5)


def test_frozen_weights_have_gradients_too(request: pytest.FixtureRequest) -> None:
    classifier = family_of("bert", request)
    (free,) = read(classifier, [TEXT], [1])
    classifier.model.requires_grad_(False)
    (frozen,) = read(classifier, [TEXT], [1])
    torch.testing.assert_close(frozen.gradients[0][0], free.gradients[0][0])


def test_images(reader_of_images: Any) -> None:
    from piste.concepts import draw

    images = draw("red", (16, 16), count=3) + draw("blue", (40, 20), count=2)
    reader = StateReader(reader_of_images, [FIRST])
    (seen,) = reader.read([reader_of_images.subject(one) for one in images], [0, 1])
    assert seen.states[0].shape == (5, 17, 32)
    assert seen.readers.sum(dim=1).tolist() == [1] * 5
    assert (seen.token_units[0] >= 0).sum() == 16


@pytest.mark.parametrize("family", ["resnet", "swin"])
def test_models_without_a_state_per_patch_are_refused(family: str) -> None:
    classifier = images.loaded(family)
    reader = StateReader(classifier, [FIRST])
    with pytest.raises(PisteError, match="does not give one state per token"):
        reader.probe(classifier.subject(images.photo()))


@pytest.mark.parametrize("family", ["vit", "beit"])
def test_frozen_models_of_images_have_gradients_too(family: str) -> None:
    model = images.build(family).requires_grad_(False)
    classifier = piste.load(model, images.processor())
    reader = StateReader(classifier, [FIRST])
    (seen,) = reader.read([classifier.subject(images.photo())], [0, 1])
    assert all(float(slope.abs().max()) > 0 for slope in seen.gradients[0])
