"""Is a concept found that was planted? Small vision transformers learn a coloured patch by heart.

python -m benchmarks.planted_concepts --data fashion_mnist.parquet --out planted.md

Two kinds of clothes are told apart. Every image has a small patch at a random place, red or
blue: with a correlation of 0 the colour says nothing about the class, with 50 % it is right in
three of four images, with 100 % in all. Concepts are told by images of other clothes with red,
blue, green or yellow patches, none of which a model was trained on. What the model really makes of
the patch is measured by painting it anew: the mean change of the class's log-odds from blue to red.

Without --data the clothes are discs and squares under noise.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

import piste
from piste.concepts import ConceptReport, score
from piste.image import ImageInput

SIZE, PATCH = 28, 7
COLOURS = {"red": (220, 30, 30), "blue": (40, 60, 220), "green": (30, 180, 50)}
COLOURS |= {"yellow": (225, 210, 40)}
MOST = 4000
"""Images of a class to learn from."""
CORRELATIONS = (0.0, 0.5, 1.0)
Pixels = NDArray[np.uint8]


class Clothes:
    """Grey images of two classes that are hard to tell apart, and of others."""

    def __init__(self, data: Path | None, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        if data is None:
            self.names = ("disc", "square")
            self.train = [self._shapes(MOST, square) for square in (False, True)]
            self.test = [self._shapes(300, square) for square in (False, True)]
            self.others = np.concatenate([self._shapes(200, square, 0.2) for square in (0, 1)])
            return
        import pandas as pd

        table = pd.read_parquet(data)
        self.names = ("Coat", "Shirt")
        greys = {
            (split, name): np.stack(
                [np.frombuffer(one, np.uint8).reshape(SIZE, SIZE) for one in part["image"]]
            )
            for (split, name), part in table.groupby(["split", "label_name"])
            if split == "test" or name in self.names
        }
        self.train = [greys["train", name][:MOST] for name in self.names]
        self.test = [greys["test", name] for name in self.names]
        rest = [part for (_, name), part in greys.items() if name not in self.names]
        self.others = np.concatenate(rest)

    def _shapes(self, count: int, square: bool | int, noise: float = 0.45) -> Pixels:
        rows, columns = np.mgrid[:SIZE, :SIZE]
        found = np.empty((count, SIZE, SIZE))
        for number in range(count):
            radius = self.rng.uniform(5, 9)
            x, y = self.rng.uniform(10, SIZE - 10, 2)
            away = np.abs(rows - y), np.abs(columns - x)
            inside = np.maximum(*away) < 0.89 * radius if square else np.hypot(*away) < radius
            found[number] = 0.3 + 0.4 * inside
        found += self.rng.normal(0, noise, found.shape)
        return np.round(255 * np.clip(found, 0, 1)).astype(np.uint8)


def patched(greys: Pixels, colours: list[str], rng: np.random.Generator) -> Pixels:
    """Coloured copies, each with a patch of its colour at a random place."""
    images = np.repeat(greys[..., None], 3, axis=3)
    places = rng.integers(0, SIZE - PATCH + 1, (len(greys), 2))
    for image, colour, (row, column) in zip(images, colours, places, strict=True):
        shade = np.array(COLOURS[colour]) + rng.normal(0, 12, (PATCH, PATCH, 3))
        image[row : row + PATCH, column : column + PATCH] = np.clip(shade, 0, 255)
    return images


def coloured(label: int, count: int, correlation: float, rng: np.random.Generator) -> list[str]:
    """Red goes with the second class, blue with the first, as often as the correlation says."""
    right = rng.random(count) < (1 + correlation) / 2
    return ["red" if (label == 1) == one else "blue" for one in right]


def train(
    clothes: Clothes, correlation: float, epochs: int, seed: int
) -> ViTForImageClassification:
    """A small vision transformer."""
    rng = np.random.default_rng([seed, 1])
    images = np.concatenate(
        [
            patched(greys, coloured(label, len(greys), correlation, rng), rng)
            for label, greys in enumerate(clothes.train)
        ]
    )
    labels = np.repeat([0, 1], [len(greys) for greys in clothes.train])
    values = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 127.5 - 1
    goals = torch.from_numpy(labels)
    torch.manual_seed(seed)
    config = ViTConfig(
        image_size=SIZE, patch_size=7, hidden_size=64, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=128, id2label=dict(enumerate(clothes.names)),
        label2id={name: number for number, name in enumerate(clothes.names)},
    )  # fmt: skip
    model = ViTForImageClassification(config)
    steps = epochs * -(-len(labels) // 128)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-3, total_steps=steps)
    for _ in range(epochs):
        for batch in np.array_split(rng.permutation(len(labels)), steps // epochs):
            loss = model(pixel_values=values[batch], labels=goals[batch]).loss
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return model.eval()


def effects(model: ViTForImageClassification, clothes: Clothes, seed: int) -> tuple[float, float]:
    """Accuracy where colours say nothing, and what red instead of blue does to the log-odds."""
    logits = {}
    for colour in ("red", "blue"):
        every = []
        for greys in clothes.test:
            rng = np.random.default_rng([seed, 2])  # the same places for both colours
            images = patched(greys[:300], [colour] * len(greys[:300]), rng)
            values = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 127.5 - 1
            with torch.inference_mode():
                every.append(model(pixel_values=values).logits.numpy())
        logits[colour] = np.stack(every)
    right = [np.mean(found.argmax(axis=2) == [[0], [1]]) for found in logits.values()]
    odds = {colour: found[..., 1] - found[..., 0] for colour, found in logits.items()}
    return float(np.mean(right)), float(np.mean(odds["red"] - odds["blue"]))


def scored(
    model: ViTForImageClassification, clothes: Clothes, repeats: int, seed: int
) -> ConceptReport:
    """All colours against each other, for the second class."""
    rng = np.random.default_rng([seed, 3])
    concepts = {}
    for colour in COLOURS:
        chosen = clothes.others[rng.choice(len(clothes.others), 60, replace=False)]
        concepts[colour] = [ImageInput.of(one) for one in patched(chosen, [colour] * 60, rng)]
    greys = clothes.test[1][:100]
    mixed = patched(greys, [str(one) for one in rng.choice(["red", "blue"], len(greys))], rng)
    processor = ViTImageProcessor(
        size={"height": SIZE, "width": SIZE}, image_mean=[0.5] * 3, image_std=[0.5] * 3
    )
    classifier = piste.load(model, processor)
    return score(
        classifier,
        [ImageInput.of(one) for one in mixed],
        concepts,
        target=clothes.names[1],
        layers=[1, 2, 3],
        repeats=repeats,
        seed=seed,
    )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--models", type=int, default=2, help="for every correlation")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    kinds: tuple[str, ...] = ()
    lines: list[str] = []
    for correlation in CORRELATIONS:
        for seed in range(options.models):
            start = time.perf_counter()
            clothes = Clothes(options.data, seed)
            model = train(clothes, correlation, options.epochs, seed)
            accuracy, effect = effects(model, clothes, seed)
            report = scored(model, clothes, options.repeats, seed)
            if not lines:
                kinds = report.kinds
                lines += [
                    "| correlation | model | accuracy | red for blue | concept | layer | "
                    + " | ".join(kinds)
                    + " |",
                    "|---|---|---|---|---|---|" + "---|" * len(kinds),
                ]
            for first in report.select():
                cells = []
                for kind in kinds:
                    one = report.of(first.concept, layer=first.layer, kind=kind)
                    shown = f"{one.score:.2f} {one.verdict}"
                    cells.append(f"**{shown}**" if one.verdict in ("raises", "lowers") else shown)
                lines.append(
                    f"| {correlation:.0%} | {seed} | {accuracy:.2f} | {effect:+.2f} | "
                    f"{first.concept} | {first.layer} | " + " | ".join(cells) + " |"
                )
            print(
                f"correlation {correlation:.0%}, model {seed}: {time.perf_counter() - start:.0f} s",
                flush=True,
            )
            if options.out:
                options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
