"""The commands ``piste demo``, ``piste models``, ``piste methods`` and ``piste metrics``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from piste import zoo
from piste.cli import command, options

DEMO_REVIEWS = (
    "A slow start, but a wonderful ending.",
    "I expected another dull sequel. Instead it's a clever, warm and beautifully acted little "
    "film, and the last half hour is simply perfect. The music isn't great, though.",
    "The cast is good and the photography is superb, but none of it can save this mess: the plot "
    "is ridiculous, the jokes are awful, and after an hour I just didn't care any more. What a "
    "waste of talent.",
)
DEMO_CLOTHES = "dress"


def demo(
    folder: Annotated[Path, typer.Option(help="Where pages and figures go.")] = Path("piste-demo"),
    model: options.Model = "piste:reviews",
) -> None:
    """Explain a few reviews and an image, in the terminal, as pages and as figures."""
    from piste.data.files import make_folder
    from piste.zoo.clothes import draw_clothes

    make_folder(folder)
    drawn = draw_clothes(DEMO_CLOTHES)
    with command.working() as working:
        from piste.pipeline import explain

        explanations = explain(model, list(DEMO_REVIEWS), progress=working)
        garment = explain("piste:fashion", drawn, progress=working)
    shown: list[tuple[str, Any, tuple[str, ...]]] = [
        (f"review-{number}", explanation, ("plane", "text", "bars"))
        for number, explanation in enumerate(explanations, start=1)
    ]
    shown.append((DEMO_CLOTHES, garment, ("heat",)))
    written = []
    for name, explanation, kinds in shown:
        command.out.print(explanation)
        command.out.print()
        page = folder / f"{name}.html"
        explanation.to_html(page)
        written.append(page)
        for kind in kinds:
            image = folder / f"{name}-{kind}.png"
            explanation.plot(kind, image)
            written.append(image)
    command.out.print(f"{len(written)} files are in {folder.resolve()}:", highlight=False)
    for path in written:
        command.out.print(f"  {path}", highlight=False)
    command.out.print('Open a page in a browser, then try:  piste explain "your own review"')


def models(
    as_json: options.AsJson = False,
) -> None:
    """List the bundled models; a folder or a hub id works as well."""
    rows = [(name, zoo.describe(name)) for name in zoo.names()]
    list_rows(
        rows,
        as_json,
        "Any Hugging Face text or image classifier works too: give a folder or a hub id.",
    )


def methods(
    as_json: options.AsJson = False,
) -> None:
    """List the methods."""
    from piste.methods import METHODS

    rows = [
        (name, f"{METHODS.text(name, 'about')} (needs {METHODS.text(name, 'needs')})")
        for name in METHODS
    ]
    list_rows(rows, as_json)


def metrics(
    as_json: options.AsJson = False,
) -> None:
    """List the metrics of ``piste evaluate``."""
    from piste.evaluation.metrics import METRICS

    rows = [
        (name, f"{METRICS.text(name, 'about')} (needs {METRICS.text(name, 'needs')})")
        for name in METRICS
    ]
    list_rows(rows, as_json)


def list_rows(rows: list[tuple[str, str]], as_json: bool, note: str = "") -> None:
    """Names and what they are, as a table or as JSON."""
    if as_json:
        typer.echo(json.dumps([{"name": name, "about": about} for name, about in rows]))
        return
    table = Table(show_header=False, box=None)
    for row in rows:
        table.add_row(*row)
    command.out.print(table)
    if note:
        command.out.print(note, style="dim")
