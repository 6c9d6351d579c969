"""What the panel's commands have in common: their options, and the inputs they go through."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.panel.inputs import GROUPS, inputs
from benchmarks.panel.models import PANEL, Model, Places
from piste.classifiers import Classifier


def parser(about: str, texts: int) -> argparse.ArgumentParser:
    """A parser with the options that all commands have; ``texts`` is the usual number."""
    made = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--data", type=Path, required=True)
    made.add_argument("--weights", type=Path, required=True)
    made.add_argument("--models", type=Path, required=True)
    made.add_argument("--texts", type=int, default=texts)
    made.add_argument("--only", nargs="+")
    return made


def places(options: argparse.Namespace) -> Places:
    """The folders that were given."""
    return Places(options.data, options.weights, options.models)


def chosen(options: argparse.Namespace, set_aside: bool = False) -> list[Model]:
    """The models that were named, or all; those set aside only if asked for."""
    return [
        model
        for model in PANEL
        if model.set_aside == set_aside and (options.only is None or model.name in options.only)
    ]


def one_group(about: str, texts: int) -> tuple[argparse.Namespace, Iterator[Case]]:
    """Options, and every chosen model that has inputs of the chosen group, with those inputs."""
    made = parser(about, texts)
    made.add_argument("--group", default="middle", choices=list(GROUPS))
    options = made.parse_args()
    return options, _cases(options)


Case = tuple[Model, Classifier, list[Any]]


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    for model in chosen(options):
        some = [given for _, given in inputs(model, places(options), options.group, options.texts)]
        if some:
            yield model, model.load(places(options)), some
