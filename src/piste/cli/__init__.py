"""The command line: one module per command, or per few that belong together."""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import version
from typing import Annotated

import typer

from piste.cli import concepts, corpus, demo, evaluate, explain, serve, words
from piste.cli.common import err, out
from piste.errors import PisteError

app = typer.Typer(
    help="Piste explains the decisions of transformer classifiers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    explain.explain,
    explain.compare,
    evaluate.evaluate,
    concepts.concepts,
    corpus.corpus,
    corpus.query,
    words.words,
    words.diff,
    words.vocabulary,
    serve.serve,
    demo.demo,
    demo.models,
    demo.methods,
    demo.metrics,
):
    app.command()(command)


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


def main() -> None:
    """Run the command line."""
    run_command(app)


def run_command(app: typer.Typer) -> None:
    """Run an application; a problem of the user's is one sentence and exit code 2."""
    warnings.showwarning = lambda message, *_, **__: err.print(f"note: {message}", style="yellow")
    try:
        app()
    except PisteError as problem:
        err.print(f"piste: {problem}", style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)
    except (OSError, UnicodeError) as problem:  # a full disk, a terminal without these letters
        err.print(f"piste: a file could not be read or written: {problem}", markup=False)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("piste: stopped.")
        sys.exit(130)
