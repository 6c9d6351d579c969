"""Gradient methods: captum called by hand and finite differences are the reference."""

from __future__ import annotations

from typing import Any

import captum.attr
import numpy as np
import pytest
import torch

import piste
from piste import PisteError
from piste.methods import METHODS
from tests.classifiers.introspection.test_gradients import SCALING
from tests.conftest import FAMILIES, TEXT, build, make_bytes

GRADIENTS = [name for name, method in METHODS.items() if method.needs == "gradients"]
SIGNED = [name for name in GRADIENTS if name != "gradient"]
MODELS = ["bert", "roberta", "gpt2-pad", "llama-no-pad", "gemma3_text"]


@pytest.fixture(params=MODELS)
def model_and_tokenizer(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    padded = make_bytes(pad_token="<|end|>")
    if request.param in SCALING:
        return build(request.param, **SCALING[request.param]), padded
    kind, config, tokenizer = FAMILIES[request.param]
    own = request.getfixturevalue(tokenizer) if tokenizer == "wordpiece" else padded
    # A decoder of which no token of this text is padding, whatever captum puts in its place.
    return build(kind, **config | ({} if own is not padded else {"pad_token_id": 399})), own


def log_odds(model: Any, tokenizer: Any) -> Any:
    """The log-odds of the first class as a function of token ids, one row."""
    more = dict(tokenizer(TEXT, return_tensors="pt"))
    more.pop("input_ids")
    accepted = {
        k: v
        for k, v in more.items()
        if k != "token_type_ids" or "bert" in type(model).__name__.lower()
    }

    def function(ids: torch.Tensor) -> torch.Tensor:
        rows = {name: tensor.expand(len(ids), -1) for name, tensor in accepted.items()}
        logits = model(input_ids=ids, **rows).logits
        return logits[:, 0] - logits[:, 1:].logsumexp(dim=1)

    return function


def by_unit(subject: Any, tokens: torch.Tensor) -> np.ndarray:
    numbers = tokens.detach().numpy()
    return np.array([numbers[subject.token_units == unit].sum() for unit in range(len(subject))])


def test_the_same_numbers_as_captum_called_by_hand(model_and_tokenizer: tuple[Any, Any]) -> None:
    model, tokenizer = model_and_tokenizer
    classifier = piste.load(model, tokenizer)
    subject = classifier.subject(TEXT)
    function, layer = log_odds(model, tokenizer), model.get_input_embeddings()
    ids = tokenizer(TEXT, return_tensors="pt")["input_ids"]

    def ours(method: str, **options: Any) -> Any:
        return piste.explain(classifier, TEXT, method=method, target=0, held_out=0, **options)

    product = captum.attr.LayerGradientXActivation(function, layer).attribute(ids)
    expected = by_unit(subject, product[0].sum(-1))
    np.testing.assert_allclose(ours("gradient_x_input").score(), expected, atol=1e-5)

    plain = captum.attr.LayerGradientXActivation(function, layer, multiply_by_inputs=False)
    expected = by_unit(subject, plain.attribute(ids)[0].norm(dim=-1))
    np.testing.assert_allclose(ours("gradient").score(), expected, atol=1e-5)

    away = torch.where(
        torch.from_numpy(subject.token_units < 0), ids, torch.tensor(tokenizer.pad_token_id)
    )
    path, delta = captum.attr.LayerIntegratedGradients(function, layer).attribute(
        ids, baselines=away, n_steps=300, return_convergence_delta=True
    )
    e = ours("integrated_gradients", steps=300)  # cut into several batches inside
    assert len(ids[0]) * 300 > 2048
    np.testing.assert_allclose(e.score(), by_unit(subject, path[0].sum(-1)), atol=1e-5)
    assert e.settings["convergence_delta"] == pytest.approx(float(delta), abs=1e-5)
    assert e.settings["baseline_used"] == "pad"


def test_integrated_gradients_add_up_to_the_difference(bert: Any) -> None:
    for baseline in ("pad", "mask", "zero"):
        coarse, fine = (
            piste.explain(
                bert,
                TEXT,
                method="integrated_gradients",
                steps=steps,
                baseline=baseline,
                target=0,  # every baseline moves this class clearly
                held_out=0,
            )
            for steps in (3, 200)
        )
        assert abs(fine.settings["convergence_delta"]) < 1e-3
        assert abs(coarse.settings["convergence_delta"]) > abs(fine.settings["convergence_delta"])
        inside = bert.gradient_access(bert.subject(TEXT), fine.target)
        start = inside.baseline(baseline)
        with torch.no_grad():
            begin = float(inside.numbers(start))
        difference = fine.output.value - begin
        assert abs(difference) > 0.1
        assert fine.score().sum() == pytest.approx(difference, abs=2e-3)


def test_the_zero_baseline_agrees_with_a_sum_by_hand(byte_pairs: Any) -> None:
    classifier = piste.load(build("gpt2", **FAMILIES["gpt2-no-pad"][1]).double(), byte_pairs)
    e = piste.explain(classifier, TEXT, method="integrated_gradients", steps=40, target=0)
    assert e.settings["baseline_used"] == "zero"
    subject = classifier.subject(TEXT)
    inside = classifier.gradient_access(subject, e.target)
    whole = inside.embed(inside.ids)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    total = torch.zeros_like(whole)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        point = (node * whole).requires_grad_()
        total += weight * torch.autograd.grad(inside.numbers(point).sum(), point)[0]
    expected = by_unit(subject, (whole * total)[0].sum(-1))
    np.testing.assert_allclose(e.score(), expected, atol=1e-6)


def test_smoothgrad_is_the_mean_over_the_noise(bert: Any) -> None:
    still = piste.explain(bert, TEXT, method="smoothgrad", noise=0.0, copies=3)
    product = piste.explain(bert, TEXT, method="gradient_x_input")
    np.testing.assert_allclose(still.score(), product.score(), atol=1e-5)
    e = piste.explain(bert, TEXT, method="smoothgrad", copies=150, noise=0.3, seed=5)
    subject = bert.subject(TEXT)
    inside = bert.gradient_access(subject, e.target)
    whole = inside.embed(inside.ids)
    seed = int(np.random.default_rng(5).integers(2**31))
    drawn = torch.Generator().manual_seed(seed)
    slopes = torch.zeros_like(whole)
    batch = 2048 // whole.shape[1]
    assert batch < 150, "several batches must be needed"
    for rows in (batch, 150 - batch):
        deviation = torch.full((rows, *whole.shape[1:]), 0.3 * float(whole.std()))
        point = (whole + torch.normal(0.0, deviation, generator=drawn)).requires_grad_()
        slopes += torch.autograd.grad(inside.numbers(point).sum(), point)[0].sum(0) / 150
    expected = by_unit(subject, (whole * slopes)[0].sum(-1))
    np.testing.assert_allclose(e.score(), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("method", "options", "passes"),
    [
        ("gradient", {}, 1),
        ("gradient_x_input", {}, 1),
        ("integrated_gradients", {"steps": 7}, 7 + 2),  # both ends are asked too
        ("smoothgrad", {"copies": 6}, 6),
    ],
)
def test_every_pass_is_counted(bert: Any, method: str, options: Any, passes: int) -> None:
    e = piste.explain(bert, TEXT, method=method, held_out=0, **options)
    assert e.calls == 1 + passes
    every = piste.explain(bert, TEXT, method=method, held_out=0, target="all", **options)
    assert every.calls == 1 + 3 * passes
    held = piste.explain(bert, TEXT, method=method, held_out=20, **options)
    assert held.calls == e.calls + held.fidelity.questions == e.calls + 20


@pytest.mark.parametrize("method", GRADIENTS)
def test_rules_for_all_of_them(bert: Any, method: str) -> None:
    e = piste.explain(bert, TEXT, method=method)
    again = piste.explain(bert, TEXT, method=method)
    np.testing.assert_array_equal(e.score(), again.score())
    assert e.predict(range(len(e))) == pytest.approx(e.output.value)
    assert e.predict([]) == pytest.approx(e.output.value - e.score().sum())
    every = piste.explain(bert, TEXT, method=method, target="all")
    for label in range(3):
        one = piste.explain(
            bert, TEXT, method=method, target=lambda z, k=label: z[:, k] - z.mean(1), held_out=0
        )
        np.testing.assert_allclose(every.score(label=label), one.score(), atol=1e-5)
    np.testing.assert_allclose(
        every.predict(range(len(e))), every.target(np.array([every.output.logits]))[0]
    )
    masked = piste.explain(bert, TEXT, method=method, removal="mask")
    np.testing.assert_array_equal(masked.score(), e.score())
    assert masked.settings["input"]["removal"] == "mask"
    together = piste.explain(bert, [TEXT, "The film is good.", TEXT], method=method)
    np.testing.assert_array_equal(together[2].score(), e.score())


@pytest.mark.parametrize("method", SIGNED)
def test_classes_sum_to_zero_where_scores_have_a_direction(bert: Any, method: str) -> None:
    every = piste.explain(bert, TEXT, method=method, target="all", held_out=0)
    np.testing.assert_allclose(every.scores["attribution"].sum(axis=1), 0, atol=1e-5)


@pytest.mark.parametrize("method", SIGNED)
def test_a_strong_word_comes_out_on_top(reviews: Any, method: str) -> None:
    text = "We saw it on a Monday, and the film is wonderful, as I said before."
    e = piste.explain(reviews, text, method=method, target="positive")
    assert e.units[int(np.argmax(e.score()))].text == "wonderful"


@pytest.mark.parametrize("method", GRADIENTS)
def test_half_precision_and_modes_without_gradients(wordpiece: Any, method: str) -> None:
    model = build("bert", **FAMILIES["bert"][1])
    exact = piste.explain(piste.load(model, wordpiece), TEXT, method=method, held_out=0).score()
    half = piste.explain(
        piste.load(build("bert", **FAMILIES["bert"][1]).bfloat16(), wordpiece),
        TEXT,
        method=method,
        held_out=0,
    )
    assert np.corrcoef(half.score(), exact)[0, 1] > 0.9
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            e = piste.explain(piste.load(model, wordpiece), TEXT, method=method, held_out=0)
        np.testing.assert_allclose(e.score(), exact, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "integrated_gradients", "steps": 0}, "steps: expected .*, got 0"),
        ({"method": "integrated_gradients", "baseline": "fog"}, "one of auto, pad, mask, mean"),
        ({"method": "integrated_gradients", "baseline": "blur"}, "choose pad, mask, zero"),
        ({"method": "smoothgrad", "noise": -1}, "noise: expected .*, got -1"),
        ({"method": "smoothgrad", "copies": 0}, "copies: expected .*, got 0"),
        ({"method": "gradient", "held_out": -1}, "held_out: expected .*, got -1"),
        ({"method": "gradient", "steps": 5}, "has no option 'steps'"),
        ({"method": "gradient", "target": lambda z: np.abs(z[:, 0])}, "failed on a torch tensor"),
    ],
)
def test_wrong_options_are_named(bert: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PisteError, match=words):
        piste.explain(bert, TEXT, **options)


def test_a_baseline_without_its_token_is_refused(byte_pairs: Any) -> None:
    classifier = piste.load(build("gpt2", **FAMILIES["gpt2-no-pad"][1]), byte_pairs)
    with pytest.raises(PisteError, match=r"baseline='mask' is not there .*: choose zero"):
        piste.explain(classifier, TEXT, method="integrated_gradients", baseline="mask")


def test_without_captum_the_extra_is_named(bert: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(PisteError, match=r"pip install .*captum>="):
        piste.explain(bert, TEXT, method="gradient")
    assert len(piste.explain(bert, TEXT, method="attnlrp")) > 3  # needs nothing but torch
