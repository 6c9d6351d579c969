"""Command line that trains and evaluates the models shipped with the library.

``python -m piste.zoo.train reviews --data imdb.parquet --out reviews`` trains the encoder,
``reviews-gpt`` the causal model, and ``evaluate`` measures a saved model on the test split.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from piste.zoo.model_card import Run, write_card
from piste.zoo.recipes import RECIPES, Recipe
from piste.zoo.training import DEFAULT_THREADS, Scores, evaluate_folder, fit, hold_out, read_split

logger = logging.getLogger(__name__)


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, out: Path) -> None:
    """Write weights, configuration and tokenizer to a folder that ``from_pretrained`` reads."""
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    # Evaluation leaves its truncation set in the tokenizer; a saved one should not cut silently.
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(out)
    # The class name that is saved by default is unknown to transformers before version 5; this
    # one is known to all.
    settings_file = out / "tokenizer_config.json"
    settings = json.loads(settings_file.read_text(encoding="utf-8"))
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    settings_file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def train(recipe: Recipe, data: Path, out: Path) -> Scores:
    """Train one model, save it with its tokenizer and model card, and return its test scores."""
    started = time.monotonic()
    training, held_out = hold_out(read_split(data, "train"), recipe.seed)
    logger.info("training on %d reviews, %d held out", len(training.texts), len(held_out.texts))
    tokenizer = recipe.build_tokenizer(training.texts)
    model = fit(recipe, tokenizer, training, held_out)
    seconds = time.monotonic() - started
    save(model, tokenizer, out)
    # Scored from the saved files, so that the card states what a user will get.
    scores = evaluate_folder(out, data)
    run = Run(scores, model.num_parameters(), seconds, torch.get_num_threads())
    write_card(out, recipe, run)
    return scores


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m piste.zoo.train", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, recipe in RECIPES.items():
        command = commands.add_parser(name, help=f"train the model: {recipe.architecture}")
        command.add_argument("--out", type=Path, required=True, help="folder to write")
    command = commands.add_parser("evaluate", help="accuracy of a saved model on the test split")
    command.add_argument("--model", type=Path, required=True, help="folder of the saved model")
    for command in commands.choices.values():
        command.add_argument("--data", type=Path, required=True, help="IMDB reviews as parquet")
        command.add_argument(
            "--threads",
            type=int,
            default=DEFAULT_THREADS,
            help="threads of PyTorch; more are faster, but round differently",
        )
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(options.threads)
    if options.command == "evaluate":
        scores = evaluate_folder(options.model, options.data)
    else:
        scores = train(RECIPES[options.command], options.data, options.out)
    logger.info("test accuracy %.4f, log loss %.3f, largest margin %.1f on %d reviews", *scores)


if __name__ == "__main__":
    main()
