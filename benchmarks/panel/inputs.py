"""The texts and images that the panel's models are asked about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas

from benchmarks.panel.models import Model, Places

GROUPS = {"short": (6, 24), "middle": (60, 140), "long": (300, 420)}
"""Numbers of words, by white space."""


def inputs(model: Model, places: Places, group: str, count: int) -> Iterator[tuple[int, Any]]:
    """At most ``count`` inputs of a group with their row numbers, drawn once and for all."""
    if model.images:
        if group == "middle":
            table: Any = pandas.read_parquet(
                places.data / "vision" / "imagenet_sample_1000.parquet"
            )
            for number, image in table.sample(count, random_state=0)["image"].items():
                yield int(number), image
        return
    table = pandas.read_parquet(places.data / "text" / f"{model.data}.parquet")
    table = table[table["split"] == model.split]
    words = table["text"].str.split().str.len()
    low, high = GROUPS[group]
    table = table[(words >= low) & (words <= high)]
    for number, text in table.sample(min(count, len(table)), random_state=0)["text"].items():
        yield int(number), text
