"""Every runtime answers as torch does, says how nearly, and is refused where it does not."""

from __future__ import annotations

import copy
import sys
from typing import Any

import numpy as np
import pytest
import torch

import piste
from piste import PisteError
from piste.classifiers.backends import RUNTIMES, start
from piste.classifiers.backends.int8 import RowInt8Linear, activation_steps
from tests.conftest import GPT2, TEXT, build

EXACT = ("torch", "onnx", "openvino")


def questions(subject: piste.Subject) -> list[Any]:
    n = len(subject)
    return [range(n), [0], [1, 2], range(n // 2), [n - 1, 0, 0], list(range(0, n, 2))]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["piste:reviews", "piste:reviews-gpt"])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_answers_agree_with_torch(runtime: str, model: str) -> None:
    truth = piste.load(model).subject(TEXT)
    other = piste.load(model, runtime=runtime)
    subject = other.subject(TEXT)
    answers, expected = subject.ask(questions(subject)), truth.ask(questions(truth))
    tolerance = 1e-5 if runtime in EXACT else 0.1
    assert np.abs(answers - expected).max() < tolerance
    assert other.describe()["runtime"] == runtime
    if runtime != "torch":
        assert 0 <= other.describe()["runtime_difference"] < tolerance  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["onnx", "openvino", "torch-int8"])
def test_a_decoder_without_a_pad_token_is_batched_rightly(runtime: str, byte_pairs: Any) -> None:
    model = build("gpt2", **GPT2)
    truth = piste.load(model, byte_pairs).subject(TEXT)
    subject = piste.load(model, byte_pairs, runtime=runtime, tolerance=0.5).subject(TEXT)
    assert model.config.pad_token_id is None
    answers, expected = subject.ask(questions(subject)), truth.ask(questions(truth))
    spread = np.ptp(expected, axis=0).max()
    assert np.abs(answers - expected).max() < (1e-4 if runtime in EXACT else 0.3) * spread


def test_the_result_says_what_ran_and_how_nearly(bert: Any) -> None:
    classifier = piste.load(bert.model, bert.tokenizer, runtime="torch-int8", tolerance=1.0)
    e = piste.explain(classifier, TEXT, samples=60)
    assert e.classifier["runtime"] == "torch-int8"
    assert e.classifier["runtime_difference"] > 0


def test_the_model_stays_as_it_was(bert: Any) -> None:
    before = copy.deepcopy(bert.model.state_dict())
    names = [type(module).__name__ for module in bert.model.modules()]
    piste.load(bert.model, bert.tokenizer, runtime="torch-int8", tolerance=1.0).subject(TEXT)
    assert [type(module).__name__ for module in bert.model.modules()] == names
    assert all(torch.equal(before[key], value) for key, value in bert.model.state_dict().items())


def test_too_large_a_difference_is_refused_and_nothing_else_breaks(bert: Any) -> None:
    classifier = piste.load(bert.model, bert.tokenizer, runtime="torch-int8", tolerance=0.0)
    with pytest.raises(PisteError, match=r"beside torch.*0\.0% is allowed.*larger tolerance"):
        classifier.subject(TEXT).ask([[0]])
    assert bert.subject(TEXT).ask([[0]]).shape == (1, 3)


def test_wrong_choices_get_one_sentence(bert: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PisteError, match="runtime: expected one of torch,"):
        piste.load(bert.model, bert.tokenizer, runtime="tensorrt")
    with pytest.raises(PisteError, match="only a Hugging Face model"):
        piste.load(lambda texts: [0.0 for _ in texts], runtime="onnx")
    with pytest.raises(PisteError, match="tolerance: expected a number of at least 0, got -1"):
        piste.load(bert.model, bert.tokenizer, tolerance=-1)
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(PisteError, match=r"not installed.*pip install .openvino>="):
        piste.load(bert.model, bert.tokenizer, runtime="openvino").subject(TEXT).ask([[0]])


def test_what_cannot_be_converted_is_said() -> None:
    example = {"input_ids": np.ones((2, 3), dtype=np.int64)}
    with pytest.raises(PisteError, match="can't run Identity"):
        start("openvino", torch.nn.Identity(), example)


def test_integer_layers_give_a_row_the_same_answer_in_any_company() -> None:
    rng = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(24, 48, generator=rng), torch.randn(24, generator=rng)
    layer = RowInt8Linear(weight, bias)
    x = torch.randn(6, 5, 48, generator=rng) * torch.logspace(-3, 3, 30).reshape(6, 5, 1)
    together = layer(x)
    assert torch.equal(together[2, 3], layer(x[2, 3][None])[0])
    exact = x @ weight.T + bias
    error = (together - exact).norm(dim=-1) / (exact - bias).norm(dim=-1)
    assert error.max() < 0.05
    assert activation_steps() in (63, 127)
