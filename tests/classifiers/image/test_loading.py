"""From what the user has to a classifier of images; units; clear words where it can't be."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import piste
from piste import PisteError
from piste.classifiers import ImageClassifier, PixelFunction
from piste.classifiers.image.preprocessing import FILLS, fill
from piste.image import ImageInput
from tests.classifiers.images import build, loaded, photo, processor
from tests.conftest import TEXT


@pytest.fixture(scope="module")
def vit() -> Any:
    return loaded("vit")


def bright(pixels: np.ndarray) -> np.ndarray:
    return pixels.mean(axis=(1, 2, 3))


def png(pixels: np.ndarray) -> bytes:
    whole = io.BytesIO()
    Image.fromarray(pixels).save(whole, "PNG")
    return whole.getvalue()


# -- loading -------------------------------------------------------------------------------------


def test_a_folder_tells_what_it_reads(vit: Any, bert: Any, tmp_path: Path) -> None:
    for name, classifier, reader in (
        ("image", vit, vit.processor),
        ("text", bert, bert.tokenizer),
    ):
        classifier.model.save_pretrained(tmp_path / name)
        reader.save_pretrained(tmp_path / name)
    image, text = piste.load(tmp_path / "image"), piste.load(tmp_path / "text")
    assert (image.reads, text.reads) == ("images", "texts")
    assert isinstance(image, ImageClassifier)
    questions = [[0, 3, 7], range(16)]
    np.testing.assert_allclose(
        image.subject(photo()).ask(questions), vit.subject(photo()).ask(questions), atol=1e-6
    )
    assert image.labels == vit.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert image.kind == "classes"
    told = image.describe()
    assert told["architecture"] == "ViTForImageClassification"
    assert told["name"] == str(tmp_path / "image")


def test_a_pipeline_is_a_model_and_a_processor(vit: Any) -> None:
    class Pipeline:
        model, tokenizer, image_processor = vit.model, None, vit.processor

        def preprocess(self) -> None: ...

        def forward(self) -> None: ...

    assert piste.load(Pipeline()).subject(photo()).units == vit.subject(photo()).units


def test_wrong_company_is_named(vit: Any, bert: Any) -> None:
    for arguments, options, words in (
        ((vit.model,), {}, r"got the model alone: call piste.load\(model, processor\)"),
        (
            (vit.model, bert.tokenizer),
            {},
            "Expected an image processor for ViTFor",
        ),
        (
            (bert.model, vit.processor),
            {},
            "Expected a tokenizer for BertFor",
        ),
        ((vit.model, "folder"), {}, "Expected the image processor itself"),
        ((vit.model, vit.processor), {"runtime": "onnx"}, "expected 'torch' for an image model"),
        (
            (bright, vit.processor),
            {"inputs": "pixels"},
            "let the function itself prepare the images",
        ),
        ((bright,), {"inputs": "sounds"}, "inputs: expected one of texts, pixels, got 'sounds'"),
        ((vit.model.vit, vit.processor), {}, "Expected one row of logits per image"),
    ):
        with pytest.raises(PisteError, match=words):
            piste.load(*arguments, **options).subject(photo()).ask([[0]])


def test_functions_of_pixels() -> None:
    classifier = piste.load(bright, inputs="pixels", labels=["light"], version="1")
    assert isinstance(classifier, PixelFunction)
    assert (
        classifier.fingerprint() == piste.load(bright, inputs="pixels", version="1").fingerprint()
    )
    subject = classifier.subject(photo(), units="grid:3")
    assert subject.input.pixels.shape == photo().shape
    np.testing.assert_allclose(subject.ask([subject.whole])[0, 0], photo().mean())
    mean = np.round(photo().mean(axis=(0, 1))).mean()
    assert subject.ask([[]])[0, 0] == pytest.approx(mean)
    assert (classifier.labels, classifier.kind) == (("light",), "regression")
    chances = piste.load(
        lambda pixels: np.stack([bright(pixels) / 255, 1 - bright(pixels) / 255], axis=1),
        inputs="pixels",
        labels=["light", "dark"],
    )
    e = piste.explain(chances, photo(), units="grid:3", method="occlusion")
    assert sum(e.output.probabilities) == pytest.approx(1)
    torch_one = piste.load(lambda p: torch.from_numpy(p).float().mean((1, 2, 3)), inputs="pixels")
    assert torch_one.subject(photo(), units="grid:2").ask([[0]]).shape == (1, 1)
    wrong = piste.load(lambda pixels: pixels[0], inputs="pixels")
    with pytest.raises(PisteError, match="Expected 1 rows of scores from the function"):
        wrong.subject(photo()).ask([[0]])
    with pytest.raises(PisteError, match="units='patches' needs a model that cuts"):
        classifier.subject(photo(), units="patches")
    with pytest.raises(PisteError, match="removal='attention' needs a model"):
        classifier.subject(photo(), removal="attention")
    with pytest.raises(PisteError, match="only gives answers"):
        piste.explain(classifier, photo(), method="gradient")


# -- units ---------------------------------------------------------------------------------------


def test_units_and_their_places(vit: Any) -> None:
    patches = vit.subject(photo())
    assert (patches.cut, len(patches)) == ("patches", 16)
    grid = vit.subject(photo(), units="grid:3")
    assert [unit.tokens for unit in grid.units] == [4, 2, 2, 2, 1, 1, 2, 1, 1]
    assert grid.units[0].box == (0, 0, 16, 16)
    assert grid.units[5].text == "row 2, column 3"
    for unit, area in zip(grid.units, range(9), strict=True):
        left, top, right, bottom = unit.box
        assert (grid.input.areas[top:bottom, left:right] == area).all()
        assert (grid.input.areas == area).sum() == (bottom - top) * (right - left)
    pieces = vit.subject(photo(), units="superpixels:6")
    blocks = pieces.input.areas.reshape(4, 8, 4, 8)
    assert (blocks == blocks[:, :1, :, :1]).all(), "no patch is divided"
    painted = vit.subject(photo(), units="superpixels:6", removal="mean").input.areas
    blocks = painted.reshape(4, 8, 4, 8)
    assert not (blocks == blocks[:, :1, :, :1]).all(), "pixels can be told apart"
    names = [unit.text for unit in pieces.units]
    assert all(re.fullmatch(r"region \d, (top|middle|bottom)( left| right)?", n) for n in names)
    assert len({name.split(", ")[1] for name in names}) > 2


def test_many_patches_are_put_into_groups() -> None:
    fine = piste.load(build("vit", image_size=72), processor(72))
    subject = fine.subject(photo())
    assert (subject.cut, len(subject)) == ("grid:7", 49)
    assert subject.notes["patches"] == [9, 9]
    assert len(fine.subject(photo(), units="patches")) == 81
    assert len(loaded("swin").subject(photo())) == 64
    assert loaded("resnet").subject(photo()).cut == "grid:7"


def test_fills() -> None:
    image = ImageInput.of(photo())
    fills = [fill(image, kind) for kind in FILLS]
    assert all(one.shape == image.pixels.shape and one.dtype == np.uint8 for one in fills)
    mean, blur, noise = fills
    assert (mean == mean[0, 0]).all()
    assert 0 < blur.std() < photo().std()
    assert noise.std() > 50
    np.testing.assert_array_equal(noise, fill(ImageInput.of(photo()), "noise"))
    assert not np.array_equal(noise, fill(ImageInput.of(photo(seed=4)), "noise"))
    assert (np.ptp(fill(ImageInput.of(photo()[..., 0]), "noise"), axis=2) == 0).all(), "greys stay"


def test_removals_paint_what_is_not_kept(vit: Any) -> None:
    for removal in FILLS:
        subject = vit.subject(photo(), units="grid:2", removal=removal)
        ((question, _),) = subject.encode([1, 2])
        pixels = subject.pixels(question.payload[1])
        kept = np.isin(subject.areas, (1, 2))
        np.testing.assert_array_equal(pixels[kept], subject.input.pixels[kept])
        np.testing.assert_array_equal(pixels[~kept], subject.fill[~kept])
        expected = vit.subject(ImageInput(pixels, prepared=True))
        np.testing.assert_allclose(subject.ask([[1, 2]]), expected.ask([expected.whole]), atol=1e-5)


# -- bad input -----------------------------------------------------------------------------------


def test_images_come_in_many_forms(vit: Any, tmp_path: Path) -> None:
    (tmp_path / "half.png").write_bytes(png(photo())[:200])
    with pytest.raises(PisteError, match=r"half\.png' is a broken image"):
        vit.subject(str(tmp_path / "half.png"))
    (tmp_path / "photo.png").write_bytes(png(photo()))
    expected = vit.subject(photo())
    for given in (
        tmp_path / "photo.png",
        str(tmp_path / "photo.png"),
        png(photo()),
        Image.fromarray(photo()),
        ImageInput.of(photo()),
        photo() / 255,
        torch.from_numpy(photo()),
    ):
        assert vit.subject(given).input == expected.input
    assert vit.subject(tmp_path / "photo.png").input.name == "photo.png"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("A slow start", "Expected an image, got the text 'A slow start', which is no file"),
        ("a\0b" * 5000, "Expected an image, got the text"),
        ("", "Expected an image, got the text ''"),
        (("a", "b"), r"Expected an image, got \('a', 'b'\) of type tuple"),
        (b"no image", "is not an image that can be read"),
        (png(photo())[:200], "broken image"),
        (Path("/no/such/image.png"), "could not be read: No such file"),
        (42, "Expected an image"),
        (None, "Expected an image"),
        (np.zeros((4, 4, 7)), "got the shape"),
        (np.full((4, 4, 3), 3.0), "must lie in 0 … 1"),
    ],
)
def test_bad_images(vit: Any, given: Any, words: str) -> None:
    with pytest.raises(PisteError, match=words) as caught:
        piste.explain(vit, given)
    assert "\n" not in str(caught.value)


def test_an_image_for_a_text_model(bert: Any) -> None:
    loud = piste.load(lambda texts: [len(text) for text in texts])
    for classifier in (bert, loud):
        for given in (ImageInput.of(photo()), photo(), Image.fromarray(photo()), png(photo())):
            with pytest.raises(PisteError, match="Expected a text or a pair of texts"):
                piste.explain(classifier, given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"units": "words"}, "units: expected one of patches, grid:K"),
        ({"units": "grid"}, "units: expected .*, got 'grid'"),
        ({"units": "grid:1"}, "K of at least 2"),
        ({"units": "grid:5"}, "only 4 patches wide or high"),
        ({"units": "grid:-3"}, "units: expected"),
        ({"removal": "mask"}, "removal: expected one of delete, attention"),
        ({"long": "cut"}, "long: expected one of"),
    ],
)
def test_bad_choices(vit: Any, options: Any, words: str) -> None:
    with pytest.raises(PisteError, match=words):
        piste.explain(vit, photo(), **options)
    for wrong in ("grid:3", "mean"):
        name = "units" if ":" in wrong else "removal"
        with pytest.raises(PisteError, match=f"{name}: expected one of .*, got '{wrong}'"):
            piste.explain(lambda texts: [1.0] * len(texts), TEXT, **{name: wrong})


def test_a_model_of_one_patch_and_images_of_another_size(vit: Any) -> None:
    single = piste.load(build("vit", patch_size=32), processor())
    with pytest.raises(PisteError, match="single unit to this model"):
        piste.explain(single, photo())
    with pytest.raises(PisteError, match="can't read an image of 20 × 20 pixels"):
        vit.subject(ImageInput(photo(20, 20), prepared=True)).ask([[0]])
    with pytest.raises(PisteError, match="only 3 pixels wide or high"):
        piste.load(bright, inputs="pixels").subject(photo(3, 3))


def test_without_scikit_image_its_name_is_said(vit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "skimage.segmentation", None)
    with pytest.raises(PisteError, match="scikit-image>="):
        vit.subject(photo(), units="superpixels:5")


def test_a_processor_that_bends_the_numbers_is_refused(vit: Any) -> None:
    class Bent:
        def preprocess(self) -> None: ...

        def __call__(self, images: Any, return_tensors: str) -> dict[str, torch.Tensor]:
            pixels = torch.from_numpy(np.asarray(images.resize((32, 32)))).float() / 255
            return {"pixel_values": pixels.permute(2, 0, 1)[None] ** 2}

    with pytest.raises(PisteError, match="does not only scale and shift"):
        piste.load(vit.model, Bent())
