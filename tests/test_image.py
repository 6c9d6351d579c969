"""Images from whatever a user has, and back from what was stored."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from piste import PisteError
from piste.image import ImageInput


def colours(height: int = 5, width: int = 7) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3)).astype(np.uint8)


def test_the_same_pixels_from_every_source(tmp_path: Path) -> None:
    pixels = colours()
    file = tmp_path / "a.png"
    Image.fromarray(pixels).save(file)
    sources = [file, str(file), file.read_bytes(), Image.open(file), pixels, pixels / 255.0]
    sources.append(np.moveaxis(pixels, 2, 0))
    images = [ImageInput.of(source) for source in sources]
    assert all(image == images[0] for image in images)
    assert len(set(images)) == 1
    assert (images[0].pixels == pixels).all()
    assert images[0].name == "a.png"
    assert ImageInput.of(images[0]) is images[0]
    assert images[0] != ImageInput(pixels, prepared=True)


def test_grey_transparent_deep_and_turned_images() -> None:
    grey = colours()[:, :, 0]
    assert (ImageInput.of(grey).pixels == grey[:, :, None]).all()
    assert (ImageInput.of(grey[:, :, None]).pixels == grey[:, :, None]).all()
    clear = Image.new("RGBA", (3, 2), (0, 0, 0, 0))
    assert (ImageInput.of(clear).pixels == 255).all()
    deep = Image.fromarray(np.full((2, 2), 65535, dtype=np.uint16))
    assert (ImageInput.of(deep).pixels == 255).all()
    turned, buffer = Image.fromarray(colours(4, 8)), io.BytesIO()
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(buffer, "PNG", exif=exif)
    assert ImageInput.of(buffer.getvalue()).pixels.shape == (8, 4, 3)


def test_stored_and_read_again() -> None:
    areas = np.random.default_rng(1).integers(-1, 300, (5, 7)).astype(np.int32)
    image = ImageInput(colours(), "a.jpg", True, areas)
    back = ImageInput.from_dict(json.loads(json.dumps(image.to_dict())))
    assert back == image
    assert back.name == "a.jpg"
    assert back.areas is not None
    assert (back.areas == areas).all()
    painted = back.painted(np.arange(300.0))
    assert np.isnan(painted[areas < 0]).all()
    assert (painted[areas >= 0] == areas[areas >= 0]).all()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("no such file.png", "No such file"),
        (b"not an image", "not an image"),
        (12, "of type int"),
        (np.zeros((2, 2, 5)), "shape"),
        (np.full((2, 2), 3.0), "0 … 1"),
        (np.full((2, 2), 300), "0 … 255"),
        (np.zeros((0, 2), dtype=np.uint8), "shape"),
    ],
)
def test_what_is_no_image_is_refused(source: Any, words: str) -> None:
    with pytest.raises(PisteError, match=words):
        ImageInput.of(source)


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.fromarray(colours(64, 64)).save(buffer, "JPEG")
    (tmp_path / "cut.jpg").write_bytes(buffer.getvalue()[:300])
    with pytest.raises(PisteError, match="broken"):
        ImageInput.of(tmp_path / "cut.jpg")
    with pytest.raises(PisteError, match="not been cut"):
        ImageInput(colours()).painted(np.zeros(3))
