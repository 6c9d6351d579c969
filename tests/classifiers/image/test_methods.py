"""Methods on images: the same code as on texts, and what it must find."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import piste
from piste import PisteError
from piste.classifiers.image.batching import Row
from piste.engine import Engine
from piste.methods import METHODS
from piste.target import Target
from tests.classifiers.images import PATCH, SIDE, loaded, photo, processor

FIRST = Target("class", "log-odds of 'LABEL_0'", (0,))
SMALL = {"samples": 60, "steps": 8, "copies": 3, "held_out": 4}
# These are compiled when they are first used, which takes longer than everything else here;
# tests/methods explains images by them too.
COMPILED = ("partition_shap", "permutation_shap")


def few(name: str) -> dict[str, Any]:
    """Options for a quick run."""
    known = {field.name for field in fields(METHODS[name])}
    small = SMALL | ({"samples": 700} if name == "spex" else {})  # its codes need more
    return {option: value for option, value in small.items() if option in known}


@pytest.fixture(scope="module")
def vit() -> Any:
    return loaded("vit")


# -- a SLALOM ------------------------------------------------------------------------------------


class Tokens(nn.Module):
    """A weight and a value for every patch."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Conv2d(3, 2, PATCH, PATCH)
        self.positions = nn.Parameter(torch.zeros(1, (SIDE // PATCH) ** 2, 2))

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        return self.projection(pixel_values).flatten(2).transpose(1, 2) + self.positions


class SoftMean(nn.Module):
    """An image model that is a SLALOM: the mean of the patches' values by their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(num_labels=1, id2label={0: "score"}, problem_type=None)
        self.tokens = Tokens()
        generator = torch.Generator().manual_seed(1)
        for parameter in self.parameters():
            parameter.data = 0.2 * torch.randn(parameter.shape, generator=generator)

    def forward(self, pixel_values: torch.Tensor) -> Any:
        weights, values = self.tokens(pixel_values).split(1, dim=2)
        found = weights.transpose(1, 2).softmax(dim=-1) @ values
        return SimpleNamespace(logits=found[:, :, 0])


def test_an_image_model_that_is_a_slalom_is_recovered() -> None:
    with torch.random.fork_rng():
        model = SoftMean().eval()
    classifier = piste.load(model, processor())
    e = piste.explain(classifier, photo(), samples=200)
    assert e.settings["input"]["removal"] == "delete"
    with torch.no_grad():
        truth = model.tokens(classifier._values(e.input.pixels[None]))[0].double().numpy()
    np.testing.assert_allclose(e.scores["value"], truth[:, 1], atol=2e-3)
    np.testing.assert_allclose(e.scores["importance"], truth[:, 0] - truth[:, 0].mean(), atol=2e-3)
    assert e.surrogate.mixing.value == 1.0
    assert e.fidelity.r2 > 0.9999


# -- every method --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    # An image's regions are no words that a table could have.
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name == "spex"))
        for name in METHODS
        if name not in COMPILED and METHODS[name].needs != "a table"
    ],
)
def test_every_method_explains_an_image(method: str, vit: Any, tmp_path: Path) -> None:
    one, same = (
        piste.explain(vit, photo(), method=method, seed=3, **few(method)) for _ in range(2)
    )
    assert len(one) == 16
    assert one.units[6].text == "row 2, column 3"
    assert one.units[6].box == (16, 8, 24, 16)
    for score in one.scores:
        assert np.isfinite(one.scores[score]).all()
        np.testing.assert_array_equal(one.scores[score], same.scores[score])
    assert one.output.logits == pytest.approx(vit.subject(photo()).ask([range(16)])[0])
    one.to_json(tmp_path / "e.json")
    back = piste.read(tmp_path / "e.json")
    assert back.input == one.input
    assert back.units == one.units
    np.testing.assert_array_equal(back.input.areas, one.input.areas)
    assert back.predict([0, 5, 7]) == pytest.approx(one.predict([0, 5, 7]))
    again = piste.explain(vit, back.input, method=method, seed=3, **few(method))
    np.testing.assert_allclose(again.score(), one.score(), atol=1e-5)


@pytest.mark.parametrize("method", ["gradient", "integrated_gradients", "smoothgrad"])
@pytest.mark.parametrize("units", ["grid:2", "superpixels:5"])
def test_models_that_need_every_patch_have_gradients(method: str, units: str) -> None:
    swin = loaded("swin")
    e = piste.explain(swin, photo(), method=method, units=units, **few(method))
    assert np.isfinite(e.score()).all()
    assert np.ptp(e.score()) > 0


def test_integrated_gradients_go_from_a_plain_image(vit: Any) -> None:
    swin = loaded("swin")
    for classifier in (vit, swin):
        for baseline in ("auto", "blur"):
            e = piste.explain(
                classifier,
                photo(),
                method="integrated_gradients",
                steps=100,
                baseline=baseline,
                target=0,
                units="grid:2",
                held_out=0,
            )
            assert e.settings["baseline_used"] == ("mean" if baseline == "auto" else baseline)
            inside = classifier.gradient_access(
                classifier.subject(photo(), units="grid:2"), e.target
            )
            with torch.no_grad():
                begin = float(inside.numbers(inside.baseline(e.settings["baseline_used"])))
                end = float(inside.numbers(inside.start))
            assert end == pytest.approx(e.output.value, abs=1e-4)
            assert e.score().sum() == pytest.approx(end - begin, abs=2e-2 * abs(end - begin) + 1e-2)
    e = piste.explain(vit, photo(), method="integrated_gradients", baseline="zero", held_out=0)
    assert np.isfinite(e.score()).all()
    with pytest.raises(PisteError, match="choose mean, blur, zero"):
        piste.explain(vit, photo(), method="integrated_gradients", baseline="mask")


@pytest.mark.parametrize("name", ["vit", "dinov2", "swin"])
def test_gradients_are_those_of_the_answers(name: str) -> None:
    classifier = piste.load(loaded(name).model.double(), processor())
    subject = classifier.subject(photo(), units="grid:2")
    inside = classifier.gradient_access(subject, FIRST)
    start = inside.start.requires_grad_()
    (slopes,) = torch.autograd.grad(inside.numbers(start).sum(), start)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for _ in range(3):
            way = torch.randn(start.shape, generator=generator, dtype=start.dtype)
            up, down = inside.numbers(torch.cat([start + 1e-5 * way, start - 1e-5 * way]))
            assert float((slopes * way).sum()) == pytest.approx(float(up - down) / 2e-5, rel=1e-4)
    assert (
        inside.per_unit(np.ones(len(inside.token_units))).sum() == (inside.token_units >= 0).sum()
    )


def test_the_telling_patch_comes_out_on_top() -> None:
    """A function that looks at one place only."""

    def corner(pixels: np.ndarray) -> np.ndarray:
        assert pixels.dtype == np.uint8
        assert pixels.shape[1:] == (45, 60, 3)
        return pixels[:, 40:, 50:].std(axis=(1, 2, 3)) / 50

    classifier = piste.load(corner, inputs="pixels")
    for method in ("slalom", "lime", "kernel_shap", "occlusion"):
        e = piste.explain(classifier, photo(), method=method, units="grid:4", **few(method))
        assert e.units[int(np.argmax(e.score()))].text == "row 4, column 4"
        assert "can't be absent" in e.settings["input"]["instead"]


def test_comparing_and_evaluating_images(vit: Any) -> None:
    found = piste.compare(
        vit, photo(), ["slalom", "occlusion", "gradient_x_input"], samples=60, units="grid:3"
    )
    assert {"slalom", "occlusion", "gradient_x_input"} == set(found.verdicts)
    assert all(np.isfinite(v["r2_all"]) for v in found.verdicts.values())
    painted = piste.compare(vit, photo(), ["occlusion"], units="superpixels:6", removal="noise")
    assert np.isfinite(painted.verdicts["occlusion"]["r2_all"])


def test_answers_are_kept_by_pixels_and_removal(vit: Any, tmp_path: Path) -> None:
    options = {"method": "occlusion", "units": "grid:3", "cache": tmp_path}
    first = piste.explain(vit, photo(), **options)
    cache = piste.AnswerCache(tmp_path)
    engine = Engine(vit, None, cache)
    subject = vit.subject(photo(), units="grid:3")
    engine.ask([(subject, [subject.whole, list(range(8))])])
    assert engine.asked == 0, "both were asked before"
    for other in (
        vit.subject(photo(seed=5), units="grid:3"),
        vit.subject(photo(), units="grid:3", removal="mean"),
        vit.subject(photo(), units="grid:4"),
    ):
        before = engine.asked
        engine.ask([(other, [[0, 1]])])
        assert engine.asked == before + 1
    cache.close()
    same = piste.explain(vit, photo(), **options)
    np.testing.assert_array_equal(first.score(), same.score())
    brighter = piste.load(vit.model, processor(image_std=[0.2, 0.2, 0.2]))
    assert brighter.fingerprint() != vit.fingerprint() == loaded("vit").fingerprint()


def test_rows_hold_what_is_kept() -> None:
    row = Row(torch.zeros(4, 2), np.array([True, False, True, False]))
    assert row.length == 2
    assert Row(row.tokens, row.kept, hides=True).length == 4
