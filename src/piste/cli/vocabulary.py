"""The command ``piste vocabulary``: what the words of a corpus say and weigh."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from piste.cli import common
from piste.errors import PisteError

_SHOWN = 10


def vocabulary(
    input: Annotated[
        Path,
        typer.Argument(help="A .csv, .tsv, .jsonl, .parquet or .arrow file, or a folder of them."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The .parquet file it is written to.")],
    model: common.Model = "piste:reviews",
    target: common.Target = None,
    documents: Annotated[int, typer.Option(help="How many documents to ask about.")] = 2000,
    questions: Annotated[int, typer.Option(help="Questions about each of them.")] = 12,
    units: common.Units = None,
    text_column: Annotated[str, typer.Option(help="The column with the texts.")] = "text",
    seed: common.Seed = 0,
    runtime: common.Runtime = "torch",
    page: common.Page = None,
    as_json: common.AsJson = False,
) -> None:
    """Fit one surrogate to a whole corpus: an effect and a value for every word in it."""
    if not out.resolve().parent.is_dir():
        raise PisteError(f"The folder of {str(out)!r} is not there: make it, or name another file.")
    common.start()
    from piste import corpus

    found = corpus.vocabulary(
        input,
        model,
        target=target,
        documents=documents,
        questions=questions,
        units=units,
        columns=corpus.Columns(text_column),
        seed=seed,
        runtime=runtime,
    )
    found.to_parquet(out)
    if page is not None:
        from piste.show.html import page_shell, words_html

        common.written(
            page, lambda path: page_shell.document(words_html.of_vocabulary(found), path)
        )
    rows = ranked(found)
    if as_json:
        about = {name: found.about[name] for name in ("target", "documents", "questions", "r2")}
        about["mixing"] = vars(found.mixing)
        typer.echo(json.dumps({"file": str(out), "words": len(found), **about, **rows}))
        return
    _show(found, rows)
    common.err.print(f"written: {out}", highlight=False)


def ranked(found: Any) -> dict[str, list[dict[str, Any]]]:
    """The words that do most for and against the target."""
    table = found.table()
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    least = max(3, found.about["documents"] // 200)
    usual = sorted(
        (row for row in rows if row["documents"] >= least), key=lambda row: row["effect"]
    )
    above = [row for row in usual[::-1] if row["effect"] > 0]
    below = [row for row in usual if row["effect"] < 0]
    return {"for": above[:_SHOWN], "against": below[:_SHOWN]}


def _show(found: Any, rows: dict[str, list[dict[str, Any]]]) -> None:
    about, weighed = found.about, found.mixing.told
    common.out.print(
        f"{len(found):,} words of {about['documents']:,} documents, {about['questions']:,} "
        f"questions; R² {about['r2']:.2f} on documents it was not fitted to; mixing "
        f"{found.mixing.value:.2f}" + ("" if weighed else ": weights are not determined"),
        highlight=False,
    )
    names = ("effect", "value", *(["importance"] if weighed else []))
    for side, chosen in rows.items():
        shown = Table(f"{side} the {about['target']}", *names, "documents")
        for row in chosen:
            numbers = [f"{row[name]:+.2f}{_error(row[f'{name}_error'])}" for name in names]
            shown.add_row(row["word"].replace("[", "\\["), *numbers, str(row["documents"]))
        common.out.print(shown)


def _error(error: float) -> str:
    """Files of earlier versions have no error of a value."""
    return f" ± {error:.2f}" if math.isfinite(error) else ""
