"""What it saves to leave patches out, and how well SLALOM fits images.

python -m benchmarks.patches --model vit_tiny_patch16_224_imagenet --images FOLDER

Times are of the processor, the best of several rounds, so that other work on the machine counts
little. R² is over 200 further questions of all sizes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import piste
from piste.classifiers import ImageClassifier
from piste.engine import Engine
from piste.slalom import sampling

_FITS: dict[str, dict[str, Any]] = {
    "default, 100 questions": {"samples": 100},
    "default, 300 questions": {"samples": 300},
    "the paper's form, 300 questions": {"form": "paper", "samples": 300},
}


def clock(work: Callable[[], object], rounds: int) -> float:
    """Seconds of the processor, the least of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def speed(classifier: ImageClassifier, image: Path, questions: int, rounds: int) -> None:
    """Questions of all sizes: patches left out, painted over, and as many full passes."""
    print("| what | units | seconds |\n|---|---|---|")
    for units in ("patches", "grid:7"):
        for removal in ("delete", "mean"):
            subject = classifier.subject(image, units=units, removal=removal)
            rng = np.random.default_rng(0)
            asked = sampling.draw("subsets", len(subject), questions, rng)
            found = clock(lambda: Engine(classifier).ask([(subject, asked)]), rounds)  # noqa: B023  # called at once
            print(f"| {removal} | {units} | {found:.1f} |", flush=True)
    values = classifier.tensors(subject)["pixel_values"].expand(10, -1, -1, -1).contiguous()

    def full() -> None:
        with torch.inference_mode():
            for _ in range(questions // 10):
                classifier.model(pixel_values=values)

    print(f"| the model itself, batches of 10 | | {clock(full, rounds):.1f} |", flush=True)


def fits(classifier: ImageClassifier, images: list[Path]) -> None:
    """R² of SLALOM on questions of its own, by what it was fitted to."""
    rows = []
    for image in images:
        subject = classifier.subject(image)
        asked = sampling.draw("subsets", len(subject), 200, np.random.default_rng(99))
        kept = np.zeros((len(asked), len(subject)), dtype=bool)
        for row, units in zip(kept, asked, strict=True):
            row[units] = True
        logits = subject.ask(asked)
        found = []
        for options in _FITS.values():
            e = piste.explain(classifier, image, **options)
            truth = e.target(logits)
            error = ((truth - e.predict(kept)) ** 2).sum()
            found.append(1 - error / ((truth - truth.mean()) ** 2).sum())
        rows.append(found)
        print(f"{image.name}: {', '.join(f'{one:.2f}' for one in found)}", flush=True)
    print("| fitted to | R², mean | median |\n|---|---|---|")
    for name, mean, median in zip(_FITS, np.mean(rows, 0), np.median(rows, 0), strict=True):
        print(f"| {name} | {mean:.2f} | {median:.2f} |")


def main() -> None:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--images", type=Path, required=True, help="a folder of images")
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=("speed", "fits"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    classifier = piste.load(options.model)
    assert isinstance(classifier, ImageClassifier)
    images = sorted(path for path in options.images.iterdir() if path.is_file())
    if options.only != "fits":
        speed(classifier, images[0], options.questions, options.rounds)
    if options.only != "speed":
        fits(classifier, images)


if __name__ == "__main__":
    main()
