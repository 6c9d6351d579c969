"""The rules that must hold for every image classifier."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import piste
from piste import PisteError
from piste.classifiers.image.subject import token_cost
from piste.image import ImageInput
from tests.classifiers.images import DROPPING, FAMILIES, SIDE, build, loaded, photo, processor


@pytest.fixture(scope="module", params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> Any:
    return loaded(request.param)


@pytest.fixture(scope="module")
def vit() -> Any:
    return loaded("vit")


def own_logits(classifier: Any, pixels: Any) -> np.ndarray:
    values = classifier.processor(images=Image.fromarray(pixels), return_tensors="pt")
    with torch.no_grad():
        return classifier.model(**values).logits.double().numpy()


def some(n: int, count: int = 8) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    sizes = np.linspace(1, n - 1, count).astype(int)
    return [np.sort(rng.permutation(n)[:size]) for size in sizes]


@pytest.mark.parametrize("units", [None, "grid:3", "superpixels:6"])
@pytest.mark.parametrize("removal", ["delete", "blur"])
def test_everything_kept_is_the_models_own_output(family: Any, units: Any, removal: Any) -> None:
    subject = family.subject(photo(), units=units, removal=removal)
    np.testing.assert_allclose(subject.ask([subject.whole]), own_logits(family, photo()), atol=1e-5)
    assert subject.input.prepared
    assert subject.input.areas.max() == len(subject) - 1
    # What the model saw can be asked about again, without being prepared a second time.
    again = family.subject(subject.input, units=units, removal=removal)
    assert again.input == subject.input
    np.testing.assert_array_equal(again.input.areas, subject.input.areas)
    questions = some(len(subject), 3)
    np.testing.assert_allclose(again.ask(questions), subject.ask(questions), atol=1e-5)


@pytest.mark.parametrize("removal", ["delete", "attention", "blur"])
@pytest.mark.parametrize("name", FAMILIES)
def test_binding_asks_the_model_nothing(
    name: str, removal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = piste.load(build(name), processor())
    monkeypatch.setattr(type(classifier.model), "__call__", None)  # would fail if called
    assert len(classifier.subject(photo(), removal=removal)) > 1
    assert classifier.calibration.batches == 0


@pytest.mark.parametrize("removal", ["delete", "mean", "blur", "noise"])
def test_a_batch_of_one_equals_a_batch_of_many(family: Any, removal: Any) -> None:
    subject = family.subject(photo(), units="grid:4", removal=removal)
    questions = [*some(len(subject)), subject.whole]
    alone = np.concatenate([subject.ask([question]) for question in questions])
    assert np.ptp(alone, axis=0).max() > 1e-2, "the questions must differ for this to mean much"
    np.testing.assert_allclose(subject.ask(questions), alone, atol=2e-5)
    np.testing.assert_allclose(subject.ask(questions[::-1])[::-1], alone, atol=2e-5)


def test_what_can_be_taken_out_is_found_not_listed() -> None:
    for name, (*_, drops) in FAMILIES.items():
        subject = loaded(name).subject(photo(), units="grid:2")
        subject.classifier.calibrate(subject)
        assert subject.removal == ("delete" if drops else "mean"), name
        assert ("instead" in subject.notes) == (not drops)
    e = piste.explain(loaded("swin"), photo(), units="grid:2", method="occlusion")
    assert "can't be taken out of SwinForImageClassification" in e.settings["input"]["instead"]
    assert e.settings["input"]["removal"] == "mean"


@pytest.mark.parametrize("name", DROPPING)
def test_dropped_patches_are_really_absent(name: str) -> None:
    """Against a pass by hand: embeddings, fewer of them, layers, head."""
    classifier = loaded(name)
    subject = classifier.subject(photo(), units="patches")
    assert len(subject) == 16
    kept = [0, 3, 4, 11]
    values = classifier.processor(images=Image.fromarray(photo()), return_tensors="pt")
    seen: list[torch.Tensor] = []

    def drop(module: Any, args: Any, output: torch.Tensor) -> torch.Tensor:
        first = output.shape[1] - 16
        places = [*range(first), *(first + k for k in kept)]
        seen.append(output)
        return output[:, places]

    model = copy.deepcopy(classifier.model)
    body = getattr(model, "vision_model", model.base_model)
    body.embeddings.register_forward_hook(drop)
    with torch.no_grad():
        expected = model(**values).logits.double().numpy()
    assert len(seen) == 1
    np.testing.assert_allclose(subject.ask([kept]), expected, atol=1e-5)
    # The pixels of what is absent can be anything.
    other = subject.input.pixels.copy()
    gone = ~np.isin(subject.input.areas, kept)
    other[gone] = 255 - other[gone]
    changed = classifier.subject(ImageInput(other, prepared=True), units="patches")
    np.testing.assert_allclose(changed.ask([kept]), expected, atol=1e-5)
    assert not np.allclose(changed.ask([changed.whole]), subject.ask([subject.whole]), atol=1e-2)


def test_hiding_from_attention_is_leaving_out(vit: Any) -> None:
    questions = [*some(16), []]
    out = vit.subject(photo()).ask(questions)
    np.testing.assert_allclose(
        vit.subject(photo(), removal="attention").ask(questions), out, atol=1e-5
    )
    with pytest.raises(PisteError, match=r"still matters in it.*: choose 'delete', 'mean'"):
        loaded("dinov2").subject(photo(), removal="attention").ask([[0]])
    with pytest.raises(PisteError, match="removal='attention' is not possible with Swin"):
        loaded("swin").subject(photo(), removal="attention").ask([[0]])


def test_nothing_can_be_asked_where_something_is_left(vit: Any) -> None:
    assert vit.subject(photo()).can_be_empty
    assert np.isfinite(vit.subject(photo()).ask([[]])).all()
    pooled = loaded("dinov2").subject(photo())  # has a mean over no patches in it
    loaded("dinov2").calibrate(pooled)
    assert not pooled.can_be_empty
    with pytest.raises(PisteError, match="nothing would be left to read"):
        pooled.ask([[]])
    assert loaded("dinov2").subject(photo(), removal="mean").can_be_empty


@pytest.mark.parametrize("name", ["vit", "dinov2", "swin", "beit"])
def test_the_users_model_stays_as_it_was(name: str) -> None:
    model = build(name).train()
    model.base_model.eval()  # a mixture of modes must come back as a mixture
    weights = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    config, modes = model.config.to_dict(), [module.training for module in model.modules()]
    parts = [(id(module), type(module)) for module in model.modules()]
    own = vars(processor()).copy()
    reads = processor()
    classifier = piste.load(model, reads)
    for method in ("slalom", "integrated_gradients", "occlusion"):
        more = {"samples": 40} if method == "slalom" else {"held_out": 4}
        piste.explain(classifier, photo(), method=method, units="grid:2", **more)
    assert all(torch.equal(weights[key], now) for key, now in model.state_dict().items())
    assert model.config.to_dict() == config
    assert [module.training for module in model.modules()] == modes
    assert [(id(module), type(module)) for module in model.modules()] == parts
    assert not any(module._forward_hooks for module in model.modules())
    assert not any("forward" in vars(module) for module in model.modules())
    assert not any(p.is_inference() or p.grad is not None for p in model.parameters())
    assert vars(reads).keys() == own.keys()
    # What a model keeps of its passes (BEiT: relative positions) must not spoil later training.
    model(pixel_values=torch.zeros(1, 3, SIDE, SIDE)).logits.sum().backward()


@pytest.mark.parametrize("name", ["swin", "beit"])
def test_models_that_need_every_patch_are_batched_by_the_size_of_the_image(name: str) -> None:
    """Swin's own tokens are many and small: by their number hardly two images would fit."""
    subject = loaded(name).subject(photo())
    ((question, _),) = subject.encode(subject.whole)
    assert question.length == token_cost(subject.image)


def test_a_changed_model_gives_its_new_answers() -> None:
    classifier = loaded("vit")
    subject = classifier.subject(photo())
    questions = [*some(16, 4), subject.whole]
    before = subject.ask(questions)
    with torch.no_grad():  # numbers that a copy shares
        classifier.model.vit.embeddings.patch_embeddings.projection.weight.mul_(-1)
    changed = subject.ask(questions)
    assert not np.allclose(before, changed, atol=1e-2)
    fresh = piste.load(copy.deepcopy(classifier.model), processor()).subject(photo())
    np.testing.assert_allclose(changed, fresh.ask(questions), atol=1e-5)
    head = copy.deepcopy(classifier.model.classifier)  # a part that a copy does not share
    head.weight.data *= -1
    classifier.model.classifier = head
    np.testing.assert_allclose(
        subject.ask(questions),
        piste.load(copy.deepcopy(classifier.model), processor()).subject(photo()).ask(questions),
        atol=1e-5,
    )


def test_images_of_several_sizes_share_a_batch() -> None:
    classifier = piste.load(build("dinov2"), processor(do_resize=False))
    images = [photo(32, 32), photo(32, 48), photo(40, 33, seed=1)]
    together = piste.explain(classifier, images, method="occlusion", units="grid:2", held_out=2)
    for image, e in zip(images, together, strict=True):
        assert (e.input.height, e.input.width) == image.shape[:2]
        alone = piste.explain(classifier, image, method="occlusion", units="grid:2", held_out=2)
        np.testing.assert_allclose(e.score(), alone.score(), atol=2e-4)
    odd = classifier.subject(images[2], units="patches")
    assert len(odd) == 5 * 4
    assert (odd.input.areas[:, 32:] == -1).all(), "a rest that fills no patch is no unit"


def test_sequences_only_drop(vit: Any) -> None:
    subject = vit.subject(photo())
    for wrong in ([1, 0], [2, 2]):
        with pytest.raises(PisteError, match="units of an image can only be dropped"):
            subject.ask([wrong])
    with pytest.raises(PisteError, match="has the units 0 to 15"):
        subject.ask([[16]])
    assert subject.types.tolist() == list(range(16))


def test_greys_and_other_processors() -> None:
    """One channel, no scaling, crops: whatever a processor does to the numbers is undone."""
    grey = piste.load(build("vit", num_channels=1), processor(image_mean=[0.3], image_std=[0.2]))
    image = photo()[..., 1]
    subject = grey.subject(image)
    values = grey.processor(images=Image.fromarray(image), return_tensors="pt")
    with torch.no_grad():
        expected = grey.model(**values).logits.double().numpy()
    np.testing.assert_allclose(subject.ask([subject.whole]), expected, atol=1e-5)
    assert np.isfinite(grey.subject(image, removal="noise").ask([[0, 5]])).all()
    for options in (
        {"do_normalize": False},
        {"do_rescale": False, "do_normalize": False},
        {"do_center_crop": True, "crop_size": {"height": SIDE, "width": SIDE}}
        | {"size": {"shortest_edge": 40}},
    ):
        classifier = piste.load(build("vit"), processor(**options))
        subject = classifier.subject(photo())
        np.testing.assert_allclose(
            subject.ask([subject.whole]), own_logits(classifier, photo()), rtol=1e-4, atol=1e-4
        )
        assert "rounded" not in subject.notes
        assert subject.input.pixels.shape == (SIDE, SIDE, 3)
