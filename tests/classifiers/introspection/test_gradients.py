"""A look inside: the twin is the model, its gradients are right, and the model never notices."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste import PisteError
from piste.classifiers.introspection.gradients import GradientAccess
from piste.target import Target
from tests.conftest import FAMILIES, SMALL, TEXT, build

FIRST = Target("class", "first", (0,))
SCALING = {
    "gemma": SMALL | {"num_key_value_heads": 1, "head_dim": 8},  # multiplies what the layer gives
    "gemma3_text": SMALL | {"num_key_value_heads": 1, "head_dim": 8},  # its layer multiplies
}


def look(model: Any, tokenizer: Any, text: Any = TEXT, target: Target = FIRST) -> GradientAccess:
    classifier = piste.load(model, tokenizer)
    return classifier.gradient_access(classifier.subject(text), target)


def own_logits(classifier: Any, text: Any) -> np.ndarray:
    subject = classifier.subject(text)
    return subject.ask([subject.whole])


def test_its_own_embeddings_give_the_models_own_logits(family: tuple[str, Any, Any]) -> None:
    _, model, tokenizer = family
    inside = look(model, tokenizer)
    embeddings = inside.embed(inside.ids)
    with torch.no_grad():
        rows = inside.logits(embeddings.repeat(3, 1, 1))
    expected = own_logits(piste.load(model, tokenizer), TEXT)
    np.testing.assert_allclose(rows, expected.repeat(3, axis=0), atol=2e-5)
    assert inside.calls == 3
    moved = embeddings.clone()
    moved[:, 2] *= -1
    with torch.no_grad():
        assert not np.allclose(inside.logits(moved), expected, atol=1e-3)


@pytest.mark.parametrize("kind", SCALING)
def test_models_that_scale_their_embeddings(kind: str, byte_pairs: Any) -> None:
    model = build(kind, **SCALING[kind])
    inside = look(model, byte_pairs)
    with torch.no_grad():
        rows = inside.logits(inside.embed(inside.ids))
    np.testing.assert_allclose(rows, own_logits(piste.load(model, byte_pairs), TEXT), atol=2e-5)


@pytest.mark.parametrize("name", ["bert", "roberta", "xlnet", "gpt2-no-pad", "llama-no-pad", "opt"])
def test_gradients_agree_with_finite_differences(name: str, request: pytest.FixtureRequest) -> None:
    kind, config, tokenizer = FAMILIES[name]
    model = build(kind, **config).double()
    inside = look(model, request.getfixturevalue(tokenizer))
    start = inside.embed(inside.ids).requires_grad_()
    (slopes,) = torch.autograd.grad(inside.numbers(start).sum(), start)
    rng = np.random.default_rng(0)
    step = 1e-4  # some norms compute in single precision whatever the model's
    with torch.no_grad():
        for _ in range(5):
            way = torch.from_numpy(rng.normal(size=start.shape))
            up, down = inside.numbers(torch.cat([start + step * way, start - step * way]))
            expected = float((slopes * way).sum())
            assert float(up - down) / (2 * step) == pytest.approx(expected, rel=1e-3, abs=2e-3)


def test_tokens_are_summed_by_unit_and_fixed_ones_left_out(bert: Any) -> None:
    subject = bert.subject(("A slow start", "a wonderful ending"))
    inside = bert.gradient_access(subject, FIRST)
    tokens = np.arange(len(subject.token_units), dtype=float)
    sums = inside.per_unit(tokens)
    for unit in range(len(subject)):
        assert sums[unit] == tokens[subject.token_units == unit].sum()
    assert sums.sum() < tokens.sum()
    assert "token_type_ids" in inside.inputs
    np.testing.assert_array_equal(inside.per_unit(torch.from_numpy(tokens).bfloat16()), sums)


def test_the_model_never_notices(family: tuple[str, Any, Any]) -> None:
    _, model, tokenizer = family
    model = copy.deepcopy(model).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    config = model.config.to_dict()
    inside = look(model, tokenizer)
    assert inside.twin.training is False
    assert {id(p) for p in inside.twin.parameters()} == {id(p) for p in model.parameters()}
    inside.twin.config.pad_token_id = 17
    inside.numbers(inside.embed(inside.ids).requires_grad_()).sum().backward()
    model.zero_grad()
    assert model.training
    assert model.config.to_dict() == config
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


def test_the_hook_goes_even_after_a_failure(bert: Any) -> None:
    inside = bert.gradient_access(bert.subject(TEXT), FIRST)
    with pytest.raises(RuntimeError):
        inside.logits(torch.zeros(1, 3, 5))
    assert not inside.embedding._forward_hooks


def test_models_that_read_their_embeddings_twice_or_elsewhere_are_refused(
    bert: Any, wordpiece: Any
) -> None:
    inside = bert.gradient_access(bert.subject(TEXT), FIRST)
    once = inside.twin.forward
    inside.twin.forward = lambda **inputs: (once(**inputs), once(**inputs))[1]  # type: ignore[method-assign]
    with pytest.raises(PisteError, match=r"reads its input embeddings 2 times .* answers only"):
        inside.logits(inside.embed(inside.ids))
    config = {"vocab_size": 400, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1}
    model = build("t5", **config, num_heads=2, num_labels=3, decoder_start_token_id=0)
    model.config.eos_token_id = 3  # its head looks for that token
    inside = look(model, wordpiece, "A slow start and a wonderful ending")
    with pytest.raises(PisteError, match=r"reads its input embeddings \d times .* answers only"):
        inside.logits(inside.embed(inside.ids))


def test_as_many_rows_as_tokens_are_not_mistaken(request: pytest.FixtureRequest) -> None:
    for name in ("bert", "xlnet"):
        kind, config, tokenizer = FAMILIES[name]
        inside = look(build(kind, **config), request.getfixturevalue(tokenizer))
        embeddings = inside.embed(inside.ids)
        scales = torch.linspace(0.5, 1.5, embeddings.shape[1])[:, None, None]
        with torch.no_grad():
            together = inside.logits(scales * embeddings)
            alone = torch.cat([inside.logits(scale * embeddings) for scale in scales])
        np.testing.assert_allclose(together, alone, atol=2e-5)


def test_models_that_pad_the_text_or_write_into_embeddings(wordpiece: Any, byte_pairs: Any) -> None:
    padding = SMALL | {"max_position_embeddings": 66, "pad_token_id": 1, "attention_window": 8}
    writing = {"vocab_size": 400, "n_embd": 16, "n_layer": 2, "n_head": 2, "dff": 32}
    for model, tokenizer in (
        (build("longformer", **padding), wordpiece),
        (build("ctrl", **writing, num_labels=3), byte_pairs),
    ):
        inside = look(model, tokenizer)
        embeddings = inside.start.requires_grad_()
        logits = inside.logits(embeddings)
        own = piste.load(model, tokenizer).subject(TEXT)
        np.testing.assert_allclose(logits.detach(), own.ask([own.whole]), atol=1e-5)
        logits[0, 0].backward()
        assert embeddings.grad is not None
        assert (embeddings.grad.abs().sum(dim=2) > 0).all()


def test_models_without_embeddings_are_refused(bert: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(bert.model), "get_input_embeddings", lambda self: None)
    with pytest.raises(PisteError, match="no input embeddings"):
        bert.gradient_access(bert.subject(TEXT), FIRST)


def test_black_boxes_and_long_texts_are_refused(bert: Any) -> None:
    with pytest.raises(PisteError, match="only gives answers"):
        piste.explain(lambda texts: [len(t) for t in texts], TEXT, method="gradient")
    with pytest.raises(PisteError, match=r"one piece.*long='truncate'"):
        piste.explain(bert, " ".join([TEXT] * 9), method="gradient", long="windows")
    cut = piste.explain(bert, " ".join([TEXT] * 9), method="gradient", long="truncate")
    assert cut.settings["input"]["truncated_tokens"] > 0
