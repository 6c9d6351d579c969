"""``python -m studies NAME``: the papers' experiments, from data to figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import studies
from piste.cli import command, options, run_command
from piste.cli.demo import list_rows
from piste.errors import PisteError


def study(
    name: Annotated[str | None, typer.Argument(help="Which one; --list names them.")] = None,
    list_them: Annotated[bool, typer.Option("--list", help="Name the studies and stop.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="Minutes and rough, or everything.")
    ] = False,
    folder: Annotated[Path, typer.Option(help="Where results and trained models go.")] = Path(
        "piste-studies"
    ),
    data: Annotated[
        Path | None, typer.Option(help="Folder of data sets, for full runs on real texts.")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Folder of pretrained models, a folder each.")
    ] = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Repeat an experiment of the papers; one that was stopped goes on where it was."""
    if list_them:
        list_rows([(one, studies.describe(one)) for one in studies.names()], as_json)
        return
    if name is None:
        raise PisteError("Which study? Name one of: " + ", ".join(studies.names()) + ".")
    command.start()
    found = studies.run(name, folder, quick=quick, seed=seed, data=data, weights=weights)
    own = folder / f"{name}{'-quick' * quick}"
    if as_json:
        claims = [dict(zip(("paper", "ours", "it"), one, strict=True)) for one in found.claims]
        typer.echo(json.dumps({"study": name, "folder": str(own), "claims": claims}))
        return
    command.out.print(found.markdown(), highlight=False, markup=False, soft_wrap=True)
    command.out.print(f"written: {own / 'findings.md'}", highlight=False)


def main() -> None:
    """Run the command; a problem of the user's is one sentence and exit code 2."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(study)
    run_command(lambda: app)


if __name__ == "__main__":
    main()
