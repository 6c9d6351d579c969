"""How the image models are trained and evaluated: data, augmentation and scoring."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from transformers import AutoImageProcessor, AutoModelForImageClassification, PreTrainedModel

from piste.types import Ints
from tools.zoo.image_recipes import CHANNELS, DEVIATION, MEAN, PROCESSOR, SIDE, ImageRecipe
from tools.zoo.optimising import Scores, optimise

logger = logging.getLogger(__name__)

HELD_OUT_IMAGES = 2_000
PROCESSOR_FILE = "preprocessor_config.json"
# Shares of the patches with which a saved model is scored.
SHARES = (1.0, 0.75, 0.5, 0.25)


class Images(NamedTuple):
    """Grey images (count × side × side, bytes) with their labels."""

    pixels: NDArray[np.uint8]
    labels: Ints


def read_images(data: Path, split: str) -> Images:
    """Read one official split of the parquet file (columns image, label, split)."""
    table = pd.read_parquet(data, columns=["image", "label", "split"])
    chosen = table[table["split"] == split]
    pixels = np.frombuffer(b"".join(chosen["image"]), dtype=np.uint8)
    labels = np.array(chosen["label"], dtype=np.int64)
    return Images(pixels.reshape(-1, SIDE, SIDE), labels)


def hold_out_images(images: Images, seed: int) -> tuple[Images, Images]:
    """Split off the images that follow the training, so that the test split stays unseen."""
    order = np.random.default_rng(seed).permutation(len(images.labels))
    kept, held = order[HELD_OUT_IMAGES:], order[:HELD_OUT_IMAGES]
    return (
        Images(images.pixels[kept], images.labels[kept]),
        Images(images.pixels[held], images.labels[held]),
    )


def augment(
    pixels: NDArray[np.uint8], largest_shift: int, random: np.random.Generator
) -> NDArray[np.uint8]:
    """Mirror every other image and move each one a little over its black background."""
    mirrored = random.random(len(pixels)) < 0.5
    pixels = np.where(mirrored[:, None, None], pixels[:, :, ::-1], pixels)
    margin = ((0, 0), (largest_shift, largest_shift), (largest_shift, largest_shift))
    wide = np.pad(pixels, margin)
    rows, columns = random.integers(0, 2 * largest_shift + 1, size=(2, len(pixels), 1, 1))
    line = np.arange(SIDE)
    images = np.arange(len(pixels))[:, None, None]
    return wide[images, rows + line[None, :, None], columns + line[None, None, :]]


def as_input(pixels: NDArray[np.uint8]) -> Tensor:
    """What the image processor makes of grey images of the right size, only faster."""
    scaled = (torch.from_numpy(pixels).float() / 255.0 - MEAN) / DEVIATION
    return scaled[:, None].expand(-1, CHANNELS, -1, -1)


@contextmanager
def only_patches(model: PreTrainedModel, kept: Tensor) -> Iterator[None]:
    """Let the model see only some patches of every image (their numbers, count × kept).

    The others are absent, not painted over; those that stay keep their position.
    """

    def pick(_module: Any, _inputs: Any, tokens: Tensor) -> Tensor:
        first, patches = tokens[:, :1], tokens[:, 1:]
        chosen = patches.gather(1, kept[:, :, None].expand(-1, -1, patches.shape[2]))
        return torch.cat((first, chosen), dim=1)

    inner: Any = model
    hook = inner.vit.embeddings.register_forward_hook(pick)
    try:
        yield
    finally:
        hook.remove()


def random_patches(images: int, patches: int, kept: int, random: np.random.Generator) -> Tensor:
    """Numbers of the kept patches, another choice for every image."""
    order = random.random((images, patches)).argsort(axis=1)
    return torch.from_numpy(np.sort(order[:, :kept], axis=1))


def _patches(model: PreTrainedModel) -> int:
    inner: Any = model
    return int(inner.vit.embeddings.patch_embeddings.num_patches)


def epoch_losses(
    model: PreTrainedModel, recipe: ImageRecipe, images: Images, random: np.random.Generator
) -> Iterator[Tensor]:
    """Give the loss of each augmented batch, most of them with patches left out."""
    patches = _patches(model)
    order = random.permutation(len(images.labels))
    for start in range(0, len(order), recipe.batch_size):
        batch = order[start : start + recipe.batch_size]
        pixels = as_input(augment(images.pixels[batch], recipe.largest_shift, random))
        whole = random.random() < recipe.whole_share
        count = patches if whole else int(random.integers(0, patches + 1))
        with only_patches(model, random_patches(len(batch), patches, count, random)):
            logits = model(pixel_values=pixels).logits
        labels = torch.from_numpy(images.labels[batch])
        loss = functional.cross_entropy(logits, labels, label_smoothing=recipe.label_smoothing)
        # By its tokens: what a few patches cannot tell would otherwise outweigh what all can.
        yield loss * (count + 1) / (patches + 1)


def save_image_model(model: PreTrainedModel, out: Path) -> None:
    """Write weights, configuration and image processor to a folder for ``from_pretrained``."""
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    settings = json.dumps(PROCESSOR, indent=2) + "\n"
    (out / PROCESSOR_FILE).write_text(settings, encoding="utf-8")


def train_image_model(recipe: ImageRecipe, data: Path, out: Path) -> PreTrainedModel:
    """Train the recipe's model and save it, after every epoch too, so that a stop loses little."""
    training, held_out = hold_out_images(read_images(data, "train"), recipe.seed)
    logger.info("training on %d images, %d held out", len(training.labels), len(held_out.labels))
    torch.manual_seed(recipe.seed)
    random = np.random.default_rng(recipe.seed)
    model = recipe.build_model()

    def score_epoch(average: PreTrainedModel) -> Scores:
        save_image_model(average, out)
        return evaluate_images(average, AutoImageProcessor.from_pretrained(out), held_out)

    average = optimise(
        model,
        recipe,
        epochs=recipe.epochs,
        steps_per_epoch=math.ceil(len(training.labels) / recipe.batch_size),
        batch_losses=lambda _epoch: epoch_losses(model, recipe, training, random),
        score_epoch=score_epoch,
    )
    save_image_model(average, out)
    return average


@torch.inference_mode()
def evaluate_images(
    model: PreTrainedModel, processor: Any, images: Images, kept_share: float = 1.0
) -> Scores:
    """Score images the way a user would run the model, or with a share of their patches only."""
    model.eval()
    patches = _patches(model)
    random = np.random.default_rng(0)
    answers = []
    for start in range(0, len(images.labels), 100):
        grey = images.pixels[start : start + 100]
        coloured = list(np.repeat(grey[..., None], CHANNELS, axis=3))
        inputs = processor(coloured, return_tensors="pt")
        kept = random_patches(len(grey), patches, round(kept_share * patches), random)
        with only_patches(model, kept):
            answers.append(model(**inputs).logits)
    return Scores.of(torch.cat(answers), torch.from_numpy(images.labels))


def evaluate_image_folder(folder: Path, data: Path) -> dict[float, Scores]:
    """Evaluate a saved model on the official test split, by the share of patches it is shown."""
    model = AutoModelForImageClassification.from_pretrained(folder)
    processor = AutoImageProcessor.from_pretrained(folder)
    images = read_images(data, "test")
    return {share: evaluate_images(model, processor, images, share) for share in SHARES}
