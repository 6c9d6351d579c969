"""The application: all commands."""

from __future__ import annotations

from typing import Annotated

import typer

from piste.cli import concepts, corpus, demo, evaluate, explain, serve, words
from piste.cli.common import out

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
        from importlib.metadata import version

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
