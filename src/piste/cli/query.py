"""The command ``piste query``: SQL over the results of a corpus run."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from piste.cli import common
from piste.cli.demo import list_rows
from piste.errors import PisteError


def query(
    folder: Annotated[Path | None, typer.Argument(help="The folder of a corpus run.")] = None,
    question: Annotated[
        str | None, typer.Argument(help="SQL over documents, units, errors; or a ready one.")
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="Name the ready questions.")] = False,
    table: Annotated[Path | None, typer.Option("--csv", help="Write the answer here.")] = None,
    as_json: common.AsJson = False,
) -> None:
    """Ask the results of a corpus run: in SQL, or by the name of a ready question."""
    from piste.corpus.sql import READY
    from piste.corpus.sql import query as ask

    if list_them:
        list_rows([(name, about) for name, (about, _) in READY.items()], as_json)
        return
    if folder is None or question is None:
        raise PisteError(
            "What is asked? Give the folder of a run and SQL, or one of: " + ", ".join(READY) + "."
        )
    answer = ask(folder, question)
    if as_json:
        typer.echo(json.dumps(answer.to_dicts(), ensure_ascii=False, default=str))
        return
    if table is not None:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerows([answer.columns, *answer.rows])
        text = buffer.getvalue()
        common.written(table, lambda path: _write(path, text))
        return
    shown = Table(*answer.columns)
    for row in answer.rows:
        shown.add_row(*map(_cell, row))
    common.out.print(shown)


def _write(path: Path, text: str) -> None:
    from piste.data.storage import write_text

    write_text(path, text)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    # No markup: a text may hold square brackets.
    return "" if value is None else str(value).replace("[", "\\[")
