"""Does a vision transformer see zebras by their stripes? The experiment of the TCAV papers.

python -m benchmarks.zebra --data FOLDER --model vit_tiny_patch16_224_imagenet --out zebra.md

The folder holds dtd_concepts.parquet (textures: image, concept, vit_tiny_p_zebra) and
tcav_zebra_random.parquet (photographs: image, group). Striped images that the model takes for
zebras are left out, or the result would be circular; ``--raw`` keeps them.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

import piste
from piste.concepts import ConceptReport, score
from piste.image import ImageInput

CONCEPTS = ("striped", "dotted", "zigzagged")
TEXTURES = ("chequered", "honeycombed", "grid", "knitted", "cracked")
MOST_ZEBRA = 0.05
"""Chance of a zebra above which a texture's image is taken for one."""


def read_images(table: pd.DataFrame, most: int | None = None) -> list[ImageInput]:
    """The first images of a table, decoded."""
    images = table["image"].iloc[:most]
    return [ImageInput.of(Image.open(io.BytesIO(image))) for image in images]


def read(folder: Path, *, raw: bool, most: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Concepts with their images; zebras, textures and photographs."""
    textures = pd.read_parquet(folder / "dtd_concepts.parquet")
    if not raw:
        textures = textures[textures["vit_tiny_p_zebra"] < MOST_ZEBRA]
    photographs = pd.read_parquet(folder / "tcav_zebra_random.parquet")
    concepts = {name: read_images(textures[textures["concept"] == name], most) for name in CONCEPTS}
    others = [textures[textures["concept"] == name].iloc[: most // 2] for name in TEXTURES]
    rest = {
        "zebras": read_images(photographs[photographs["group"] == "zebra"]),
        "other textures": read_images(pd.concat(others)),
        "photographs": read_images(photographs[photographs["group"] == "random"]),
    }
    return concepts, rest


def compared(report: ConceptReport, against: str) -> str:
    """Every concept's row of every layer, all kinds of scores side by side."""
    lines = [
        f"Told from {against}:",
        "",
        "| concept | layer | told apart | " + " | ".join(report.kinds) + " |",
        "|---|---|---|" + "---|" * len(report.kinds),
    ]
    for first in report.select():
        cells = []
        for kind in report.kinds:
            one = report.of(first.concept, layer=first.layer, kind=kind)
            shown = f"{one.score:.2f} ({one.random_low:.2f}–{one.random_high:.2f})"
            bold = one.verdict in ("raises", "lowers")
            cells.append(f"**{shown} {one.verdict}**" if bold else f"{shown} {one.verdict}")
        lines.append(
            f"| {first.concept} | {first.layer} | {first.accuracy:.2f} | "
            + " | ".join(cells)
            + " |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--layers", default="4,8,10,12")
    parser.add_argument("--images", type=int, default=60, help="of every concept, at most")
    parser.add_argument("--against", default="each other,other textures,photographs")
    parser.add_argument("--number", default="log-odds", help="or logit, as in the papers")
    parser.add_argument("--raw", action="store_true", help="keep striped images of zebras")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    classifier = piste.load(options.model)
    concepts, rest = read(options.data, raw=options.raw, most=options.images)
    parts = []
    for against in options.against.split(","):
        if against != "each other" and against not in rest:
            parser.error(f"--against {against!r} is none of: each other, {', '.join(rest)}")
        report = score(
            classifier,
            rest["zebras"],
            concepts,
            target="zebra",
            negatives=rest.get(against),
            layers=[int(layer) for layer in options.layers.split(",")],
            repeats=options.repeats,
            number=options.number,
        )
        parts.append(compared(report, against))
        parts.append(f"{report.calls} passes, {report.seconds:.0f} s\n")
        print("\n".join(parts[-2:]), flush=True)
        if options.out:
            options.out.write_text("\n".join(parts), encoding="utf-8")
            name = against.replace(" ", "-")
            report.to_json(options.out.with_name(f"{options.out.stem}-{name}.json"))
            report.plot(options.out.with_name(f"{options.out.stem}-{name}.png"))


if __name__ == "__main__":
    main()
