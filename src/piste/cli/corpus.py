"""The commands ``piste corpus``: explain every row of a file or folder, and ``piste query``."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from piste.cli import command, options
from piste.cli.demo import list_rows
from piste.engine.progress import duration
from piste.errors import PisteError
from piste.validation import check_count

if TYPE_CHECKING:
    from piste.corpus.sql import Answer


@dataclass(frozen=True)
class RowOptions:
    """Which rows are explained, and where results go."""

    input: Annotated[
        Path,
        typer.Argument(help="A .csv, .tsv, .jsonl, .parquet or .arrow file, or a folder of them."),
    ]
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder results go to.")]
    text_column: options.TextColumn = "text"
    pair_column: Annotated[
        str | None, typer.Option(help="The column with the second texts of pairs.")
    ] = None
    id_column: Annotated[
        str | None, typer.Option(help="A column that names the rows; default: id, if it is there.")
    ] = None
    keep: Annotated[
        str | None,
        typer.Option(help="Columns to copy to the results, with commas; default: small ones."),
    ] = None


@dataclass(frozen=True)
class ExplainOptions:
    """The model, the method, and how every row is asked about."""

    model: options.Model = "piste:reviews"
    method: Annotated[str, typer.Option(help="As for piste explain.")] = "slalom"
    target: options.Target = None
    units: options.Units = None
    samples: options.Samples = None
    removal: options.Removal = "delete"
    long: options.Long = "truncate"
    cache: options.Cache = None
    seed: options.Seed = 0
    vocabulary: Annotated[
        Path | None, typer.Option(help="A file of piste vocabulary to begin with.")
    ] = None
    refine: Annotated[
        int | None, typer.Option(help="With a vocabulary: questions about each document.")
    ] = None
    option: Annotated[
        list[str] | None, typer.Option("--option", help="The method's own, as name=value.")
    ] = None

    @property
    def how(self) -> dict[str, Any]:
        """Method and options as :func:`piste.corpus.run` takes them."""
        how: dict[str, Any] = command.read_options(self.option or [])
        samples = command.read_samples(self.samples)
        given = {"target": self.target, "units": self.units, "samples": samples}
        how |= {name: value for name, value in given.items() if value is not None}
        how |= {"removal": self.removal, "long": self.long, "seed": self.seed}
        if self.cache is not None:
            how["cache"] = self.cache
        if self.vocabulary is not None:
            how |= {"table": str(self.vocabulary.resolve()), "refine": self.refine or 0}
        elif self.refine is not None:
            raise PisteError("--refine improves what a vocabulary says: give one by --vocabulary.")
        return how | {"method": self.method if self.vocabulary is None else "vocabulary"}


@dataclass(frozen=True)
class RunOptions:
    """How the run is made."""

    block: Annotated[
        int | None,
        typer.Option(help="Rows that are explained and stored together; 8 to 128 by default."),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", hidden=True, help="Not needed: a run goes on by itself.")
    ] = False
    prior: Annotated[
        str,
        typer.Option(help="auto: later rows learn from earlier ones and are asked less; or none."),
    ] = "auto"
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what it would take, and stop.")
    ] = False
    engine: Annotated[str, typer.Option(help="local, or ray for more processes.")] = "local"
    address: Annotated[str | None, typer.Option(help="The Ray cluster; default: this machine.")] = (
        None
    )
    workers: Annotated[
        int | None, typer.Option(help="Processes on Ray; default: one per core.")
    ] = None
    runtime: options.Runtime = "torch"
    as_json: options.AsJson = False


@command.with_options
def corpus(
    rows: RowOptions,
    explained: ExplainOptions,
    prompted: options.PromptOptions,
    run: RunOptions,
) -> None:
    """Explain every row of a file or a folder; the same command continues a stopped run."""
    shared: dict[str, Any] = {"block": run.block, "runtime": run.runtime, **explained.how}
    shared |= {"loading": command.loading(prompted), "prior": run.prior}
    if run.engine not in ("local", "ray"):
        raise PisteError(f"--engine: expected local or ray, got {run.engine!r}.")
    if run.prior not in ("auto", "none"):
        raise PisteError(f"--prior: expected auto or none, got {run.prior!r}.")
    if run.workers is not None:
        check_count("--workers", run.workers)
    from piste import corpus as library

    kept = None if rows.keep is None else tuple(command.names(rows.keep) or ())
    shared["columns"] = library.Columns(rows.text_column, rows.pair_column, rows.id_column, kept)
    start = time.perf_counter()
    try:
        with command.working(as_json=run.as_json) as shown:
            if run.estimate:
                shown.stage("explaining some documents")
                expected = library.estimate(rows.input, explained.model, **shared)
            else:
                quiet = run.as_json or not sys.stderr.isatty()
                counts = library.run(
                    rows.input,
                    explained.model,
                    rows.out,
                    resume=run.resume,
                    engine=run.engine,  # type: ignore[arg-type]  # checked above
                    address=run.address,
                    workers=run.workers,
                    progress=_Lines() if quiet else shown,
                    **shared,
                )
    except KeyboardInterrupt as stop:
        if run.estimate:
            raise
        raise KeyboardInterrupt(
            f"stopped. What is explained so far is in {rows.out}: the same command continues."
        ) from stop
    if run.estimate:
        _tell_estimate(expected, run.as_json)
        return
    if counts.refused and not counts.documents:
        reason = next(library.errors(rows.out))["reason"].rstrip(".")
        raise PisteError(
            f"No row could be explained. The first of {counts.refused:,} was refused because: "
            f"{reason}. All reasons are in {str(rows.out / 'errors')!r}."
        )
    if run.as_json:
        typer.echo(json.dumps({"folder": str(rows.out), **vars(counts)}))
        return
    spent = time.perf_counter() - start
    command.out.print(
        f"{counts.documents:,} documents explained, {counts.refused:,} rows refused, "
        f"{counts.calls:,} calls, {spent:,.0f} s: {rows.out}",
        highlight=False,
    )
    for number, one in enumerate(library.errors(rows.out)):
        if number == 3:
            command.out.print(f"  … all in {rows.out / 'errors'}", highlight=False)
            break
        command.out.print(f"  {one['source']}: {one['reason']}", highlight=False)


class _Lines:
    """A line now and then, where no bar can be drawn."""

    def __init__(self, every: float = 30.0) -> None:
        self._every = every
        self._begun = self._told = time.perf_counter()
        self._first: int | None = None

    def __call__(self, done: int, total: int) -> None:
        now = time.perf_counter()
        if self._first is None:
            self._first = done  # what was there before
        if now - self._told < self._every or done == self._first:
            return
        self._told = now
        rate = (done - self._first) / (now - self._begun)
        left = (total - done) / rate
        command.err.print(
            f"{done:,} of {total:,} rows, {rate:.1f} rows/s, {duration(left)} left", highlight=False
        )


def _tell_estimate(found: Any, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({**vars(found)}))
        return
    if found.seconds is None:
        command.out.print(
            f"{found.rows:,} rows, up to {found.calls:,.0f} questions.", highlight=False
        )
        return
    command.out.print(
        f"{found.rows:,} rows, about {found.calls:,.0f} calls, {duration(found.seconds)} on this "
        f"machine with one process, {found.bytes / 2**20:,.1f} MB of results "
        f"(from {found.tried} documents, explained).",
        highlight=False,
    )
    if found.first is not None:
        command.out.print(
            f"The first {found.first:,} rows take {found.first_calls:,.0f} of these calls; later "
            "rows learn from those before them. More documents tell more, so it may be less.",
            highlight=False,
        )
    if found.refused:
        command.out.print(f"{found.refused} of the first rows would be refused.", highlight=False)


def query(
    folder: Annotated[Path | None, typer.Argument(help="The folder of a corpus run.")] = None,
    question: Annotated[
        str | None, typer.Argument(help="SQL over documents, units, errors; or a ready one.")
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="Name the ready questions.")] = False,
    table: Annotated[Path | None, typer.Option("--csv", help="Write the answer here.")] = None,
    as_json: options.AsJson = False,
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
        command.written(table, lambda path: _write(path, text))
        return
    show_answer(answer)


def _write(path: Path, text: str) -> None:
    from piste.data.files import write_text

    write_text(path, text)


_MOST_ROWS, _MOST_RECORDS = 40, 10
"""Rows that are shown as a table, and one below the other where they are too wide for that."""
_NARROWEST = 8
"""Characters that a column needs to be read."""


def show_answer(answer: Answer) -> None:
    """A table that fits the terminal, or, where the columns are too many, record after record."""
    width = command.out.width
    wide = len(answer.columns) * (_NARROWEST + 3) > width
    rows = answer.rows[: _MOST_RECORDS if wide else _MOST_ROWS]
    if wide:
        longest = max(map(len, answer.columns))
        for number, row in enumerate(rows):
            command.out.print("" if number == 0 else "─" * min(longest, width))
            for name, value in zip(answer.columns, row, strict=True):
                cell = _cell(value, max(width - longest - 2, _NARROWEST))
                command.out.print(f"{name:<{longest}}  {cell}", highlight=False, soft_wrap=True)
    else:
        shown = Table()
        for name in answer.columns:
            shown.add_column(name, overflow="ellipsis", no_wrap=True)
        for row in rows:
            shown.add_row(*(_cell(value, width) for value in row))
        command.out.print(shown)
    if len(rows) < len(answer.rows):
        command.out.print(
            f"… and {len(answer.rows) - len(rows):,} rows more: --csv FILE writes all of them, "
            "--json prints them.",
            highlight=False,
        )


def _cell(value: Any, longest: int) -> str:
    """On one line, cut where it is too long."""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
