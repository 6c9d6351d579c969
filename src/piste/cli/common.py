"""What the commands share: consoles, options, and how options are read and files written."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console

from piste.errors import PisteError
from piste.options import HELP

out = Console()
err = Console(stderr=True)

Text = Annotated[
    str | None,
    typer.Argument(help="The text, the path of an image, or - to read from standard input."),
]
File = Annotated[Path | None, typer.Option("--file", "-f", help="Read the text here.")]
Image = Annotated[Path | None, typer.Option("--image", "-i", help="Read the image here.")]
Pair = Annotated[str | None, typer.Option(help="The second text, for models that read pairs.")]
Model = Annotated[str, typer.Option("--model", "-m", help="A bundled name, a folder or a hub id.")]
Units = Annotated[str | None, typer.Option(help=HELP["units"])]
Target = Annotated[str | None, typer.Option(help=HELP["target"])]
Samples = Annotated[str | None, typer.Option(help=HELP["samples"])]
Seed = Annotated[int, typer.Option(help=HELP["seed"])]
Cache = Annotated[Path | None, typer.Option(help=HELP["cache"])]
Long = Annotated[str, typer.Option(help=HELP["long"])]
Removal = Annotated[str, typer.Option(help=HELP["removal"])]
Runtime = Annotated[
    str, typer.Option(help="What runs the model: torch, torch-int8, onnx, openvino … (see docs).")
]
TextColumn = Annotated[str, typer.Option(help="The column with the texts.")]
LabelColumn = Annotated[str, typer.Option(help="The column with the labels.")]
Split = Annotated[str | None, typer.Option(help="Only rows of this split.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Page = Annotated[Path | None, typer.Option("--html", help="Write a standalone page here.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Write a figure here (png, svg, pdf).")]
Out = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "-o",
        help="Write the result here, as the suffix says: .html, .png, .svg, .pdf, .json, and of "
        "one explanation .csv or .parquet. May be given more than once.",
    ),
]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters are dataclasses of options; every field becomes an option.

    Options come in the order of the groups and of their fields, with the fields' defaults.
    """
    groups = get_type_hints(command)
    groups.pop("return", None)
    options: dict[str, inspect.Parameter] = {}
    for group in groups.values():
        types = get_type_hints(group, include_extras=True)
        for one in fields(group):
            options[one.name] = inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=one.default,
                annotation=types[one.name],
            )

    @wraps(command)
    def run(**given: Any) -> None:
        command(
            **{
                name: group(**{one.name: given[one.name] for one in fields(group)})
                for name, group in groups.items()
            }
        )

    run.__signature__ = inspect.Signature(list(options.values()))  # type: ignore[attr-defined]  # as the inspect module reads it
    run.__annotations__ = {name: one.annotation for name, one in options.items()}
    return run


def start() -> Any:
    """The library, imported only by commands that need it, with transformers kept quiet."""
    import transformers

    import piste

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return piste


def names(text: str | None) -> list[str] | None:
    """Names with commas between them, or None."""
    from piste.evaluation.option_syntax import split_names

    return None if text is None else split_names(text)


def read_options(given: list[str]) -> dict[str, Any]:
    """``name=value`` pairs; a value is read as JSON if it is, else as text."""
    found: dict[str, Any] = {}
    for pair in given:
        name, sign, value = pair.partition("=")
        if not sign or not name.isidentifier():
            raise PisteError(f"--option: expected name=value, such as steps=100, got {pair!r}.")
        try:
            found[name] = json.loads(value.lower() if value in ("True", "False") else value)
        except json.JSONDecodeError:
            found[name] = value
    return found


def read_samples(samples: str | None) -> Any:
    """A whole number, auto, or None for the method's own choice."""
    if samples is None or samples == "auto":
        return samples
    if not (samples.isascii() and samples.isdigit()):
        raise PisteError(f"--samples: expected a whole number or auto, got {samples!r}.")
    return int(samples)


def written(path: Path | None, write: Callable[[Path], object]) -> None:
    """Write a file if one was asked for, and say so."""
    if path is not None:
        write(path)
        _say(path)


WAYS: Mapping[str, str] = {
    ".html": "to_html",
    ".json": "to_json",
    ".csv": "to_csv",
    ".parquet": "to_parquet",
    ".png": "plot",
    ".svg": "plot",
    ".pdf": "plot",
}
"""The method that writes a result, by suffix."""


def check_outs(outs: Sequence[Path] | None, *, tables: bool) -> list[Path]:
    """The files to write; one that no way leads to is refused before the work."""
    known = [suffix for suffix in WAYS if tables or suffix not in (".csv", ".parquet")]
    for path in outs or ():
        if path.suffix.lower() not in known:
            raise PisteError(
                f"--out {str(path)!r} can't be written: its suffix must be {', '.join(known)}."
            )
    return list(outs or ())


def write_outs(outs: Sequence[Path], result: Any) -> None:
    """Write a result to every file, as its suffix says."""
    for path in outs:
        getattr(result, WAYS[path.suffix.lower()])(path=path)
        _say(path)


def _say(path: Path) -> None:
    err.print(f"written: {path}", highlight=False)
