"""Training on images, end to end on a handful of generated ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoImageProcessor, AutoModelForImageClassification

from tools.zoo import image_training, train
from tools.zoo.image_recipes import IMAGE_RECIPES, SIDE, build_vit
from tools.zoo.image_training import as_input, augment, only_patches, random_patches

pandas = pytest.importorskip("pandas")


def bars(labels: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Grey images with a bright bar whose height is the label."""
    rng = np.random.default_rng(len(labels))
    pixels = rng.integers(0, 60, size=(len(labels), SIDE, SIDE), dtype=np.uint8)
    for image, label in zip(pixels, labels, strict=True):
        image[2 * label + 4 : 2 * label + 7, 4:-4] = 250
    return pixels


def generated_images(file: Path, training: int, test: int) -> None:
    rows: list[tuple[bytes, int, str]] = []
    for split, count in (("train", training), ("test", test)):
        labels = np.arange(count, dtype=np.int64) % 10
        pixels = bars(labels)
        rows += [(p.tobytes(), int(n), split) for p, n in zip(pixels, labels, strict=True)]
    pandas.DataFrame(rows, columns=["image", "label", "split"]).to_parquet(file)


@pytest.fixture
def untrained() -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build_vit().eval()


def test_the_command_trains_scores_and_writes_a_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "images.parquet"
    generated_images(data, training=60, test=20)
    monkeypatch.setattr(image_training, "HELD_OUT_IMAGES", 10)
    short = replace(IMAGE_RECIPES["fashion"], epochs=2, batch_size=16)
    monkeypatch.setitem(train.RECIPES, "fashion", short)
    threads = torch.get_num_threads()
    weights = []
    with torch.random.fork_rng():
        for folder in ("first", "second"):
            out = tmp_path / folder
            train.main(["fashion", "--data", str(data), "--out", str(out)])
            model = AutoModelForImageClassification.from_pretrained(out)
            weights.append(model.state_dict())
    scores = train.evaluate(tmp_path / "first", data)
    torch.set_num_threads(threads)
    assert list(scores) == [1.0, 0.75, 0.5, 0.25]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    card = (tmp_path / "first" / "README.md").read_text(encoding="utf-8")
    for part in ("Accuracy on the official test split (20 images)", "50% of the patches", "MIT"):
        assert part in card
    assert f"| {scores[0.25].accuracy:.4f} |" in card


def test_patches_that_are_left_out_have_no_influence(untrained: Any) -> None:
    model = untrained
    first = as_input(bars(np.array([3, 7])))
    other = first.clone()
    other[:, :, :, :4] = 1.0
    inside = torch.tensor([number for number in range(49) if number % 7]).expand(2, -1)
    with torch.inference_mode():
        assert not torch.allclose(model(first).logits, model(other).logits)
        with only_patches(model, inside):
            assert torch.equal(model(first).logits, model(other).logits)
        with only_patches(model, torch.arange(49).expand(2, -1)):
            everything = model(first).logits
        # The hook is gone again.
        torch.testing.assert_close(everything, model(first).logits)


def test_the_kept_patches_are_another_choice_for_every_image() -> None:
    kept = random_patches(20, 49, 12, np.random.default_rng(0))
    assert kept.shape == (20, 12)
    assert all(len(set(row)) == 12 for row in kept.tolist())
    assert len({tuple(row) for row in kept.tolist()}) == 20
    assert random_patches(3, 49, 0, np.random.default_rng(0)).shape == (3, 0)


def test_only_the_mean_of_the_channels_counts(untrained: Any) -> None:
    grey = as_input(bars(np.array([2])))
    coloured = grey + torch.tensor([0.3, -0.1, -0.2])[None, :, None, None]
    with torch.inference_mode():
        torch.testing.assert_close(untrained(grey).logits, untrained(coloured).logits)


def test_the_saved_processor_does_what_training_did(tmp_path: Path, untrained: Any) -> None:
    image_training.save_image_model(untrained, tmp_path)
    processor = AutoImageProcessor.from_pretrained(tmp_path)
    grey = bars(np.array([1, 5]))
    inputs = processor(list(np.repeat(grey[..., None], 3, axis=3)), return_tensors="pt")
    torch.testing.assert_close(inputs["pixel_values"], as_input(grey))


def test_augmenting_mirrors_and_moves() -> None:
    pixels = np.zeros((200, SIDE, SIDE), dtype=np.uint8)
    pixels[:, 10, 5] = 255
    found = {tuple(np.argwhere(image)[0]) for image in augment(pixels, 1, np.random.default_rng(0))}
    assert found == {(row, col) for row in (9, 10, 11) for col in (4, 5, 6, 21, 22, 23)}
