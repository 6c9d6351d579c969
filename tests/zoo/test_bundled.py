"""The bundled folders are complete, small and readable without this library."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForImageClassification

from piste import zoo
from piste.errors import PisteError

FASHION = zoo.folder("piste:fashion")


@pytest.mark.parametrize("name", zoo.names())
def test_folder_and_card_are_complete(name: str) -> None:
    folder = zoo.folder(name)
    files = {file.name: file.stat().st_size for file in folder.iterdir()}
    assert {"README.md", "config.json", "model.safetensors"} < set(files)
    assert {"tokenizer.json", "preprocessor_config.json"} & set(files)
    assert {Path(file).suffix for file in files} == {".md", ".json", ".safetensors"}
    assert sum(files.values()) <= 8_000_000
    card = zoo.card(name)
    for part in ("accuracy", "python -m tools.zoo.train", "seed", "licence", "limits"):
        assert part in card.lower()
    assert zoo.describe(name)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(PisteError, match="piste:fashion"):
        zoo.folder("piste:shoes")


def test_the_image_model_loads_and_answers() -> None:
    config = json.loads((FASHION / "config.json").read_text(encoding="utf-8"))
    assert list(config["id2label"].values())[0::9] == ["T-shirt/top", "Ankle boot"]
    model = AutoModelForImageClassification.from_pretrained(FASHION)
    processor = AutoImageProcessor.from_pretrained(FASHION)
    # Two white legs, and a coloured image of another size that shows nothing.
    legs = np.zeros((28, 28, 3), dtype=np.uint8)
    legs[2:8, 9:19] = legs[8:27, 9:13] = legs[8:27, 15:19] = 200
    other = Image.new("RGB", (300, 200), (90, 10, 10))
    with torch.inference_mode():
        logits = model(**processor([Image.fromarray(legs), other], return_tensors="pt")).logits
    assert logits.shape == (2, 10)
    assert model.config.id2label[int(logits[0].argmax())] == "Trouser"


def test_the_card_states_what_the_licence_of_the_data_asks() -> None:
    card = zoo.card("piste:fashion")
    assert "MIT licence, © 2017 Zalando SE" in card
    measured = float(card.split("official test split (10,000 images) | ")[1].split(" ")[0])
    assert measured >= 0.9
