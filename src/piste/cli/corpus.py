"""The command ``piste corpus``: explain every row of a file or folder."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from piste.cli import common
from piste.errors import PisteError


def corpus(
    input: Annotated[
        Path,
        typer.Argument(help="A .csv, .tsv, .jsonl, .parquet or .arrow file, or a folder of them."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder results go to.")],
    model: common.Model = "piste:reviews",
    method: Annotated[str, typer.Option(help="As for piste explain.")] = "slalom",
    text_column: Annotated[str, typer.Option(help="The column with the texts.")] = "text",
    pair_column: Annotated[
        str | None, typer.Option(help="The column with the second texts of pairs.")
    ] = None,
    id_column: Annotated[str | None, typer.Option(help="A column that names the rows.")] = None,
    keep: Annotated[
        str | None, typer.Option(help="Columns to copy to the results, with commas.")
    ] = None,
    target: common.Target = None,
    units: common.Units = None,
    samples: common.Samples = None,
    removal: common.Removal = "delete",
    long: common.Long = "truncate",
    seed: common.Seed = 0,
    vocabulary: Annotated[
        Path | None, typer.Option(help="A file of piste vocabulary to begin with.")
    ] = None,
    refine: Annotated[
        int | None, typer.Option(help="With a vocabulary: questions about each document.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", help="The method's own, as name=value.")
    ] = None,
    block: Annotated[
        int | None,
        typer.Option(help="Rows that are explained and stored together; 8 to 128 by default."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", hidden=True, help="Not needed: a run goes on by itself.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take, and stop.")
    ] = False,
    engine: Annotated[str, typer.Option(help="local, or ray for more processes.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="The Ray cluster; default: this machine.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes on Ray; default: one per core.")
    ] = None,
    runtime: common.Runtime = "torch",
    as_json: common.AsJson = False,
) -> None:
    """Explain every row of a file or a folder; the same command continues a stopped run."""
    how: dict[str, Any] = common.read_options(option or [])
    given = {"target": target, "units": units, "samples": common.read_samples(samples)}
    how |= {name: value for name, value in given.items() if value is not None}
    how |= {"removal": removal, "long": long, "seed": seed}
    if vocabulary is not None:
        method = "vocabulary"
        how |= {"table": str(vocabulary.resolve()), "refine": refine or 0}
    elif refine is not None:
        raise PisteError("--refine improves what a vocabulary says: give one by --vocabulary.")
    common.start()
    from piste import corpus as library

    columns = library.Columns(text_column, pair_column, id_column, tuple(common.names(keep) or ()))
    shared: dict[str, Any] = {
        "method": method, "columns": columns, "block": block, "runtime": runtime, **how
    }  # fmt: skip
    if dry_run:
        _tell_estimate(library.estimate(input, model, **shared), as_json)
        return
    if engine not in ("local", "ray"):
        raise PisteError(f"--engine: expected local or ray, got {engine!r}.")
    start = time.perf_counter()
    counts = library.run(
        input,
        model,
        out,
        resume=resume,
        engine=engine,  # type: ignore[arg-type]  # checked above
        address=address,
        workers=workers,
        progress=None if sys.stderr.isatty() else _Lines(),
        **shared,
    )
    if as_json:
        typer.echo(json.dumps({"folder": str(out), **vars(counts)}))
        return
    spent = time.perf_counter() - start
    common.out.print(
        f"{counts.documents:,} documents explained, {counts.refused:,} rows refused, "
        f"{counts.calls:,} calls, {spent:,.0f} s: {out}",
        highlight=False,
    )
    for number, one in enumerate(library.errors(out)):
        if number == 3:
            common.out.print(f"  … all in {out / 'errors'}", highlight=False)
            break
        common.out.print(f"  {one['source']}: {one['reason']}", highlight=False, markup=False)


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
        common.err.print(
            f"{done:,} of {total:,} rows, {rate:.1f} rows/s, {duration(left)} left", highlight=False
        )


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(5), duration(600), duration(50_000), duration(1e6)
    ('5 s', '10 min', '13.9 h', '11.6 days')
    """
    for least, unit in ((172_800, "days"), (7200, "h"), (120, "min")):
        if seconds >= least:
            size = {"days": 86_400, "h": 3600, "min": 60}[unit]
            return f"{seconds / size:.{0 if unit == 'min' else 1}f} {unit}"
    return f"{seconds:.0f} s"


def _tell_estimate(found: Any, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({**vars(found)}))
        return
    common.out.print(
        f"{found.rows:,} rows, about {found.calls:,.0f} calls, {duration(found.seconds)} on this "
        f"machine with one process, {found.bytes / 2**20:,.0f} MB of results "
        f"(from {found.tried} documents, explained).",
        highlight=False,
    )
    if found.refused:
        common.out.print(f"{found.refused} of the first rows would be refused.", highlight=False)
