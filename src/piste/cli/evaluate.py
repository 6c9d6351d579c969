"""The command ``piste evaluate``: which method is faithful to a model, measured on data."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from piste.cli import command, options
from piste.errors import PisteError

if TYPE_CHECKING:
    from piste.data.examples import Example
    from piste.evaluation.results import Results


@dataclass(frozen=True)
class DataOptions:
    """Which examples are taken, and from where."""

    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            "-d",
            help="Texts: a .csv, .tsv, .jsonl, .parquet or .arrow file, or a folder of them.",
        ),
    ] = None
    examples: Annotated[int, typer.Option("--examples", "-n", help="How many texts.")] = 50
    text_column: options.TextColumn = "text"
    label_column: options.LabelColumn = "label"
    pair_column: Annotated[
        str | None, typer.Option(help="The column with the second texts of pairs.")
    ] = None
    image_column: Annotated[
        str | None,
        typer.Option(help="The column with images (bytes or file names), instead of texts."),
    ] = None
    rationale_column: Annotated[
        str | None,
        typer.Option(
            help="What people marked: 0/1 per word, [start, end] spans, or an image's mask."
        ),
    ] = None
    words_column: Annotated[
        str | None, typer.Option(help="The words that were marked, if not split at white space.")
    ] = None
    split: options.Split = None
    min_words: Annotated[int, typer.Option(help="Only texts of at least so many words.")] = 0
    max_words: Annotated[int | None, typer.Option(help="Only texts of at most so many words.")] = (
        None
    )

    @property
    def columns(self) -> dict[str, Any]:
        """As :func:`piste.data.examples.read_data` names them."""
        return {
            "text": self.text_column,
            "label": self.label_column,
            "pair": self.pair_column,
            "rationale": self.rationale_column,
            "words_column": self.words_column,
            "image": self.image_column,
        }

    @property
    def bounds(self) -> tuple[int, int | None]:
        """The least and the most words of a text."""
        return self.min_words, self.max_words

    def about(self) -> dict[str, Any]:
        """What is kept with the results."""
        found: dict[str, Any] = {"command": shlex.join(["piste", *sys.argv[1:]])}
        if self.data is not None:
            name = self.data.name
            found["data"] = name if self.split is None else f"{name} ({self.split})"
            found["data_file"], found["words"] = str(self.data), list(self.bounds)
        return found


@dataclass(frozen=True)
class MethodOptions:
    """What is measured: methods, the metrics they are judged by, and where explanations are."""

    methods: Annotated[
        str | None,
        typer.Option(help="Names with commas, as slalom,slalom:value,lime[kernel_width=5]."),
    ] = None
    metrics: Annotated[
        str | None,
        typer.Option(help="Names with commas, as deletion,eraser[bins=eggen]: `piste metrics`."),
    ] = None
    reference: Annotated[
        str | None, typer.Option(help="The method the others are compared with.")
    ] = None
    explanations: Annotated[
        Path | None, typer.Option(help="Judge the explanations saved here, make no new ones.")
    ] = None
    save_explanations: Annotated[
        bool, typer.Option("--save-explanations", help="Keep all explanations in the folder.")
    ] = False


@dataclass(frozen=True)
class ModelOptions:
    """The model, and how it is asked."""

    model: options.Model = "piste:reviews"
    samples: Annotated[
        int | None, typer.Option(help="Questions per explanation, for every method that asks.")
    ] = None
    units: options.Units = "words"
    removal: options.Removal = "delete"
    long: options.Long = "truncate"
    seed: options.Seed = 0
    runtime: options.Runtime = "torch"
    cache: options.Cache = None

    @property
    def how(self) -> dict[str, Any]:
        """How an input is bound to the model."""
        return {"units": self.units, "removal": self.removal, "long": self.long}


@dataclass(frozen=True)
class OutputOptions:
    """Where the results go."""

    folder: Annotated[
        Path | None,
        typer.Option(help="Tables, figures and a page go here; a stopped run goes on."),
    ] = None
    as_json: options.AsJson = False


@command.with_options
def evaluate(
    data: DataOptions,
    methods: MethodOptions,
    model: ModelOptions,
    prompted: options.PromptOptions,
    output: OutputOptions,
) -> None:
    """Measure which methods explain a model faithfully, on the same texts with the same budget."""
    _check(data, methods, model)
    shared: dict[str, Any] = {
        "metrics": command.names(methods.metrics),
        "seed": model.seed,
        "folder": output.folder,
        "cache": model.cache,
        "reference": methods.reference,
    }
    shared = {name: value for name, value in shared.items() if value is not None}
    shared["about"] = data.about()
    loading = command.loading(prompted)
    try:
        with command.working(as_json=output.as_json) as shown:
            from piste.classifiers import load

            classifier = load(model.model, runtime=model.runtime, **loading)
            shared["progress"] = shown
            if methods.explanations is not None:
                found = _judge_saved(classifier, data, methods, shared)
            else:
                found = _explain_and_judge(classifier, data, methods, model, shared)
    except KeyboardInterrupt as stop:
        if output.folder is None:
            raise
        raise KeyboardInterrupt(
            f"stopped. What is measured so far is in {output.folder}: the same command continues."
        ) from stop
    _tell(found, output.folder, output.as_json)


def _check(data: DataOptions, methods: MethodOptions, model: ModelOptions) -> None:
    if data.data is None and methods.explanations is None:
        raise PisteError(
            "No data was given: expected --data with a table of texts (.csv, .jsonl, .parquet …), "
            "or --explanations with a folder of saved explanations."
        )
    changed = (
        model.samples,
        methods.save_explanations,
        model.units != "words",
        model.removal != "delete",
        data.min_words,
    )
    if methods.explanations is not None and any(changed):
        raise PisteError(
            "--explanations judges what was made before: leave out --samples, --units, --removal, "
            "--save-explanations and --min-words, which can't change it."
        )


def _judge_saved(
    classifier: Any, data: DataOptions, methods: MethodOptions, shared: dict[str, Any]
) -> Results:
    from piste.data.examples import read_data
    from piste.evaluation.benchmark.saved_explanations import evaluate_saved

    assert methods.explanations is not None
    lent = [] if data.data is None else read_data(data.data, split=data.split, **data.columns)
    return evaluate_saved(
        classifier, methods.explanations, methods=methods.methods, data=lent, **shared
    )


def _explain_and_judge(
    classifier: Any,
    data: DataOptions,
    methods: MethodOptions,
    model: ModelOptions,
    shared: dict[str, Any],
) -> Results:
    from piste.data.examples import read_data
    from piste.evaluation.benchmark.evaluation_run import evaluate as run
    from piste.evaluation.metrics import metric_class

    assert data.data is not None
    wanted: dict[str, Any] = {"split": data.split, "words": data.bounds, "seed": model.seed}
    chosen = read_data(data.data, examples=data.examples, **wanted, **data.columns)
    wanted_metrics = command.names(methods.metrics) or ()
    fitted = any(metric_class(name).needs == "labels" for name in wanted_metrics)
    return run(
        classifier,
        chosen,
        methods=methods.methods,
        examples=data.examples,
        samples=model.samples,
        save_explanations=methods.save_explanations,
        labelled=_labelled(data.data, data.columns, data.split) if fitted else None,
        **model.how,
        **shared,
    )


def _labelled(data: Path, columns: dict[str, Any], split: str | None) -> Sequence[Example]:
    """The texts whose words are counted: those of other splits, if there are any.

    The choice does not depend on the number of examples, so that a run can go on with more.
    """
    from piste.data.examples import read_data

    wanted = {name: columns[name] for name in ("text", "label", "pair")}
    everything = read_data(data, shuffle=False, **wanted)
    others = [example for example in everything if example.split != split]
    return others if split is not None and others else everything


def _tell(results: Results, folder: Path | None, as_json: bool) -> None:
    if folder is not None:
        from piste.show.report.evaluation_html import write_report

        written = write_report(results, folder)
    if as_json:
        typer.echo(json.dumps(_for_programs(results), ensure_ascii=False, default=str))
    else:
        command.out.print(results)
    if folder is not None:
        command.err.print(f"written: {len(written)} files in {folder}, begin with {written[0]}")


def _for_programs(results: Results) -> dict[str, Any]:
    """Settings, means with bounds, paired differences with verdicts, refusals."""
    from piste.evaluation.results import summary_rows
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
