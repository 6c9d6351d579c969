"""What the model cards of all recipes share."""

from __future__ import annotations

from typing import NamedTuple

from tools.zoo.optimising import DEFAULT_THREADS, Scores, Settings


class Run(NamedTuple):
    """What is known about a training run only once it is over."""

    # By the share of the input that the model was shown; 1.0 is the whole of it.
    scores: dict[float, Scores]
    parameters: int
    seconds: float
    threads: int


def folder_name(recipe: Settings) -> str:
    """The folder of the trained model inside the package."""
    return recipe.name.replace("-", "_")


def training_command(recipe: Settings, run: Run, data: str) -> str:
    """The command that was run, with the data set under its usual name."""
    out = folder_name(recipe)
    command = f"python -m tools.zoo.train {recipe.name} --data {data} --out {out}"
    if run.threads != DEFAULT_THREADS:
        command += f" --threads {run.threads}"
    return command
