"""Relevance propagation through a whole model: by hand with numpy, and in every family."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812  # as everyone calls it

import piste
from piste import PisteError
from piste.classifiers.introspection import relevance as relevance_module
from piste.methods import METHODS, options_of
from piste.methods.attnlrp import AttnLRP
from tests.classifiers.introspection.test_relevance import (
    Array,
    shared_out,
    softmax,
    through_linear,
    through_norm,
    through_product,
    through_softmax,
)
from tests.conftest import FAMILIES, GPT2, SMALL, TEXT, build

GATED = SMALL | {"num_key_value_heads": 1}


def relevance_by_hand(model: Any, ids: Array, label: int) -> Array:
    """One relevance per token of a BERT with one layer and two classes, every step by hand."""
    get = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    layer, width = "bert.encoder.layer.0.", model.config.hidden_size
    heads = model.config.num_attention_heads
    eps = model.config.layer_norm_eps

    def linear(name: str, x: Array) -> Array:
        return x @ get[f"{name}.weight"].T + get[f"{name}.bias"]

    def norm(name: str, x: Array) -> Array:
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
        return scaled * get[f"{name}.weight"] + get[f"{name}.bias"]

    words = get["bert.embeddings.word_embeddings.weight"][ids]
    places = get["bert.embeddings.position_embeddings.weight"][: len(ids)]
    e0 = words + places + get["bert.embeddings.token_type_embeddings.weight"][0]
    h0 = norm("bert.embeddings.LayerNorm", e0)
    names = {kind: f"{layer}attention.self.{kind}" for kind in ("query", "key", "value")}
    q, k, v = (linear(name, h0) for name in names.values())
    cuts = [slice(n * width // heads, (n + 1) * width // heads) for n in range(heads)]
    scale = (width // heads) ** -0.5
    scores = [q[:, cut] @ k[:, cut].T * scale for cut in cuts]
    mixed = np.concatenate([softmax(s) @ v[:, c] for s, c in zip(scores, cuts, strict=True)], 1)
    attended = linear(f"{layer}attention.output.dense", mixed)
    h1 = norm(f"{layer}attention.output.LayerNorm", attended + h0)
    inner = linear(f"{layer}intermediate.dense", h1)
    active = F.gelu(torch.from_numpy(inner)).numpy()
    fed = linear(f"{layer}output.dense", active)
    h2 = norm(f"{layer}output.LayerNorm", fed + h1)
    pooled = np.tanh(linear("bert.pooler.dense", h2[0]))
    logits = linear("classifier", pooled)

    # The explained number is logit_label − logit_other: both logits bring what they are worth.
    r = logits * np.where(np.arange(2) == label, 1.0, -1.0)
    r = through_linear(pooled, get["classifier.weight"], logits, r)
    first = linear("bert.pooler.dense", h2[0])  # tanh hands back what it got
    r_h2 = np.zeros_like(h2)
    r_h2[0] = through_linear(h2[0], get["bert.pooler.dense.weight"], first, r)
    weight = get[f"{layer}output.LayerNorm.weight"]
    r = through_norm(fed + h1, weight, eps, h2, r_h2)
    r_fed, r_h1 = shared_out(fed, fed + h1, r), shared_out(h1, fed + h1, r)
    r = through_linear(active, get[f"{layer}output.dense.weight"], fed, r_fed)  # gelu: identity
    r_h1 += through_linear(h1, get[f"{layer}intermediate.dense.weight"], inner, r)
    weight = get[f"{layer}attention.output.LayerNorm.weight"]
    r = through_norm(attended + h0, weight, eps, h1, r_h1)
    r_attended = shared_out(attended, attended + h0, r)
    r_h0 = shared_out(h0, attended + h0, r)
    weight = get[f"{layer}attention.output.dense.weight"]
    r_mixed = through_linear(mixed, weight, attended, r_attended)
    back = {kind: np.zeros_like(h0) for kind in names}
    for cut, score in zip(cuts, scores, strict=True):
        r_weights, back["value"][:, cut] = through_product(
            softmax(score), v[:, cut], r_mixed[:, cut]
        )
        r_scores = through_softmax(score, softmax(score), r_weights)
        back["query"][:, cut], across = through_product(q[:, cut], k[:, cut].T, r_scores)
        back["key"][:, cut] = across.T
    for (kind, name), out in zip(names.items(), (q, k, v), strict=True):
        r_h0 += through_linear(h0, get[f"{name}.weight"], out, back[kind])
    r = through_norm(e0, get["bert.embeddings.LayerNorm.weight"], eps, h0, r_h0)
    return shared_out(words, e0, r).sum(axis=-1)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_one_layer_of_attention_by_hand(wordpiece: Any, attention: str) -> None:
    config = FAMILIES["bert"][1] | {"num_hidden_layers": 1, "num_labels": 2}
    model = build("bert", **config, attn_implementation=attention).double()
    classifier = piste.load(model, wordpiece)
    subject = classifier.subject(TEXT)
    for label in (0, 1):
        e = piste.explain(classifier, TEXT, method="attnlrp", target=label, held_out=0)
        tokens = relevance_by_hand(model, np.array(wordpiece(TEXT)["input_ids"]), label)
        expected = [tokens[subject.token_units == unit].sum() for unit in range(len(subject))]
        np.testing.assert_allclose(e.score(), expected, rtol=1e-6, atol=1e-9)
    plain = piste.explain(classifier, TEXT, method="gradient_x_input", held_out=0)
    assert not np.allclose(plain.score(), e.score(), atol=1e-2)  # the rules do change something


def test_every_family_works_or_is_refused(family: tuple[str, Any, Any]) -> None:
    name, model, tokenizer = family
    classifier = piste.load(model, tokenizer)
    if name == "fnet":  # it mixes by Fourier transforms
        with pytest.raises(PisteError, match=r"no rule for relevance \(Fft.*choose another"):
            piste.explain(classifier, TEXT, method="attnlrp")
        return
    e = piste.explain(classifier, TEXT, method="attnlrp", target="all", held_out=0)
    assert np.abs(e.scores["attribution"]).max() > 1e-3
    np.testing.assert_allclose(e.scores["attribution"].sum(axis=1), 0, atol=1e-4)
    assert e.calls == 1 + 2 + 3  # the input; the model with and without rules; each class


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("gpt2", GPT2 | {"num_labels": 3}),
        ("llama", GATED),
        ("opt", FAMILIES["opt"][1]),
        ("gemma3_text", GATED | {"head_dim": 8}),
        (
            "distilbert",
            {"vocab_size": 400, "dim": 16, "n_layers": 2, "n_heads": 2, "num_labels": 3},
        ),
        ("modernbert", SMALL | {"local_attention": 8, "pad_token_id": 0}),
    ],
)
def test_the_way_attention_is_computed_makes_no_difference(
    kind: str, config: dict[str, Any], byte_pairs: Any
) -> None:
    fast, plain = (
        build(kind, **config, attn_implementation=attention) for attention in ("sdpa", "eager")
    )
    assert fast.config._attn_implementation == "sdpa"
    plain.load_state_dict(fast.state_dict())
    scores = [
        piste.explain(
            piste.load(model, byte_pairs), TEXT, method="attnlrp", target=0, held_out=0
        ).score()
        for model in (fast, plain)
    ]
    assert np.abs(scores[0]).max() > 1e-3
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-4 * np.abs(scores[0]).max())


@pytest.mark.slow  # the first use of such a kernel compiles it
def test_kernels_that_cannot_be_looked_into_are_exchanged_in_the_twin(byte_pairs: Any) -> None:
    scores = []
    for attention in ("flex_attention", "sdpa"):
        model = build("llama", **GATED, attn_implementation=attention)
        e = piste.explain(piste.load(model, byte_pairs), TEXT, method="attnlrp", held_out=0)
        assert model.config._attn_implementation == attention
        scores.append(e.score())
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)


def test_activations_are_followed_however_they_are_given(wordpiece: Any) -> None:
    def own_gelu(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1 + torch.erf(x / 2**0.5))

    named = build("bert", **FAMILIES["bert"][1], hidden_act="gelu")
    given = build("bert", **FAMILIES["bert"][1], hidden_act="gelu")
    for layer in given.bert.encoder.layer:
        layer.intermediate.intermediate_act_fn = None
        del layer.intermediate._modules["intermediate_act_fn"]
        layer.intermediate.intermediate_act_fn = own_gelu
    first, second = (
        piste.explain(piste.load(model, wordpiece), TEXT, method="attnlrp", held_out=0).score()
        for model in (named, given)
    )
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_a_model_whose_answer_the_rules_change_is_refused(
    bert: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from piste.classifiers.introspection import relevance

    broken = relevance._instead(lambda x, *_, **__: 2 * x)
    monkeypatch.setitem(relevance._RULES, "layer_norm", broken)
    with pytest.raises(PisteError, match="change the answer of BertForSequenceClassification"):
        piste.explain(bert, TEXT, method="attnlrp")


def test_the_users_model_stays_as_it_was(family: tuple[str, Any, Any]) -> None:
    name, model, tokenizer = family
    model = copy.deepcopy(model).train()
    seen = []
    model.base_model.register_forward_hook(lambda *_: seen.append(1))
    before = _state(model)
    if name == "fnet":
        with pytest.raises(PisteError):
            piste.explain(piste.load(model, tokenizer), TEXT, method="attnlrp")
    else:
        piste.explain(piste.load(model, tokenizer), TEXT, method="attnlrp")
    assert _state(model) == before
    assert seen


def _state(model: Any) -> Any:
    return (
        model.config.to_dict(),
        model.config._attn_implementation,
        [
            (
                type(module),
                module.training,
                "forward" in vars(module),
                len(module._forward_hooks),
                len(module._forward_pre_hooks),
                sorted(vars(module)),
            )
            for module in model.modules()
        ],
        [
            (id(p), p.requires_grad, p.grad is None, p.detach().double().sum().item())
            for p in model.parameters()
        ],
    )


@pytest.mark.parametrize("name", ["reviews", "reviews_gpt"])
def test_a_planted_word_comes_out_on_top(name: str, request: pytest.FixtureRequest) -> None:
    classifier = request.getfixturevalue(name)
    for word, label in (("wonderful", "positive"), ("awful", "negative")):
        text = f"We saw the film on a day in May, and I found it {word}, as I said before."
        e = piste.explain(classifier, text, method="attnlrp", target=label)
        assert e.units[int(np.argmax(e.score()))].text == word


def test_the_page_names_every_method_its_options_and_the_patent() -> None:
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
    for name, method in METHODS.items():
        assert f"`{name}`" in page
        told = [option for option in options_of(name) if f"`{option}" in page]
        assert name == "slalom" or told == options_of(name)
        assert method.paper.split(" et al")[0].split(" &")[0] in page
    for text in (page, AttnLRP.__doc__ or "", relevance_module.__doc__ or ""):
        assert "patented for commercial use" in text
