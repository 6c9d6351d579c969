"""What the commands share: consoles, options, and how a text or an option is read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from piste.errors import PisteError

out = Console()
err = Console(stderr=True)

Text = Annotated[str | None, typer.Argument(help="The text, or - to read it from standard input.")]
File = Annotated[Path | None, typer.Option("--file", "-f", help="Read the text here.")]
Pair = Annotated[str | None, typer.Option(help="The second text, for models that read pairs.")]
Model = Annotated[str, typer.Option("--model", "-m", help="A bundled name, a folder or a hub id.")]
Units = Annotated[str, typer.Option(help="words, tokens or sentences.")]
Target = Annotated[
    str | None,
    typer.Option(help='A class by name or number, "a vs b", or all. Default: the predicted.'),
]
Samples = Annotated[str | None, typer.Option(help="How many questions to ask, or auto.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Runtime = Annotated[
    str, typer.Option(help="What runs the model: torch, torch-int8, onnx, openvino … (see docs).")
]
Cache = Annotated[Path | None, typer.Option(help="Keep answers in this folder for later runs.")]
Long = Annotated[
    str, typer.Option(help="A text longer than the model reads: error, truncate or windows.")
]
Removal = Annotated[
    str, typer.Option(help="What removed units leave: delete, mask, pad or attention.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Page = Annotated[Path | None, typer.Option("--html", help="Write a standalone page here.")]
Picture = Annotated[
    Path | None, typer.Option("--plot", help="Write a picture here (png, svg, pdf).")
]


def start() -> Any:
    """The library, imported only by commands that need it, with transformers kept quiet."""
    import transformers

    import piste

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return piste


def names(text: str | None) -> list[str] | None:
    """Names with commas between them, or None."""
    from piste.evaluation.brackets import split_names

    return None if text is None else split_names(text)


def read_text(text: str | None, file: Path | None) -> str:
    """The text from the argument, standard input or a file; exactly one of them."""
    if (text is None) == (file is None):
        raise PisteError("Give either a text, - for standard input, or --file with a path.")
    try:
        if file is not None:
            if not file.is_file():
                raise PisteError(f"There is no file {str(file)!r}.")
            content = file.read_bytes()
        elif text == "-":
            content = sys.stdin.buffer.read()
        else:
            return text or ""
        return content.decode("utf-8").strip("\ufeff\r\n")
    except UnicodeDecodeError as problem:
        source = repr(str(file)) if file else "standard input"
        raise PisteError(
            f"{source} is not UTF-8 text (byte {problem.start}): convert it first, for example "
            "with `iconv -f latin1 -t utf-8`."
        ) from problem
    except OSError as problem:
        raise PisteError(f"{str(file)!r} could not be read: {problem.strerror}.") from problem


def read_options(given: list[str]) -> dict[str, Any]:
    """``name=value`` pairs; a value is read as JSON if it is, else as text."""
    found: dict[str, Any] = {}
    for pair in given:
        name, sign, value = pair.partition("=")
        if not sign or not name.isidentifier():
            raise PisteError(f"--option {pair!r} is wrong: name=value is wanted, as steps=100.")
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
        raise PisteError(f"--samples {samples!r} is wrong: a whole number or auto is wanted.")
    return int(samples)


def written(path: Path | None, write: Any) -> None:
    """Write a file if one is wanted, and say so."""
    if path is not None:
        write(path)
        err.print(f"written: {path}", highlight=False)
