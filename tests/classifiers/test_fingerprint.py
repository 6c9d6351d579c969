"""Fingerprints: the same for the same model wherever it comes from, another for any other."""

from __future__ import annotations

import copy
import functools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoModelForSequenceClassification

import piste
from piste.classifiers.fingerprint import fingerprint_model
from tests.conftest import FAMILIES, TEXT, build


def mark(model: nn.Module, **extra: object) -> str:
    return fingerprint_model(model, extra)


class Holder(nn.Module):
    """A module with one buffer, for tensors of unusual kinds."""

    def __init__(self, tensor: torch.Tensor, persistent: bool = True) -> None:
        super().__init__()
        self.register_buffer("tensor", tensor, persistent=persistent)


def small() -> Any:
    return build("bert", **FAMILIES["bert"][1])


# -- what leaves it as it is ---------------------------------------------------------------------


def test_saving_loading_and_asking_change_nothing(
    family: tuple[str, Any, Any], tmp_path: Path
) -> None:
    _, model, tokenizer = family
    before = mark(model)
    assert len(before) == 64
    int(before, 16)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert mark(loaded) == before
    piste.load(loaded, tokenizer).subject(TEXT).ask([[0, 1, 2], [3]])
    assert mark(loaded) == before
    assert mark(copy.deepcopy(model).train()) == before


def test_how_attention_is_computed_and_where_it_came_from_do_not_count() -> None:
    model, other = small(), small()
    other.config._name_or_path = other.name_or_path = "somewhere/else"
    other.config.transformers_version = "9.9"
    other.config.dtype = torch.float32
    other.set_attn_implementation("eager")
    assert mark(model) == mark(other)


def test_the_order_of_extra_does_not_count_but_its_content_does() -> None:
    model = nn.LayerNorm(2)
    before = mark(model, runtime="torch", version=1)
    assert fingerprint_model(model, {"version": 1, "runtime": "torch"}) == before
    others = [
        {"runtime": "onnx", "version": 1},
        {"runtime": "torch", "version": 2},
        {"runtime": "torch", "version": "1"},
        {"runtime": "torch", "version": np.int64(7)},
        {"runtime": "torch", "version": np.int64(8)},
        {"runtime": "torch", "version": Path("a")},
        {"runtime": "torch", "version": Path("b")},
        {"runtime": "torch"},
        {},
    ]
    marks = {fingerprint_model(model, other) for other in others}
    assert len(marks | {before}) == len(others) + 1


def test_memory_layout_does_not_count() -> None:
    numbers = torch.arange(6.0).reshape(2, 3)
    assert mark(Holder(numbers)) == mark(Holder(numbers.T.contiguous().T))
    assert mark(Holder(numbers)) == mark(Holder(torch.arange(20.0)[:6].reshape(2, 3)))


# -- what changes it -----------------------------------------------------------------------------


def test_every_single_parameter_and_buffer_counts() -> None:
    model = small()
    seen = {mark(model)}
    tensors = [*model.parameters(), *model.buffers()]
    for tensor in tensors:
        with torch.no_grad():
            flat = tensor.view(-1)
            flat[-1] = (
                torch.nextafter(flat[-1], torch.tensor(9.0)) if flat.is_floating_point() else 77
            )
        seen.add(mark(model))
    assert len(seen) == len(tensors) + 1


def test_every_place_of_a_large_tensor_counts() -> None:
    size = (1 << 20) // 4  # one piece of those that are hashed apart
    tensor = torch.zeros(3 * size + 5)
    model = Holder(tensor)
    seen = {mark(model)}
    for place in (0, size - 1, size, 2 * size, 3 * size, 3 * size + 4):
        tensor[place] += 1
        seen.add(mark(model))
        tensor[place] -= 1
    first, second = tensor[:size].clone().fill_(1), tensor[:size].clone().fill_(2)
    seen.add(mark(Holder(torch.cat([first, second]))))
    seen.add(mark(Holder(torch.cat([second, first]))))
    assert len(seen) == 9


@pytest.mark.parametrize(
    "change",
    [
        {"pad_token_id": 5},
        {"num_labels": 4},
        {"hidden_act": "relu"},
        {"layer_norm_eps": 1e-6},
        {"is_decoder": True},
        {"num_attention_heads": 4},
    ],
    ids=str,
)
def test_every_setting_counts(change: dict[str, Any]) -> None:
    assert mark(build("bert", **FAMILIES["bert"][1] | change)) != mark(small())


def test_a_setting_changed_later_counts() -> None:
    model = small()
    seen = {mark(model)}
    model.config.pad_token_id = 3
    seen.add(mark(model))
    model.bert.encoder.layer[1].attention.self.scaling *= 2
    seen.add(mark(model))
    model.bert.pooler.activation = nn.ReLU()
    seen.add(mark(model))
    model.bert.pooler.register_forward_hook(lambda *_: None)
    seen.add(mark(model))
    model.extra_bias = torch.zeros(1)  # a tensor nobody registered
    seen.add(mark(model))
    model.extra_bias += 1
    seen.add(mark(model))
    assert len(seen) == 7


def test_precision_counts() -> None:
    model = small()
    marks = {mark(model), mark(copy.deepcopy(model).bfloat16()), mark(copy.deepcopy(model).half())}
    assert len(marks) == 3


def test_structure_without_weights_counts() -> None:
    norm = nn.LayerNorm(2)
    models = [
        nn.Sequential(norm, nn.ReLU()),
        nn.Sequential(norm, nn.Tanh()),
        nn.Sequential(norm, nn.LeakyReLU(0.1)),
        nn.Sequential(norm, nn.LeakyReLU(0.2)),
        nn.Sequential(nn.ReLU(), norm),
        nn.Sequential(norm, norm),
    ]
    assert len({mark(model) for model in models}) == len(models)


def test_functions_and_arrays_kept_as_attributes_count() -> None:
    marks = set()
    for thing in (
        torch.tanh,
        torch.relu,
        functools.partial(torch.softmax, dim=0),
        functools.partial(torch.softmax, dim=1),
        np.zeros(3),
        np.ones(3),
    ):
        module = nn.Module()
        module.thing = thing
        marks.add(mark(module))
    assert len(marks) == 6


def test_buffers_that_are_not_saved_count() -> None:
    tensor = torch.zeros(3)
    assert mark(Holder(tensor, persistent=False)) != mark(Holder(tensor + 1, persistent=False))


def test_the_same_bytes_in_another_form_are_another_model() -> None:
    zeros = torch.zeros(2, 3)
    forms = [zeros, zeros.reshape(3, 2), zeros.int(), zeros[:0], zeros[:1], torch.zeros(())]
    assert len({mark(Holder(form)) for form in forms}) == len(forms)


# -- unusual tensors -----------------------------------------------------------------------------


def unusual(step: int) -> dict[str, torch.Tensor]:
    numbers = torch.tensor([[0.0, 1.0 + step], [2.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their makers are deprecated, such models exist
        quantised = torch.quantize_per_tensor(numbers, 0.1, 0, torch.qint8)
        scales, points = torch.tensor([0.1, 0.2]), torch.tensor([0, 0])
        by_channel = torch.quantize_per_channel(numbers, scales, points, 0, torch.qint8)
    return {
        "bfloat16": numbers.bfloat16(),
        "float8": numbers.to(torch.float8_e4m3fn),
        "bool": numbers > 1.5,
        "complex": numbers * 1j,
        "conjugate": (numbers * 1j).conj(),
        "scalar": numbers.sum(),
        "sparse": numbers.to_sparse(),
        "quantised": quantised,
        "by channel": by_channel,
        "inference": _inferred(numbers),
    }


def _inferred(numbers: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return numbers * 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", list(unusual(0)))
def test_unusual_tensors_count_too(kind: str) -> None:
    first, again, other = (mark(Holder(unusual(step)[kind])) for step in (0, 0, 1))
    assert first == again
    assert first != other


def test_a_tensor_without_numbers_does_no_harm() -> None:
    with torch.device("meta"):
        model = nn.LayerNorm(3)
    assert mark(model) == mark(copy.deepcopy(model))
    assert mark(model) != mark(nn.LayerNorm(3))


@pytest.mark.filterwarnings("ignore")
def test_quantised_layers_count_though_they_have_no_parameters() -> None:
    quantize = getattr(getattr(torch.ao, "quantization", None), "quantize_dynamic", None)
    if quantize is None or not torch.backends.quantized.supported_engines:
        pytest.skip("this torch has no quantised layers")
    marks = []
    for value in (0.5, 0.5, 0.6):
        with torch.random.fork_rng():
            layer = nn.Linear(2, 2)
        nn.init.constant_(layer.weight, value)
        nn.init.constant_(layer.bias, 0.0)
        marks.append(mark(quantize(nn.Sequential(layer), {nn.Linear})))
    assert marks[0] == marks[1] != marks[2]
