"""Explanations of images made by hand: drawn pixels, chosen scores, no model."""

from __future__ import annotations

from typing import Any

import numpy as np

from piste.explanation import Explanation, Fidelity, Output
from piste.image import ImageInput
from piste.subject import Unit
from piste.surrogates import AdditiveSurrogate, Mixing, SlalomSurrogate
from piste.target import Target

MIXED = Mixing(0.4, 0.05)
LABELS = ("shirt", "ankle boot", "bag")


def drawn(width: int, height: int) -> np.ndarray:
    """A red disc on a green field under a blue sky."""
    y, x = np.mgrid[:height, :width]
    pixels = np.zeros((height, width, 3), dtype=np.uint8)
    pixels[...] = (90, 140, 220)
    pixels[y > 0.6 * height] = (60, 130, 50)
    pixels[..., 2] = np.clip(pixels[..., 2] - 60 * x / width, 0, 255)
    disc = (x - 0.62 * width) ** 2 + (y - 0.45 * height) ** 2 < (0.24 * height) ** 2
    pixels[disc] = (200, 40, 30)
    return pixels


def grid(width: int, height: int, columns: int, rows: int) -> tuple[np.ndarray, list[Unit]]:
    """Equal rectangles, named as patches are."""
    y, x = np.mgrid[:height, :width]
    areas = (y * rows // height) * columns + x * columns // width
    names = [f"row {r + 1}, column {c + 1}" for r in range(rows) for c in range(columns)]
    return areas.astype(np.int32), _units(areas, names)


def shards(width: int, height: int, count: int) -> tuple[np.ndarray, list[Unit]]:
    """Irregular parts: the pixels nearest to each of some points."""
    rng = np.random.default_rng(3)
    points = rng.random((count, 2)) * (width, height)
    y, x = np.mgrid[:height, :width]
    distance = (x[..., None] - points[:, 0]) ** 2 + (y[..., None] - points[:, 1]) ** 2
    areas = np.unique(distance.argmin(axis=2), return_inverse=True)[1].reshape(height, width)
    names = [f"superpixel {k + 1}" for k in range(areas.max() + 1)]
    return areas.astype(np.int32), _units(areas, names)


def _units(areas: np.ndarray, names: list[str]) -> list[Unit]:
    units = []
    for index, name in enumerate(names):
        rows, columns = np.nonzero(areas == index)
        box = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
        units.append(Unit(name, 0, 0, box=tuple(map(int, box))))
    return units


def explained_image(
    cut: tuple[np.ndarray, list[Unit]] | None = None,
    *,
    name: str = "scene.png",
    classes: bool = False,
    mixing: Mixing = MIXED,
    **changes: Any,
) -> Explanation:
    """A SLALOM-like result: parts under the disc speak for the answer, the sky against it."""
    areas, units = cut or grid(28, 28, 7, 7)
    height, width = areas.shape
    pixels = drawn(width, height)
    red = np.array([pixels[areas == k][:, 0].mean() for k in range(len(units))])
    rng = np.random.default_rng(1)
    value = (red - 110) / 40 + rng.normal(0, 0.2, len(units))
    importance = (red - red.mean()) / 90 + rng.normal(0, 0.15, len(units))
    target = Target("class", "log-odds of 'ankle boot'", (1,), LABELS)
    logits, answer = (-1.0, 2.5, 0.0), 3.0
    base: Any = 0.0
    if classes:
        target = Target("all", "every class above their mean", (0, 1, 2), LABELS)
        value = np.stack([-value, value, 0.5 * value], axis=1)
        answer, base = logits, (0.0, 0.0, 0.0)
    weight = np.exp(importance) if not classes else np.exp(importance)[:, None]
    share = weight / np.exp(importance).sum()
    contribution = value * share**mixing.value
    scores = {"value": value, "importance": importance, "contribution": contribution}
    chances = np.exp(logits) / np.exp(logits).sum()
    fields: dict[str, Any] = {
        "method": "slalom",
        "input": ImageInput(pixels, name, True, areas),
        "units": tuple(units),
        "scores": scores,
        "errors": {name: 0.05 + 0.08 * np.abs(array) for name, array in scores.items()},
        "target": target,
        "output": Output(logits, tuple(map(float, chances)), LABELS, answer),
        "fidelity": Fidelity(0.934, 0.02, 100),
        "calls": 1000,
        "seconds": 2.34,
        "settings": {"seed": 0, "input": {"units": "patches"}},
        "surrogate": SlalomSurrogate(mixing, base, float(np.log(np.exp(importance).sum()))),
        "classifier": {"name": "piste:fashion"},
        "versions": {"piste": "0.1.0"},
    }
    return Explanation(**(fields | changes))


def by(
    method: str, cut: tuple[np.ndarray, list[Unit]] | None = None, **changes: Any
) -> Explanation:
    """As the methods with one score make it."""
    base = explained_image(cut)
    rng = np.random.default_rng(sum(map(ord, method)))
    scores = base.scores["contribution"] + rng.normal(0, 0.4, len(base))
    single: dict[str, Any] = {
        "method": method,
        "scores": {"attribution": scores},
        "errors": {},
        "ranking": "attribution",
        "surrogate": AdditiveSurrogate(0.0, "attribution"),
    }
    return explained_image(cut, **(single | changes))
