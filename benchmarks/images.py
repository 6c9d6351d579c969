"""Which explanation of an image is faithful, and which finds the object.

    python -m benchmarks.images --data pascal_seg.parquet --classes voc13_to_imagenet.json \
        --model vit_tiny_patch16_224_imagenet --folder pascal-vit

PASCAL images with the mask of one object each, explained by all methods with the same budget.
Only images count of which the model names the object's kind (``--classes`` says which of its
classes are of that kind), since an explanation of another answer need not point at it. Deletion,
insertion and fidelity leave patches out; the pointing game asks whether the top unit lies on the
object. Compare it with the method ``centre``: things stand in the middle of photographs. The second
paper's table and figure (see benchmarks/eggen.py) are written too.
"""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet
from PIL import Image

import piste
from benchmarks.eggen import METRICS, draw, table
from piste.evaluation import Example, Region, evaluate
from piste.image import ImageInput
from piste.show.report.evaluation_html import write_report

METHODS = (
    "slalom",
    "slalom:value",
    "slalom[form=paper]",
    "slalom[form=paper]:importance",
    "lime",
    "kernel_shap",
    "partition_shap",
    "occlusion",
    "gradient",
    "gradient_x_input",
    "integrated_gradients",
    "attnlrp",
    "attention",
    "attention_rollout",
    "attention_norms",
    "grad_sam",
    "gradient_rollout",
    "attention_shapley",
    "attention_shapley[game=cls,gradient=none]",
    "attention_shapley[game=cls,gradient=relu]",
    "attention_shapley[game=cls,gradient=signed]",
    "attention_shapley[game=mutual,gradient=relu]",
    "attention_shapley[game=max_mutual,gradient=relu]",
    "random",
    "centre",
)


def examples(data: Path, kinds: dict[str, list[int]], split: str, seed: int) -> Iterator[Example]:
    """Images in a shuffled order, with the object's mask."""
    columns = ["image", "seg", "seg_value", "label_name", "split"]
    rows = pyarrow.parquet.read_table(data, columns=columns).to_pylist()
    for number in np.random.default_rng(seed).permutation(len(rows)):
        row = rows[number]
        if row["split"] != split or row["label_name"] not in kinds:
            continue
        with Image.open(io.BytesIO(row["seg"])) as image:
            mask = np.asarray(image) == row["seg_value"]
        yield Example(
            str(number),
            label=row["label_name"],
            rationale=Region(mask),
            image=ImageInput.of(row["image"]),
        )


def main() -> None:
    """Run and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--classes", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--examples", type=int, default=40)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--units")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    classifier = piste.load(options.model)
    kinds = json.loads(options.classes.read_text(encoding="utf-8"))
    chosen: list[Example] = []
    seen = 0
    for one in examples(options.data, kinds, options.split, seed=0):
        subject = classifier.subject(one.image)
        seen += 1
        if int(np.argmax(subject.ask([subject.whole])[0])) in kinds[str(one.label)]:
            chosen.append(one)
        if len(chosen) == options.examples:
            break
    print(f"{len(chosen)} of {seen} images, the model names what the others show otherwise")
    results = evaluate(
        classifier,
        chosen,
        methods=options.methods,
        metrics=["deletion", "insertion", "fidelity", "pointing", *METRICS],
        examples=None,
        options={
            name: {"samples": options.samples}
            for name in ("lime", "kernel_shap", "partition_shap")
            if name in options.methods
        },
        units=options.units,
        folder=options.folder,
        progress=True,
    )
    write_report(results, options.folder)
    (options.folder / "table.md").write_text(table(results) + "\n", encoding="utf-8")
    draw(results, options.folder / "comprehensiveness.png", options.folder.name)
    print(table(results))


if __name__ == "__main__":
    main()
