"""What is trained on images: architecture and settings of each shipped model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, ViTConfig, ViTForImageClassification

from tools.zoo.optimising import Settings

SIDE = 28
PATCH = 4
GRID = SIDE // PATCH
CHANNELS = 3
MEAN = DEVIATION = 0.5
LONGEST_WAVE = 20.0
WAVE_HEIGHT = 0.3
GARMENTS = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
# What the image processor of the saved model does; all versions of transformers know this class.
PROCESSOR: dict[str, Any] = {
    "image_processor_type": "ViTImageProcessor",
    "do_convert_rgb": True,
    "do_resize": True,
    "size": {"height": SIDE, "width": SIDE},
    "resample": 2,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [MEAN] * CHANNELS,
    "image_std": [DEVIATION] * CHANNELS,
}


@dataclass(frozen=True, kw_only=True)
class ImageRecipe(Settings):
    """All settings of one training run on images."""

    build_model: Callable[[], PreTrainedModel]
    epochs: int
    batch_size: int = 64
    # Images are moved by up to so many pixels in both directions.
    largest_shift: int = 1
    # Share of the batches that keep all patches. In the others the number of kept patches is
    # drawn evenly between none and all: the model learns to answer from any part of an image,
    # which is what explanation methods ask of it.
    whole_share: float = 0.4


def _waves(hidden_size: int) -> Tensor:
    """Sines and cosines of row and column for every patch (patches × hidden size).

    They only start the learned position embeddings: from random ones a small model needs
    several epochs to find out which patches are neighbours.
    """
    count = hidden_size // 4
    phase = torch.arange(float(GRID))[:, None] * LONGEST_WAVE ** -(torch.arange(count) / count)
    line = torch.cat((phase.sin(), phase.cos()), dim=1)
    rows = line[:, None].expand(-1, GRID, -1)
    columns = line[None].expand(GRID, -1, -1)
    return torch.cat((rows, columns), dim=2).flatten(0, 1)


def build_vit() -> PreTrainedModel:
    """Make an untrained four-layer ViT that classifies from its first token."""
    model: Any = ViTForImageClassification(
        ViTConfig(
            image_size=SIDE,
            patch_size=PATCH,
            num_channels=CHANNELS,
            hidden_size=96,
            num_hidden_layers=4,
            num_attention_heads=3,
            intermediate_size=192,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            # Wider than the default, which is meant for matrices of 768 columns.
            initializer_range=0.08,
            id2label=dict(enumerate(GARMENTS)),
            label2id={name: index for index, name in enumerate(GARMENTS)},
        )
    )
    # The images are grey, so equal weights for the three channels get equal gradients and stay
    # equal: of a coloured image the model sees the mean of its channels.
    with torch.no_grad():
        embeddings = model.vit.embeddings
        weight = embeddings.patch_embeddings.projection.weight
        weight.copy_(weight.mean(dim=1, keepdim=True).expand_as(weight))
        embeddings.position_embeddings[0, 1:] = WAVE_HEIGHT * _waves(model.config.hidden_size)
    return model


IMAGE_RECIPES = {
    "fashion": ImageRecipe(
        name="fashion",
        architecture="ViT, 4 layers, hidden size 96, 3 heads, feed-forward size 192, 49 patches "
        "of 4 × 4 pixels",
        build_model=build_vit,
        learning_rate=2e-3,
        epochs=20,
    ),
}
