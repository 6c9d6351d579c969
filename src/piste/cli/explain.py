"""The commands ``piste explain`` and ``piste compare``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from piste.cli import common
from piste.cli.common import InputArguments

Answer = Annotated[
    str | None,
    typer.Option(help="A language model without labels: the answer; default: its own."),
]
Against = Annotated[
    str | None, typer.Option(help="Explain how much likelier the answer is than this one.")
]


@common.with_options
def explain(
    text: common.Text = None,
    file: common.File = None,
    image: common.Image = None,
    pair: common.Pair = None,
    model: common.Model = "piste:reviews",
    prompted: common.PromptOptions = common.NO_PROMPT,
    method: Annotated[str, typer.Option(help="See `piste methods`.")] = "slalom",
    units: common.Units = None,
    phrases: common.Phrases = None,
    target: common.Target = None,
    samples: common.Samples = None,
    seed: common.Seed = 0,
    runtime: common.Runtime = "torch",
    cache: common.Cache = None,
    long: common.Long = "error",
    removal: common.Removal = "delete",
    answer: Answer = None,
    against: Against = None,
    seconds: Annotated[
        float | None, typer.Option(help="slalom: ask for about so long, instead of samples.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            help="slalom: auto (default), additive, mixed, softmax, or paper for SLALOM as "
            "published."
        ),
    ] = None,
    sampler: Annotated[
        str | None, typer.Option(help="slalom: log (default), mix, subsets, short or deletion.")
    ] = None,
    solver: Annotated[str | None, typer.Option(help="slalom: newton, sgd or analytic.")] = None,
    share: Annotated[
        str | None,
        typer.Option(help="slalom: the same scores for equal units (type), or not (occurrence)."),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Any other option of the method, as steps=100.")
    ] = None,
    as_json: common.AsJson = False,
    html: common.Page = None,
    plot: common.Plot = None,
    out: common.Out = None,
) -> None:
    """Explain one decision: which words, or parts of an image, speak for it, and how much."""
    given = InputArguments(text, file, image, pair)
    outs = common.check_outs(out, tables=True)
    options: dict[str, Any] = {"form": form, "sampler": sampler, "solver": solver}
    options |= {"share": share, "seconds": seconds}
    options = {name: value for name, value in options.items() if value is not None}
    options |= common.read_options(option or [])
    # Names are checked inside, with a sentence for the user.
    options |= {"units": units, "phrases": phrases or None, "long": long, "removal": removal}
    with common.working(as_json=as_json) as shown:
        from piste.classifiers import load
        from piste.pipeline import explain as explain_input

        classifier = load(model, runtime=runtime, **prompted.loading())
        explanation = explain_input(
            classifier,
            given.read(classifier),
            method=method,
            target=target,
            samples=common.read_samples(samples),
            seed=seed,
            cache=cache,
            answer=answer,
            against=against,
            progress=shown,
            **options,
        )
    if as_json:
        typer.echo(explanation.to_json())
    else:
        common.out.print(explanation)
        common.offer(explanation.more_samples)
    common.written(html, explanation.to_html)
    common.written(plot, lambda path: explanation.plot(path=path))
    common.write_outs(outs, explanation)


@common.with_options
def compare(
    text: common.Text = None,
    file: common.File = None,
    image: common.Image = None,
    pair: common.Pair = None,
    model: common.Model = "piste:reviews",
    prompted: common.PromptOptions = common.NO_PROMPT,
    methods: Annotated[
        str | None, typer.Option(help="Names with commas; see `piste methods`.")
    ] = None,
    units: common.Units = None,
    phrases: common.Phrases = None,
    target: common.Target = None,
    samples: Annotated[int | None, typer.Option(help="How many questions each may ask.")] = None,
    seed: common.Seed = 0,
    runtime: common.Runtime = "torch",
    cache: common.Cache = None,
    long: common.Long = "error",
    removal: common.Removal = "delete",
    answer: Answer = None,
    against: Against = None,
    as_json: common.AsJson = False,
    html: common.Page = None,
    plot: common.Plot = None,
    out: common.Out = None,
) -> None:
    """Explain one decision by several methods, side by side, and say how faithful each is."""
    given = InputArguments(text, file, image, pair)
    outs = common.check_outs(out, tables=False)
    how: dict[str, Any] = {"units": units, "phrases": phrases or None}
    how |= {"long": long, "removal": removal}
    with common.working(as_json=as_json) as shown:
        from piste.classifiers import load
        from piste.comparison import compare as compare_methods

        classifier = load(model, runtime=runtime, **prompted.loading())
        comparison = compare_methods(
            classifier,
            given.read(classifier),
            common.names(methods),
            target=target,
            samples=samples,
            seed=seed,
            cache=cache,
            answer=answer,
            against=against,
            progress=shown,
            **how,
        )
    if as_json:
        typer.echo(comparison.to_json())
    else:
        common.out.print(comparison)
    common.written(html, comparison.to_html)
    common.written(plot, comparison.plot)
    common.write_outs(outs, comparison)
