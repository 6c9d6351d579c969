"""Which colours raise which kinds of things? Drawn colours against the classes of PASCAL images.

python -m benchmarks.colours --data pascal_seg.parquet --classes voc13_to_imagenet.json \
    --model vit_tiny_patch16_224_imagenet --out colours.md

For every kind of thing that ``--classes`` knows, the class is the one of its classes that the model
names most often, and the examples are the images of which it names that one. Colours are told
from each other. Kinds with fewer than ten such images are left out.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow.parquet

import piste
from piste.concepts import ConceptReport, score
from piste.image import ImageInput

COLOURS = ("red", "yellow", "green", "blue")
LEAST = 10


def things(
    classifier: piste.Classifier, data: Path, classes: Path, most: int
) -> dict[str, tuple[int, list[ImageInput]]]:
    """By kind of thing: the class that is named most often, and the images that got it."""
    kinds = json.loads(classes.read_text(encoding="utf-8"))
    rows = pyarrow.parquet.read_table(data, columns=["image", "label_name"]).to_pylist()
    named: dict[str, dict[int, list[ImageInput]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        image = ImageInput.of(row["image"])
        subject = classifier.subject(image)
        answer = int(np.argmax(subject.ask([subject.whole])[0]))
        if answer in kinds[row["label_name"]]:
            named[row["label_name"]][answer].append(image)
    found = {}
    for kind, by_class in sorted(named.items()):
        best, _ = Counter({one: len(own) for one, own in by_class.items()}).most_common(1)[0]
        if len(by_class[best]) >= LEAST:
            found[kind] = (best, by_class[best][:most])
    return found


def table(report: ConceptReport, kinds: dict[str, str], layer: int, kind: str) -> str:
    """A row for every kind of thing, a column for every colour."""
    lines = [
        f"Layer {layer}, kind {kind}:\n",
        "| images of | class | examples | " + " | ".join(COLOURS) + " | random sets |",
        "|---|---|---|" + "---|" * (len(COLOURS) + 1),
    ]
    for thing, target in kinds.items():
        cells = []
        for colour in COLOURS:
            one = report.of(colour, layer=layer, kind=kind, target=target)
            shown = f"{one.score:.2f} {one.verdict}"
            cells.append(f"**{shown}**" if one.verdict in ("raises", "lowers") else shown)
        usual = f"{one.random_low:.2f}–{one.random_high:.2f}"
        lines.append(
            f"| {thing} | {target} | {report.examples[target]} | {' | '.join(cells)} | {usual} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--classes", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--layers", type=int, nargs="+", default=[8, 12])
    parser.add_argument("--images", type=int, default=12, help="of every class, at most")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    classifier = piste.load(options.model)
    found = things(classifier, options.data, options.classes, options.images)
    kinds = {thing: classifier.labels[number] for thing, (number, _) in found.items()}
    report = score(
        classifier,
        {kinds[thing]: images for thing, (_, images) in found.items()},
        list(COLOURS),
        layers=options.layers,
        repeats=options.repeats,
    )
    parts = [
        table(report, kinds, layer, kind)
        for kind in ("moved", "attention")
        for layer in options.layers
    ]
    print("\n".join(parts))
    if options.out:
        options.out.write_text("\n".join(parts), encoding="utf-8")
        report.to_json(options.out.with_suffix(".json"))


if __name__ == "__main__":
    main()
