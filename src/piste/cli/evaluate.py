"""The command ``piste evaluate``: which method is faithful to a model, measured on data."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from piste.cli import common
from piste.errors import PisteError

if TYPE_CHECKING:
    from piste.data.examples import Example
    from piste.evaluation.results import Results


def evaluate(
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            "-d",
            help="Texts: a .csv, .tsv, .jsonl, .parquet or .arrow file, or a folder of them.",
        ),
    ] = None,
    model: common.Model = "piste:reviews",
    methods: Annotated[
        str | None,
        typer.Option(help="Names with commas, as slalom,slalom:value,lime[kernel_width=5]."),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="Names with commas, as deletion,eraser[bins=eggen]: `piste metrics`."),
    ] = None,
    examples: Annotated[int, typer.Option("--examples", "-n", help="How many texts.")] = 50,
    samples: Annotated[
        int | None, typer.Option(help="Questions per explanation, for every method that asks.")
    ] = None,
    units: common.Units = "words",
    removal: common.Removal = "delete",
    long: common.Long = "truncate",
    seed: common.Seed = 0,
    folder: Annotated[
        Path | None,
        typer.Option(help="Tables, figures and a page go here; a stopped run goes on."),
    ] = None,
    explanations: Annotated[
        Path | None, typer.Option(help="Judge the explanations saved here, make no new ones.")
    ] = None,
    save_explanations: Annotated[
        bool, typer.Option("--save-explanations", help="Keep all explanations in the folder.")
    ] = False,
    reference: Annotated[
        str | None, typer.Option(help="The method the others are compared with.")
    ] = None,
    text_column: Annotated[str, typer.Option(help="The column with the texts.")] = "text",
    label_column: Annotated[str, typer.Option(help="The column with the labels.")] = "label",
    pair_column: Annotated[
        str | None, typer.Option(help="The column with the second texts of pairs.")
    ] = None,
    image_column: Annotated[
        str | None,
        typer.Option(help="The column with pictures (bytes or file names), instead of texts."),
    ] = None,
    rationale_column: Annotated[
        str | None,
        typer.Option(
            help="What people marked: 0/1 per word, [start, end] spans, or a picture's mask."
        ),
    ] = None,
    words_column: Annotated[
        str | None, typer.Option(help="The words that were marked, if not split at white space.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only rows of this split.")] = None,
    min_words: Annotated[int, typer.Option(help="Only texts of at least so many words.")] = 0,
    max_words: Annotated[
        int | None, typer.Option(help="Only texts of at most so many words.")
    ] = None,
    runtime: common.Runtime = "torch",
    cache: common.Cache = None,
    as_json: common.AsJson = False,
) -> None:
    """Measure which methods explain a model faithfully, on the same texts with the same budget."""
    if data is None and explanations is None:
        raise PisteError(
            "No data was given: expected --data with a table of texts (.csv, .jsonl, .parquet …), "
            "or --explanations with a folder of saved explanations."
        )
    changed = samples, save_explanations, units != "words", removal != "delete", min_words
    if explanations is not None and any(changed):
        raise PisteError(
            "--explanations judges what was made before: leave out --samples, --units, --removal, "
            "--save-explanations and --min-words, which can't change it."
        )
    columns: dict[str, Any] = {
        "text": text_column,
        "label": label_column,
        "pair": pair_column,
        "rationale": rationale_column,
        "words_column": words_column,
        "image": image_column,
    }
    bounds = min_words, max_words
    shared: dict[str, Any] = {
        "metrics": common.names(metrics),
        "seed": seed,
        "folder": folder,
        "cache": cache,
        "reference": reference,
    }
    shared = {name: value for name, value in shared.items() if value is not None}
    shared["about"] = _about(data, split, bounds)
    classifier = common.start().load(model, runtime=runtime)
    from piste.data.examples import read_data
    from piste.evaluation.metrics import metric_class

    fitted = any(metric_class(name).needs == "labels" for name in common.names(metrics) or ())

    if explanations is not None:
        from piste.evaluation.benchmark.saved_explanations import evaluate_saved

        lent = [] if data is None else read_data(data, split=split, **columns)
        found = evaluate_saved(classifier, explanations, methods=methods, data=lent, **shared)
    else:
        from piste.evaluation.benchmark.runner import evaluate as run

        assert data is not None
        wanted: dict[str, Any] = {"split": split, "words": bounds, "seed": seed}
        chosen = read_data(data, examples=examples, **wanted, **columns)
        how: dict[str, Any] = {"units": units, "removal": removal, "long": long}
        found = run(
            classifier,
            chosen,
            methods=methods,
            examples=examples,
            samples=samples,
            save_explanations=save_explanations,
            labelled=_labelled(data, columns, split) if fitted else None,
            **how,
            **shared,
        )
    _tell(found, folder, as_json)


def _about(data: Path | None, split: str | None, words: tuple[int, int | None]) -> dict[str, Any]:
    found: dict[str, Any] = {"command": shlex.join(["piste", *sys.argv[1:]])}
    if data is not None:
        found["data"] = data.name if split is None else f"{data.name} ({split})"
        found["data_file"], found["words"] = str(data), list(words)
    return found


def _labelled(data: Path, columns: dict[str, Any], split: str | None) -> Sequence[Example]:
    """The texts that metrics are fitted to: those of other splits, if there are any.

    The choice does not depend on the number of examples, so that a run can go on with more.
    """
    from piste.data.examples import read_data

    wanted = {name: columns[name] for name in ("text", "label", "pair")}
    everything = read_data(data, shuffle=False, **wanted)
    others = [example for example in everything if example.split != split]
    return others if split is not None and others else everything


def _tell(results: Results, folder: Path | None, as_json: bool) -> None:
    if folder is not None:
        from piste.show.report.report_files import write_report

        written = write_report(results, folder)
    if as_json:
        typer.echo(json.dumps(_for_programs(results), ensure_ascii=False, default=str))
    else:
        common.out.print(results)
    if folder is not None:
        common.err.print(f"written: {len(written)} files in {folder}, begin with {written[0]}")


def _for_programs(results: Results) -> dict[str, Any]:
    """Settings, means with bounds, paired differences with verdicts, refusals."""
    from piste.evaluation.exports import summary_rows
    from piste.show.report.result_tables import compared

    return {
        "settings": dict(results.settings),
        "examples": len(results.examples),
        "figures": {name: figure.better for name, figure in results.figures.items()},
        "methods": summary_rows(results),
        "differences": compared(results),
        "refused": results.problems(),
        "notes": results.notes(),
    }
