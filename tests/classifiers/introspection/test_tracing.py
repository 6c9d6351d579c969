"""Attention of every family: the model's own weights, right gradients, and an untouched model."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste import PisteError
from piste.classifiers.introspection import attention_capture
from piste.classifiers.introspection.attention_capture import AttentionCapture
from piste.classifiers.introspection.tracing import Trace, trace, traces
from piste.target import Target
from tests.conftest import FAMILIES, GPT2, SMALL, TEXT, build

FIRST = Target("class", "first", (0,))
EVERY = Target("all", "all classes", labels=("a", "b", "c"))
SHARED = SMALL | {"num_key_value_heads": 1}
DISTIL = {"vocab_size": 400, "dim": 16, "hidden_dim": 32, "n_layers": 2, "n_heads": 2}
LAYERS = SMALL | {"embedding_size": 16}
GPT_OSS = {"head_dim": 8, "num_local_experts": 4}
KINDS = ["sliding_attention", "full_attention"]

# name → (model type, config, tokenizer fixture): whoever computes attention in a way of its own.
TRACED: dict[str, tuple[str, dict[str, Any], str]] = {
    **{name: family for name, family in FAMILIES.items() if name != "fnet"},
    "distilbert": ("distilbert", DISTIL | {"num_labels": 3}, "wordpiece"),
    "electra": ("electra", LAYERS, "wordpiece"),
    "albert": ("albert", LAYERS, "wordpiece"),
    "mpnet": ("mpnet", SMALL | {"pad_token_id": 1, "max_position_embeddings": 66}, "wordpiece"),
    "modernbert": ("modernbert", SMALL | {"local_attention": 8, "pad_token_id": 0}, "wordpiece"),
    "mistral": ("mistral", SHARED | {"sliding_window": 6}, "byte_pairs"),
    "qwen2": ("qwen2", SHARED, "byte_pairs"),
    "gemma2": ("gemma2", SHARED | {"head_dim": 8}, "byte_pairs"),
    "gptj": ("gptj", GPT2 | {"rotary_dim": 4, "num_labels": 3}, "byte_pairs"),
    "mixtral": ("mixtral", SHARED | {"num_local_experts": 4}, "byte_pairs"),
    # A sink takes part of the attention, and is cut off after the softmax.
    "gpt-oss": ("gpt_oss", SHARED | GPT_OSS | {"layer_types": KINDS}, "byte_pairs"),
    "ctrl": ("ctrl", GPT2 | {"dff": 32, "num_labels": 3}, "byte_pairs"),  # changes its embeddings
    "falcon": (
        "falcon",  # all heads share one set of values
        {k: v for k, v in SMALL.items() if k != "intermediate_size"},
        "byte_pairs",
    ),
}
UNPROJECTED = ("xlnet", "falcon")


def look(model: Any, tokenizer: Any, target: Target = FIRST, text: Any = TEXT) -> Any:
    classifier = piste.load(model, tokenizer)
    return classifier.gradient_access(classifier.subject(text), target)


@pytest.fixture(params=list(TRACED))
def traced(request: pytest.FixtureRequest) -> tuple[str, str, dict[str, Any], Any]:
    kind, config, tokenizer = TRACED[request.param]
    return request.param, kind, config, request.getfixturevalue(tokenizer)


def test_the_models_own_weights_however_it_computes_them(
    traced: tuple[str, str, dict[str, Any], Any],
) -> None:
    name, kind, config, tokenizer = traced
    eager = build(kind, **config, attn_implementation="eager")
    ids = torch.tensor(tokenizer(TEXT)["input_ids"])[None]
    with torch.no_grad():
        own = eager(input_ids=ids, output_attentions=True).attentions
    models = [eager]
    if eager._supports_sdpa:
        models.append(build(kind, **config, attn_implementation="sdpa"))
        assert models[1].config._attn_implementation == "sdpa"
    for model in models:
        found = trace(look(model, tokenizer))
        assert len(found.layers) == len(own) == 2
        for layer, weights in zip(found.layers, own, strict=True):
            np.testing.assert_allclose(layer.weights, weights[0], atol=1e-5)
            assert layer.values is not None
            assert layer.values.shape[:2] == layer.weights.shape[:2]
            assert (layer.projection is None) == (name in UNPROJECTED)
        assert found.causal == (TRACED[name][2] == "byte_pairs")
        last = found.tokens - 1
        assert found.readers.tolist() == ([last] if found.causal or kind == "xlnet" else [0])


def test_gradients_are_those_of_finite_differences(
    traced: tuple[str, str, dict[str, Any], Any],
) -> None:
    """Weights are moved where they are met, and the answer is looked at."""
    name, kind, config, tokenizer = traced
    if name in ("mixtral", "gpt-oss"):
        pytest.skip("experts are not computed in double precision")
    model = build(kind, **config, attn_implementation="eager").double()
    found = trace(look(model, tokenizer))
    rng = np.random.default_rng(0)
    for number, layer in enumerate(found.layers):
        way = rng.normal(size=layer.weights.shape) * (layer.weights > 0)
        up, down = (moved(model, tokenizer, number, step * way) for step in (1e-4, -1e-4))
        expected = float((layer.gradients * way).sum())
        assert (up - down) / 2e-4 == pytest.approx(expected, rel=2e-3, abs=2e-3)


class Moved(AttentionCapture):
    """Adds something to the weights of one layer at the moment they meet the values."""

    def __init__(self, tokens: int, number: int, by: np.ndarray) -> None:
        super().__init__(tokens)
        self.number, self.by, self.count = number, torch.from_numpy(by), -1

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "softmax":
            self.count += 1
        whole = name == "einsum"
        place = 1 if whole else 0
        if (
            name in ("matmul", "__matmul__", "bmm", "einsum")
            and self.count == self.number
            and isinstance(args[place], torch.Tensor)
            and args[place].shape[-2:] == self.by.shape[-2:]
            and args[place].numel() == self.by.numel()
        ):
            self.count += 0.5  # once is enough
            shifted = args[place] + self.by.reshape(args[place].shape).to(args[place])
            args = (*args[:place], shifted, *args[place + 1 :])
        return func(*args, **(kwargs or {}))


def moved(model: Any, tokenizer: Any, number: int, by: np.ndarray) -> float:
    inside = look(model, tokenizer)
    start = inside.start
    with torch.no_grad(), Moved(start.shape[1], number, by) as mode:
        answer = float(inside.numbers(start)[0])
    assert mode.count % 1, "the product was not met"
    return answer


@pytest.mark.parametrize(
    ("kind", "config", "words"),
    [
        ("fnet", FAMILIES["fnet"][1], "No attention between the tokens"),
        (
            "funnel",  # its later layers have fewer tokens
            {"vocab_size": 400, "d_model": 16, "n_head": 2, "d_head": 8, "d_inner": 32}
            | {"block_sizes": [1, 1], "num_labels": 3},
            r"attends between other things \(13 × 26\) than the 26 tokens or pixels of the input",
        ),
    ],
)
def test_other_models_are_refused(
    kind: str, config: dict[str, Any], words: str, wordpiece: Any
) -> None:
    with pytest.raises(PisteError, match=words + r".*choose a method .*piste methods"):
        trace(look(build(kind, **config), wordpiece))


def test_more_weights_than_memory_are_refused(bert: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_capture, "_MOST", 2000)
    with pytest.raises(PisteError, match=r"26 tokens has more than 2,000 weights in 2 layers"):
        trace(bert.gradient_access(bert.subject(TEXT), FIRST))


def test_all_classes_from_one_pass(bert: Any) -> None:
    inside = bert.gradient_access(bert.subject(TEXT), EVERY)
    every = list(traces(inside))
    assert inside.calls == 1
    assert len(every) == 3
    together = trace(bert.gradient_access(bert.subject(TEXT), EVERY))
    for label, one in enumerate(every):
        target = Target("function", "f", function=lambda z, k=label: z[:, k] - z.mean(1))
        alone = trace(bert.gradient_access(bert.subject(TEXT), target))
        for a, b, c in zip(one.layers, alone.layers, together.layers, strict=True):
            np.testing.assert_allclose(a.gradients, b.gradients, atol=1e-6)
            np.testing.assert_array_equal(a.gradients, c.gradients[label])
            np.testing.assert_array_equal(a.weights, c.weights)
    np.testing.assert_allclose(sum(one.layers[0].gradients for one in every), 0, atol=1e-5)


def test_tokens_are_put_together_to_units() -> None:
    units = np.array([-1, 0, 0, 1, -1])
    found = Trace((), units, 2, np.array([0]))
    matrix = np.arange(25.0).reshape(5, 5)
    between = found.between_units(matrix)
    assert between[0, 0] == matrix[1:3, 1:3].sum() / 2
    assert between[0, 1] == matrix[1:3, 3].mean()
    assert between[1, 0] == matrix[3, 1:3].sum()
    assert found.per_unit(np.arange(5.0)).tolist() == [3.0, 3.0]
    assert found.mean_per_unit(np.arange(5.0)).tolist() == [1.5, 3.0]
    assert found.read(matrix).tolist() == matrix[0].tolist()
    several = Trace((), units, 2, np.array([0, 3]))
    assert several.read(matrix).tolist() == matrix[[0, 3]].mean(axis=0).tolist()


def test_a_head_that_reads_all_tokens(wordpiece: Any) -> None:
    model = build("modernbert", **TRACED["modernbert"][1], classifier_pooling="mean")
    found = trace(look(model, wordpiece))
    assert found.readers.tolist() == list(range(found.tokens))


class Forgetful(torch.nn.Module):
    """Attention with its heads in one with the rows, and a choice of experts beside it."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.mix, self.out = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.router = torch.nn.Linear(4, tokens)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        experts = torch.softmax(self.router(x), dim=-1)  # rows × tokens × (as many) experts
        best = experts.max(dim=-1).values[..., None]
        heads = self.mix(x).reshape(-1, 2, 2).transpose(0, 1)  # heads × tokens × features
        weights = torch.nn.functional.softmax(input=heads @ heads.transpose(1, 2), dim=2)
        weights = torch.nn.functional.dropout(weights, training=False).to(torch.float32)
        mixed = torch.bmm(weights, heads).transpose(0, 1).reshape(1, -1, 4)
        return self.out(mixed) * best


def test_folded_heads_are_found_and_other_softmaxes_are_not() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Forgetful(5)
        x = torch.randn(1, 5, 4, requires_grad=True)
    with AttentionCapture(5) as capture:
        model(x)
    (met,) = capture.attentions()
    assert met.weights.shape == (2, 5, 5)
    assert met.values is not None
    assert met.values.shape == (2, 5, 2)
    assert met.projection is not None
    assert torch.equal(met.projection.T, model.out.weight)


def test_products_written_in_letters_give_values_the_right_way_round() -> None:
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.normal(size=(1, 2, 5, 5))).requires_grad_()
    values = torch.from_numpy(rng.normal(size=(5, 1, 2, 3)))
    with AttentionCapture(5) as capture:
        weights = torch.softmax(scores, dim=3)
        mixed = torch.einsum("bnij,jbnd->ibnd", weights, values)
    (met,) = capture.attentions()
    assert met.values is not None
    again = (met.weights @ met.values)[0].transpose(0, 1)[:, None]
    torch.testing.assert_close(again, mixed)


def state(model: Any) -> Any:
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


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["bert", "gpt2-no-pad", "llama-no-pad"])
def test_the_users_model_stays_as_it_was(
    name: str, attention: str, request: pytest.FixtureRequest
) -> None:
    kind, config, tokenizer = FAMILIES[name]
    model = build(kind, **config, attn_implementation=attention).train()
    seen: list[int] = []
    model.base_model.register_forward_hook(lambda *_: seen.append(1))
    next(iter(model.parameters())).requires_grad_(False)
    before = state(model)
    inside = look(model, request.getfixturevalue(tokenizer))
    trace(inside)
    assert state(model) == before
    assert seen

    def fail(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    last = list(inside.twin.modules())[-1]
    last.forward = fail
    with pytest.raises(ZeroDivisionError):
        trace(inside)
    assert state(model) == before
    assert not torch.overrides._get_current_function_mode_stack()


def test_a_frozen_model_and_modes_without_gradients_make_no_difference(wordpiece: Any) -> None:
    model = build("bert", **FAMILIES["bert"][1])
    expected = trace(look(model, wordpiece)).layers[0].gradients
    frozen = copy.deepcopy(model).requires_grad_(False)
    np.testing.assert_allclose(trace(look(frozen, wordpiece)).layers[0].gradients, expected)
    with torch.no_grad():
        np.testing.assert_allclose(trace(look(model, wordpiece)).layers[0].gradients, expected)
    with torch.inference_mode():
        e = piste.explain(piste.load(model, wordpiece), TEXT, method="grad_sam", held_out=0)
    again = piste.explain(piste.load(model, wordpiece), TEXT, method="grad_sam", held_out=0)
    np.testing.assert_allclose(e.score(), again.score())


@pytest.mark.slow  # the first use of such a kernel compiles it
def test_kernels_that_cannot_be_looked_into_are_left_for_a_while(byte_pairs: Any) -> None:
    found = []
    for attention in ("flex_attention", "sdpa"):
        model = build("llama", **SHARED, attn_implementation=attention)
        inside = look(model, byte_pairs)
        found.append(trace(inside))
        assert model.config._attn_implementation == attention
        assert inside.twin.config._attn_implementation == attention
    for one, other in zip(found[0].layers, found[1].layers, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-6)
