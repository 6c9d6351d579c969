"""`piste explain` and `piste compare` on images, with a small vision transformer of our own."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

import piste
from tests.cli.commands import run
from tests.show.images import drawn

LABELS = {0: "shirt", 1: "ankle boot", 2: "bag"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random vision transformer: 28 × 28 pixels, 49 patches, three classes."""
    config = ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        image_size=28, patch_size=4, id2label=LABELS,
        label2id={label: index for index, label in LABELS.items()},
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(1)
        built = ViTForImageClassification(config)
        for parameter in built.parameters():
            parameter.data += 0.3 * torch.randn(parameter.shape)
    folder = tmp_path_factory.mktemp("vit")
    built.save_pretrained(folder)
    ViTImageProcessor(size={"height": 28, "width": 28}).save_pretrained(folder)
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the image scene.png."""
    Image.fromarray(drawn(56, 40)).save(tmp_path / "scene.png")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG and no more")
    monkeypatch.chdir(tmp_path)
    return tmp_path


FEW = ("--method", "occlusion")


def test_a_path_is_enough_and_every_format_is_written(
    monkeypatch: Any, capsys: Any, model: Path, here: Path
) -> None:
    files = [f"e.{suffix}" for suffix in ("html", "png", "json", "csv", "parquet")]
    outs = [part for name in files for part in ("--out", name)]
    code, out, err = run(
        monkeypatch, capsys, "explain", "scene.png", "-m", model, "--samples", 60, *outs
    )
    assert code == 0, err
    assert "on images with parts removed" in " ".join(out.split())
    assert "row " in out
    assert (here / "e.png").read_bytes().startswith(b"\x89PNG")
    assert "The image" in (here / "e.html").read_text(encoding="utf-8")
    stored = [piste.read(here / name) for name in files[2:]]
    for e in stored:
        assert e.input == stored[0].input
        assert (e.input.areas == stored[0].input.areas).all()
        assert e.units == stored[0].units
        assert e.to_html() == stored[0].to_html()
    assert len(stored[0]) == 49
    again = piste.explain(piste.load(str(model)), here / "scene.png", samples=60)
    assert np.allclose(again.score(), stored[0].score())


@pytest.mark.parametrize("units", ["grid:2", "patches"])
def test_units_removal_and_ways_to_give_an_image(
    monkeypatch: Any, capsys: Any, model: Path, here: Path, units: str
) -> None:
    options = ("-m", model, *FEW, "--json", "--units", units, "--removal", "blur")
    found = []
    for given in (("scene.png",), ("--image", "scene.png"), ("--file", "scene.png"), ("-",)):
        with (here / "scene.png").open("rb") as file:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
            code, out, err = run(monkeypatch, capsys, "explain", *given, *options)
        assert code == 0, err
        found.append(json.loads(out))
    assert all(one["scores"] == found[0]["scores"] for one in found)
    assert len(found[0]["units"]) == {"grid:2": 4, "patches": 49}[units]
    assert found[0]["settings"]["input"]["units"] == units
    assert found[0]["settings"]["input"]["removal"] == "blur"
    assert found[0]["input"]["name"] == "scene.png"


def test_methods_stand_side_by_side(monkeypatch: Any, capsys: Any, model: Path, here: Path) -> None:
    code, out, err = run(
        monkeypatch, capsys, "compare", "scene.png", "-m", model, "--units", "grid:3", "--methods",
        "occlusion,gradient,zero", "-o", "c.html", "-o", "c.png", "-o", "c.json",
    )  # fmt: skip
    assert code == 0, err
    assert "One image proves little" in " ".join(out.split())
    page = (here / "c.html").read_text(encoding="utf-8")
    assert page.count('<figure class="piste-method"') == 3
    assert (here / "c.png").read_bytes().startswith(b"\x89PNG")
    assert set(json.loads((here / "c.json").read_text())["verdicts"]) == {
        "occlusion", "gradient", "zero",
    }  # fmt: skip


@pytest.mark.parametrize("command", ["explain", "compare"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["scene.png"], "Expected a text for 'piste:reviews', got the image 'scene.png'"),
        (["--image", "scene.png"], "got the image"),
        (["nothing.png"], "There is no file 'nothing.png'"),
        (["--image", "nothing.png", "-m", "MODEL"], "There is no file"),
        (["A slow start", "-m", "MODEL"], "got 'A slow start', which is no file"),
        (["long " * 2000, "-m", "MODEL"], "is no file"),
        (["broken.png", "-m", "MODEL"], "broken.png"),
        (["scene.png", "--image", "scene.png", "-m", "MODEL"], "Give either"),
        (["scene.png", "--pair", "more", "-m", "MODEL"], "leave --pair out"),
        (["scene.png", "--units", "words", "-m", "MODEL"], "patches, grid:K, superpixels:K"),
        (["scene.png", "--removal", "mask", "-m", "MODEL"], "mean, blur, noise"),
        (["scene.png", "-o", "e.gif", "-m", "MODEL"], "its suffix must be .html"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    monkeypatch: Any, capsys: Any, model: Path, here: Path, command: str,
    arguments: list[str], words: str,
) -> None:  # fmt: skip
    given = [str(model) if one == "MODEL" else one for one in arguments]
    code, _, err = run(monkeypatch, capsys, command, *given)
    assert code == 2
    assert words in " ".join(err.split())
    assert sum(line.startswith("piste:") for line in err.splitlines()) == 1
    assert "Traceback" not in err


def test_a_sentence_about_an_image_is_a_text(monkeypatch: Any, capsys: Any, here: Path) -> None:
    words = "What a wonderful still in poster.png"
    code, out, err = run(monkeypatch, capsys, "explain", words, *FEW, "--json", "-o", "e.csv")
    assert code == 0, err
    assert json.loads(out)["input"] == words
    assert piste.read(here / "e.csv").input == words


def test_help_names_what_images_offer(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for command in ("explain", "compare"):
        shown = " ".join(run(monkeypatch, capsys, command, "--help")[1].split())
        for word in ("sentences", "superpixels:K", "grid:K", "blur", "--image", "--out"):
            assert word in shown
