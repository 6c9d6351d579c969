"""Small image models of many families, their processor, and an image with something in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

import piste

SIDE, PATCH = 32, 8
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "num_labels": 3,
    "image_size": SIDE,
    "patch_size": PATCH,
}
SWIN = {
    "image_size": SIDE,
    "patch_size": 4,
    "embed_dim": 16,
    "depths": [1, 1],
    "num_heads": [2, 2],
    "window_size": 4,
    "num_labels": 3,
}
# name → (class, config, whether patches can be taken out of it)
FAMILIES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "vit": ("ViTForImageClassification", SMALL, True),
    "deit": ("DeiTForImageClassificationWithTeacher", SMALL, True),
    "dinov2": ("Dinov2ForImageClassification", SMALL, True),
    "dinov2-registers": ("Dinov2WithRegistersForImageClassification", SMALL, True),
    "siglip": ("SiglipForImageClassification", {"vision_config": SMALL, "num_labels": 3}, True),
    "beit": ("BeitForImageClassification", SMALL | {"use_relative_position_bias": True}, False),
    "swin": ("SwinForImageClassification", SWIN, False),
    "resnet": (
        "ResNetForImageClassification",
        {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1], "num_labels": 3}
        | {"layer_type": "basic"},
        False,
    ),
}
DROPPING = [name for name, (*_, drops) in FAMILIES.items() if drops]


def build(name: str, **more: Any) -> Any:
    """A model with random but lively weights, so that mistakes show in its answers."""
    kind, config, _ = FAMILIES[name]
    model_class = getattr(transformers, kind)
    generator = torch.Generator().manual_seed(7)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = model_class(model_class.config_class(**config | more))
    for parameter in model.parameters():
        scale = 0.3 if parameter.ndim > 1 else 0.05
        parameter.data += scale * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def processor(side: int = SIDE, **more: Any) -> Any:
    options = {"size": {"height": side, "width": side}, "image_mean": [0.5, 0.4, 0.3]}
    return transformers.ViTImageProcessorPil(**options | more)


def photo(height: int = 45, width: int = 60, seed: int = 0) -> NDArray[np.uint8]:
    """Coloured blobs on a ramp: no two patches are alike."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:height, :width]
    colours = np.stack([2 * rows, 3 * columns, rows + columns], axis=2) % 256
    for _ in range(6):
        top, left = rng.integers(0, height), rng.integers(0, width)
        near = (rows - top) ** 2 + (columns - left) ** 2 < rng.integers(20, 90)
        colours[near] = rng.integers(0, 256, 3)
    return colours.astype(np.uint8)


def loaded(name: str, **more: Any) -> Any:
    return piste.load(build(name, **more), processor())
