"""Fine-tunes a pretrained encoder on labelled texts, as a model for evaluations.

python -m benchmarks.finetune --weights FOLDER --data sst2.parquet --labels negative,positive
                              --out models/sst2

The data are a Parquet file with the columns text, label and split (train, and test or validation).
"""

from __future__ import annotations

import argparse
import logging
from dataclasses import fields
from pathlib import Path

import pandas

from studies.finetuning import Training, accuracy, fine_tune
from studies.reviews import balanced


def _test_split(data: Path) -> str:
    """The split "test", or "validation" if there is none."""
    splits = pandas.read_parquet(data, columns=["split"])["split"]
    return "test" if (splits == "test").any() else "validation"


def main() -> None:
    """Fine-tune, say the accuracy, write the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="folder of the encoder")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--labels", required=True, help="names of the classes, with commas")
    parser.add_argument("--out", type=Path, required=True, help="used as it is if it is there")
    parser.add_argument("--test", help="split that accuracy is measured on; test or validation")
    parser.add_argument("--limit", type=int, help="texts to train on, balanced; default: all")
    for setting in fields(Training):
        kind = type(setting.default)
        parser.add_argument(f"--{setting.name}", type=kind, default=setting.default)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    training = balanced(options.data, "train", options.limit, options.seed)
    test = balanced(options.data, options.test or _test_split(options.data), 4000, options.seed)
    settings = {setting.name: getattr(options, setting.name) for setting in fields(Training)}
    names = options.labels.split(",")
    classifier = fine_tune(options.weights, training, names, options.out, **settings)
    share = accuracy(classifier, test, options.tokens)
    print(f"{options.out}: accuracy {share:.4f} on {len(test)} texts")


if __name__ == "__main__":
    main()
