"""The commands ``piste words``, ``diff`` and ``vocabulary``: what words do in a corpus."""

from __future__ import annotations

import json
import math
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from piste.cli import command, options
from piste.errors import PisteError
from piste.validation import check_count

Least = Annotated[int, typer.Option(help="Only words in at least so many documents.")]
Top = Annotated[int, typer.Option(help="How many words to show.")]
Score = Annotated[
    str | None, typer.Option(help="The score; default: Shapley values, or the one that ranks.")
]


def words(
    folder: Annotated[Path, typer.Argument(help="The folder of a corpus run.")],
    by: Annotated[str | None, typer.Option(help="Slice by this column, as predicted.")] = None,
    score: Score = None,
    least: Least = 5,
    top: Top = 10,
    page: options.Page = None,
    as_json: options.AsJson = False,
) -> None:
    """Which words of a corpus speak for what, and which say much but weigh little."""
    from piste.corpus.words import disagreeing
    from piste.corpus.words import words as collect

    check_count("--least", least)
    check_count("--top", top)
    rows = collect(folder, by=by, score=score, least=least)
    if not rows and not as_json:
        slices = "" if by is None else f" of one {by}"
        raise PisteError(
            f"No word stands in {least} documents{slices}: take fewer by --least, or more rows."
        )
    if page is not None:
        from piste.show.html import page_shell, words_html

        view = words_html.of_run(folder, by=by, score=score, least=least)
        command.written(page, lambda path: page_shell.document(view, path))
    if as_json:
        typer.echo(json.dumps([vars(row) for row in rows], ensure_ascii=False))
        return
    for (target, part), own in groupby(rows, key=lambda row: (row.target, row.slice)):
        chosen = list(own)
        where = "" if part is None else f", {by} = {part}"
        _show(f"for the {target}{where}", [row for row in chosen if row.effect > 0][:top])
        _show(f"against the {target}{where}", [row for row in chosen[::-1] if row.effect < 0][:top])
    odd = disagreeing(rows, top)
    if odd:
        _show("say much and weigh little, or weigh much and say little", odd)


def _show(title: str, rows: list[Any]) -> None:
    if not rows:
        return
    more = [
        name
        for name in ("value", "importance")
        if any(getattr(row, name) is not None for row in rows)
    ]
    shown = Table("word", "effect", "95 %", *more, "documents", title=title)
    for row in rows:
        numbers = [getattr(row, name) for name in more]
        shown.add_row(
            row.word,
            f"{row.effect:+.3g}",
            f"{row.low:+.3g} to {row.high:+.3g}" if row.error > 0 else "",
            *("" if number is None else f"{number:+.3g}" for number in numbers),
            str(row.documents),
        )
    command.out.print(shown)


def diff(
    before: Annotated[Path, typer.Argument(help="A corpus run, or a vocabulary.")],
    after: Annotated[Path, typer.Argument(help="Another one: other texts, or another model.")],
    score: Score = None,
    least: Least = 5,
    top: Top = 20,
    as_json: options.AsJson = False,
) -> None:
    """Which words do something else in another corpus, or to another model."""
    from piste.corpus.words import clear
    from piste.corpus.words import diff as compare

    check_count("--least", least)
    check_count("--top", top)
    changes = compare(before, after, score=score, least=least)
    sure = clear(changes)
    if as_json:
        rows = [
            {
                "word": one.word,
                "target": one.target,
                "before": one.before.effect,
                "after": one.after.effect,
                "difference": one.difference,
                "error": one.error,
                "clear": one in sure,
            }
            for one in changes
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    command.out.print(
        f"{len(changes):,} words in both, {len(sure):,} of them clearly different (at most 5 % of "
        "these by chance)",
        highlight=False,
    )
    shown = Table("word", "before", "after", "difference", "clear")
    for one in changes[:top]:
        shown.add_row(
            one.word,
            f"{one.before.effect:+.3g}",
            f"{one.after.effect:+.3g}",
            f"{one.difference:+.3g} ± {one.error:.2g}",
            "yes" if one in sure else "",
        )
    command.out.print(shown)


_SHOWN = 10


@command.with_options
def vocabulary(
    input: Annotated[
        Path,
        typer.Argument(help="A .csv, .tsv, .jsonl, .parquet or .arrow file, or a folder of them."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The .parquet file it is written to.")],
    model: options.Model = "piste:reviews",
    prompted: options.PromptOptions = options.NO_PROMPT,
    target: options.Target = None,
    documents: Annotated[int, typer.Option(help="How many documents to ask about.")] = 2000,
    questions: Annotated[int, typer.Option(help="Questions about each of them.")] = 12,
    units: options.Units = None,
    text_column: Annotated[str, typer.Option(help="The column with the texts.")] = "text",
    seed: options.Seed = 0,
    runtime: options.Runtime = "torch",
    page: options.Page = None,
    as_json: options.AsJson = False,
) -> None:
    """Fit one surrogate to a whole corpus: an effect and a value for every word in it."""
    check_count("--documents", documents)
    check_count("--questions", questions)
    if not out.resolve().parent.is_dir():
        raise PisteError(f"The folder of {str(out)!r} is not there: make it, or name another file.")
    with command.working(as_json=as_json) as shown:
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
            loading=command.loading(prompted),
            progress=shown,
        )
    found.to_parquet(out)
    if page is not None:
        from piste.show.html import page_shell, words_html

        command.written(
            page, lambda path: page_shell.document(words_html.of_vocabulary(found), path)
        )
    rows = ranked(found)
    if as_json:
        about = {name: found.about[name] for name in ("target", "documents", "questions", "r2")}
        about["mixing"] = vars(found.mixing)
        typer.echo(json.dumps({"file": str(out), "words": len(found), **about, **rows}))
        return
    _show_table(found, rows)
    command.err.print(f"written: {out}", highlight=False)


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


def _show_table(found: Any, rows: dict[str, list[dict[str, Any]]]) -> None:
    about, weighed = found.about, found.mixing.told
    command.out.print(
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
            shown.add_row(row["word"], *numbers, str(row["documents"]))
        command.out.print(shown)


def _error(error: float) -> str:
    """Files of earlier versions have no error of a value."""
    return f" ± {error:.2f}" if math.isfinite(error) else ""
