"""The command ``piste concepts``: which ideas, defined by examples, a class reacts to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from piste.cli import command, options
from piste.errors import PisteError

_ENDINGS = (".json", ".html", ".md", ".png", ".svg", ".pdf")


@dataclass(frozen=True)
class ClassOptions:
    """The class, the examples of it, and where they come from."""

    data: Annotated[
        Path | None,
        typer.Option(
            "--data", "-d", help="Examples of the class: a file of texts, a folder of images."
        ),
    ] = None
    target: Annotated[
        list[str] | None, typer.Option("--target", "-t", help="A class; more than one if need be.")
    ] = None
    examples: Annotated[
        int, typer.Option("--examples", "-n", help="How many examples of the class at most.")
    ] = 200
    text_column: options.TextColumn = "text"
    label_column: options.LabelColumn = "label"
    split: options.Split = None


@dataclass(frozen=True)
class ConceptOptions:
    """The concepts, and how they are tested."""

    concept: Annotated[
        list[str] | None,
        typer.Option(
            "--concept", "-c", help="name=FILE or name=FOLDER, or the name of a shipped one."
        ),
    ] = None
    model: options.Model = "piste:reviews"
    negatives: Annotated[
        str | None,
        typer.Option(help="What concepts are told from (FILE, FOLDER, shipped): else each other."),
    ] = None
    layers: Annotated[
        str | None, typer.Option(help="Numbers with commas, 0 for the embeddings. Default: six.")
    ] = None
    repeats: Annotated[int, typer.Option(help="Vectors fitted to every concept.")] = 50
    number: Annotated[str, typer.Option(help="What is to change: log-odds or logit.")] = "log-odds"
    correction: Annotated[str, typer.Option(help="For many tests: holm or bh.")] = "holm"
    seed: options.Seed = 0


@dataclass(frozen=True)
class ReportOptions:
    """What is shown and written."""

    show: Annotated[
        str | None, typer.Option(help="Also show where the concepts are in this text or image.")
    ] = None
    out: Annotated[
        list[Path] | None,
        typer.Option("--out", "-o", help="Write the report: .json, .html, .md, .png, .svg, .pdf."),
    ] = None
    listed: Annotated[
        bool, typer.Option("--list", help="List the concepts that are shipped, and stop.")
    ] = False
    as_json: options.AsJson = False


@command.with_options
def concepts(source: ClassOptions, tested: ConceptOptions, output: ReportOptions) -> None:
    """Measure which concepts a class reacts to, layer by layer, against random sets."""
    if output.listed:
        _list(output.as_json)
        return
    if source.data is None or not source.target or not tested.concept:
        raise PisteError(
            "Expected examples of a class, the class and at least one concept: give --data, "
            "--target and --concept (--list shows the shipped ones)."
        )
    for path in output.out or []:
        if path.suffix.lower() not in _ENDINGS:
            raise PisteError(
                f"A report can't be written to {str(path)!r}: use {', '.join(_ENDINGS)}."
            )
    how: Any = {"number": tested.number, "correction": tested.correction}
    maps = []
    with command.working(as_json=output.as_json) as shown:
        from piste.classifiers import load
        from piste.concepts import score

        classifier = load(tested.model)
        shown.stage("reading examples")
        chosen: Any = _examples(classifier, source, source.data, source.target, tested.seed)
        report = score(
            classifier,
            chosen,
            _named(tested.concept),
            negatives=tested.negatives,
            layers=_numbers(tested.layers),
            repeats=tested.repeats,
            seed=tested.seed,
            progress=shown,
            **how,
        )
        if output.show is not None:
            shown.stage("looking for the concepts")
            maps = [report.locate(classifier, output.show, target=name) for name in report.targets]
    if output.as_json:
        typer.echo(report.to_json())
    else:
        command.out.print(report)
        for found in maps:
            command.out.print()
            command.out.print(found)
    for path in output.out or []:
        command.written(path, _writer(report, maps))


def _writer(report: Any, maps: list[Any]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        ending = path.suffix.lower()
        if ending == ".json":
            report.to_json(path)
        elif ending == ".html":
            report.to_html(path, maps=maps)
        elif ending == ".md":
            from piste.data.files import write_text

            write_text(path, "\n".join(report.to_markdown(kind) for kind in report.kinds))
        else:
            report.plot(path)
            for place, found in enumerate(maps, start=1):
                found.plot(path.with_name(f"{path.stem}-shown{place}{ending}"))

    return write


def _list(as_json: bool) -> None:
    from piste.concepts import sentences, shipped

    texts, images = shipped("texts"), shipped("images")
    if as_json:
        typer.echo(json.dumps({"texts": texts, "images": images}))
        return
    table = Table(show_header=False, box=None)
    for name in texts:
        table.add_row(name, f"texts, as “{sentences(name)[0]}”")
    for name in images:
        table.add_row(name, "images, drawn at the size of yours")
    command.out.print(table)


def _named(given: list[str]) -> dict[str, str]:
    """``name=FILE``, or a bare name that stands for itself."""
    found: dict[str, str] = {}
    for one in given:
        name, sign, source = one.partition("=")
        if not name or (sign and not source):
            raise PisteError(
                f"--concept: expected name=FILE, name=FOLDER or a shipped name, got {one!r}."
            )
        if name in found:
            raise PisteError(f"The concept {name!r} was given twice.")
        found[name] = source if sign else name
    return found


def _numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise PisteError(f"--layers: expected numbers with commas, such as 1,2, got {text!r}.")
    return [int(part) for part in parts]


def _examples(
    classifier: Any, source: ClassOptions, data: Path, targets: list[str], seed: int
) -> dict[str, list[Any]]:
    """By class: all of a folder or text file, one list for all; of a table with labels, its rows.

    Classes that share a list go through the model together.
    """
    from piste.concepts.examples import from_disk
    from piste.concepts.request import goal_of
    from piste.data.examples import read_data
    from piste.data.tables import is_table

    if not data.exists():
        raise PisteError(f"There is no file or folder {str(data)!r}.")
    if classifier.reads == "images" or not is_table(data):
        return dict.fromkeys(targets, from_disk(data, classifier.reads)[: source.examples])
    text, label = source.text_column, source.label_column
    rows = read_data(data, text=text, label=label, split=source.split, seed=seed)
    if all(row.label is None for row in rows):
        every = [row.input for row in rows[: source.examples]]
        return dict.fromkeys(targets, every)
    found = {}
    for target in targets:
        (index,) = goal_of(classifier, target, "logit").indices  # refuses what isn't there
        own = {classifier.labels[index].lower(), str(index)}  # a table names classes either way
        found[target] = [row.input for row in rows if str(row.label).lower() in own][
            : source.examples
        ]
        if not found[target]:
            there = ", ".join(sorted({str(row.label) for row in rows})[:20])
            raise PisteError(
                f"{str(data)!r} has no rows of the class {target!r} in the column "
                f"{label!r}: it has {there}."
            )
    return found
