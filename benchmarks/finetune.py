"""Fine-tunes a pretrained encoder on labelled texts, as a model for evaluations.

python -m benchmarks.finetune --weights FOLDER --data sst2.parquet --labels negative,positive
                              --out models/sst2

The data are a Parquet file with the columns text, label and split (train, and test or validation).
"""

from __future__ import annotations

import argparse
import logging
import sys
from dataclasses import fields
from pathlib import Path

import pandas

from piste.errors import PisteError
from studies.finetuning import Training, accuracy, fine_tune
from studies.reviews import balanced


def choose_test_split(data: Path, wanted: str | None = None) -> str:
    """The split that accuracy is measured on, or an error that names those that are there.

    Without ``wanted`` it is "test", "validation", or the only one besides "train".
    """
    splits = pandas.read_parquet(data, columns=["split"])["split"]
    there = sorted(splits.dropna().astype(str).unique())
    others = [name for name in there if name != "train"]
    for name in (wanted,) if wanted is not None else ("test", "validation"):
        if name in there:
            return name
    if wanted is None and len(others) == 1:
        return others[0]
    expected = "test or validation" if wanted is None else repr(wanted)
    raise PisteError(
        f"{data.name} has the splits {', '.join(there) or 'none'}, expected {expected}: choose one "
        "by --test."
    )


def main() -> None:
    """Fine-tune, say the accuracy, write the model."""
    options = _parser().parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        _run(options)
    except PisteError as problem:
        print(problem, file=sys.stderr)
        raise SystemExit(2) from problem


def _parser() -> argparse.ArgumentParser:
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
    return parser


def _run(options: argparse.Namespace) -> None:
    split = choose_test_split(options.data, options.test)
    training = balanced(options.data, "train", options.limit, options.seed)
    test = balanced(options.data, split, 4000, options.seed)
    settings = {setting.name: getattr(options, setting.name) for setting in fields(Training)}
    names = options.labels.split(",")
    classifier = fine_tune(options.weights, training, names, options.out, **settings)
    share = accuracy(classifier, test, options.tokens)
    print(f"{options.out}: accuracy {share:.4f} on {len(test)} texts")


if __name__ == "__main__":
    main()
