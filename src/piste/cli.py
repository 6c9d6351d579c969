"""The command line: explain, demo, and what there is to choose from."""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from piste import zoo
from piste.errors import PisteError

app = typer.Typer(
    help="Piste explains the decisions of transformer classifiers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console()
err = Console(stderr=True)

DEMO_REVIEWS = (
    "A slow start, but a wonderful ending.",
    "I expected another dull sequel. Instead it's a clever, warm and beautifully acted little "
    "film, and the last half hour is simply perfect. The music isn't great, though.",
    "The cast is good and the photography is superb, but none of it can save this mess: the plot "
    "is ridiculous, the jokes are awful, and after an hour I just didn't care any more. What a "
    "waste of talent.",
)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"piste {version('piste')}", highlight=False)
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Say the version and stop.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Piste explains the decisions of transformer classifiers."""


@app.command()
def explain(
    text: Annotated[
        str | None, typer.Argument(help="The text, or - to read it from standard input.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the text here.")] = None,
    pair: Annotated[
        str | None, typer.Option(help="The second text, for models that read pairs.")
    ] = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="A bundled name, a folder or a hub id.")
    ] = "piste:reviews",
    method: Annotated[str, typer.Option(help="See `piste methods`.")] = "slalom",
    units: Annotated[str, typer.Option(help="words, tokens or sentences.")] = "words",
    target: Annotated[
        str | None,
        typer.Option(help='A class by name or number, "a vs b", or all. Default: the predicted.'),
    ] = None,
    samples: Annotated[str | None, typer.Option(help="How many questions to ask, or auto.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same result.")] = 0,
    runtime: Annotated[
        str,
        typer.Option(help="What runs the model: torch, torch-int8, onnx, openvino … (see docs)."),
    ] = "torch",
    cache: Annotated[
        Path | None, typer.Option(help="Keep answers in this folder for later runs.")
    ] = None,
    long: Annotated[
        str, typer.Option(help="A text longer than the model reads: error, truncate or windows.")
    ] = "error",
    sampler: Annotated[
        str | None, typer.Option(help="slalom: mix, subsets, short or deletion.")
    ] = None,
    solver: Annotated[str | None, typer.Option(help="slalom: newton, sgd or analytic.")] = None,
    share: Annotated[
        str | None, typer.Option(help="slalom: one pair of scores per type or per occurrence.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a standalone page here.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Write the value–importance plane here (png, svg, pdf).")
    ] = None,
) -> None:
    """Explain one decision: which words speak for it, and how much they count."""
    given = _read(text, file)
    piste = _start()
    options: dict[str, Any] = {"sampler": sampler, "solver": solver, "share": share}
    options = {name: value for name, value in options.items() if value is not None}
    # Names are checked inside, with a sentence for the user.
    options |= {"units": units, "long": long, "samples": _samples(samples)}
    explanation = piste.explain(
        piste.load(model, runtime=runtime),
        given if pair is None else (given, pair),
        method=method,
        target=target,
        seed=seed,
        cache=cache,
        **options,
    )
    if as_json:
        typer.echo(explanation.to_json())
    else:
        out.print(explanation)
    for path, write in ((html, explanation.to_html), (plot, _plane(explanation))):
        if path is not None:
            write(path)
            err.print(f"written: {path}", highlight=False)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where pages and pictures go.")] = Path("piste-demo"),
    model: Annotated[str, typer.Option("--model", "-m", help="A bundled name.")] = "piste:reviews",
) -> None:
    """Explain a few reviews with a bundled model, in the terminal, as pages and as pictures."""
    _make_folder(folder)
    piste = _start()
    explanations = piste.explain(piste.load(model), list(DEMO_REVIEWS))
    written = []
    for number, explanation in enumerate(explanations, start=1):
        out.print(explanation)
        out.print()
        page = folder / f"review-{number}.html"
        explanation.to_html(page)
        written.append(page)
        for kind in ("plane", "text", "bars"):
            picture = folder / f"review-{number}-{kind}.png"
            explanation.plot(kind, picture)
            written.append(picture)
    out.print(f"{len(written)} files are in {folder.resolve()}:", highlight=False)
    for path in written:
        out.print(f"  {path}", highlight=False)
    out.print('Open a page in a browser, then try:  piste explain "your own review"')


@app.command()
def models(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """List the bundled models; a folder or a hub id works as well."""
    rows = [(name, zoo.describe(name)) for name in zoo.names()]
    _list(
        rows, as_json, "Any Hugging Face sequence classifier works too: give a folder or a hub id."
    )


@app.command()
def methods(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """List the methods."""
    from piste.methods import METHODS

    rows = [(name, f"{method.about} (needs {method.needs})") for name, method in METHODS.items()]
    _list(rows, as_json)


def _start() -> Any:
    """The library, imported only by commands that need it, with transformers kept quiet."""
    import transformers

    import piste

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return piste


def _list(rows: list[tuple[str, str]], as_json: bool, note: str = "") -> None:
    if as_json:
        typer.echo(json.dumps([{"name": name, "about": about} for name, about in rows]))
        return
    table = Table(show_header=False, box=None)
    for row in rows:
        table.add_row(*row)
    out.print(table)
    if note:
        out.print(note, style="dim")


def _read(text: str | None, file: Path | None) -> str:
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


def _samples(samples: str | None) -> Any:
    if samples is None or samples == "auto":
        return samples
    if not (samples.isascii() and samples.isdigit()):
        raise PisteError(f"--samples {samples!r} is wrong: a whole number or auto is wanted.")
    return int(samples)


def _plane(explanation: Any) -> Any:
    return lambda path: explanation.plot("plane", path)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise PisteError(
            f"The folder {str(folder)!r} can't be made: {problem.strerror}."
        ) from problem


def main() -> None:
    """Run the command line; a problem of the user's is one sentence and exit code 2."""
    warnings.showwarning = lambda message, *_, **__: err.print(f"note: {message}", style="yellow")
    try:
        app()
    except PisteError as problem:
        err.print(f"piste: {problem}", style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)
    except (OSError, UnicodeError) as problem:  # a full disk, a terminal without these letters
        err.print(f"piste: the output could not be written: {problem}", markup=False)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("piste: stopped.")
        sys.exit(130)


if __name__ == "__main__":
    main()
