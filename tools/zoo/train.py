"""Command line that trains and evaluates the models shipped with the library.

``python -m tools.zoo.train reviews --data imdb.parquet --out reviews`` trains the encoder,
``reviews-gpt`` the causal model, ``fashion --data fashion_mnist.parquet --out fashion`` the image
model, and ``evaluate`` measures a saved model on the test split.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from tools.zoo.image_card import write_image_card
from tools.zoo.image_recipes import IMAGE_RECIPES, ImageRecipe
from tools.zoo.image_training import PROCESSOR_FILE, evaluate_image_folder, train_image_model
from tools.zoo.model_card import Run
from tools.zoo.optimising import DEFAULT_THREADS, Scores
from tools.zoo.text_card import write_text_card
from tools.zoo.text_recipes import TEXT_RECIPES, TextRecipe
from tools.zoo.text_training import evaluate_text_folder, train_text_model

logger = logging.getLogger(__name__)

RECIPES: dict[str, TextRecipe | ImageRecipe] = {**TEXT_RECIPES, **IMAGE_RECIPES}


def evaluate(folder: Path, data: Path) -> dict[float, Scores]:
    """Score a saved model on the test split, by the share of the input that it is shown."""
    if (folder / PROCESSOR_FILE).is_file():
        return evaluate_image_folder(folder, data)
    return {1.0: evaluate_text_folder(folder, data)}


def train(recipe: TextRecipe | ImageRecipe, data: Path, out: Path) -> dict[float, Scores]:
    """Train one model, save it with its model card, and return its test scores."""
    started = time.monotonic()
    if isinstance(recipe, ImageRecipe):
        model = train_image_model(recipe, data, out)
    else:
        model = train_text_model(recipe, data, out)
    seconds = time.monotonic() - started
    # Scored from the saved files, so that the card states what a user will get.
    scores = evaluate(out, data)
    run = Run(scores, model.num_parameters(), seconds, torch.get_num_threads())
    if isinstance(recipe, ImageRecipe):
        write_image_card(out, recipe, run)
    else:
        write_text_card(out, recipe, run)
    return scores


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.zoo.train", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, recipe in RECIPES.items():
        command = commands.add_parser(name, help=f"train the model: {recipe.architecture}")
        command.add_argument("--out", type=Path, required=True, help="folder to write")
    command = commands.add_parser("evaluate", help="accuracy of a saved model on the test split")
    command.add_argument("--model", type=Path, required=True, help="folder of the saved model")
    for command in commands.choices.values():
        command.add_argument(
            "--data", type=Path, required=True, help="IMDB reviews or Fashion-MNIST as parquet"
        )
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
        scores = evaluate(options.model, options.data)
    else:
        scores = train(RECIPES[options.command], options.data, options.out)
    for share, measured in scores.items():
        logger.info(
            "%.0f %% of the input shown: test accuracy %.4f, log loss %.3f, largest margin %.1f "
            "on %d examples", 100 * share, *measured,
        )  # fmt: skip


if __name__ == "__main__":
    main()
