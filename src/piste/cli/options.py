"""The options that commands share, declared once: names, types and help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from piste.options import HELP

Text = Annotated[
    str | None,
    typer.Argument(help="The text, the path of an image, or - to read from standard input."),
]
File = Annotated[Path | None, typer.Option("--file", "-f", help="Read the text here.")]
Image = Annotated[Path | None, typer.Option("--image", "-i", help="Read the image here.")]
Pair = Annotated[str | None, typer.Option(help="The second text, for models that read pairs.")]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        help="A bundled name, a folder, a hub id, or a server's URL, as http://127.0.0.1:8080/v1.",
    ),
]
Units = Annotated[str | None, typer.Option(help=HELP["units"])]
Phrases = Annotated[list[str] | None, typer.Option(help=HELP["phrases"])]
Target = Annotated[str | None, typer.Option(help=HELP["target"])]
Samples = Annotated[str | None, typer.Option(help=HELP["samples"])]
Seed = Annotated[int, typer.Option(help=HELP["seed"])]
Cache = Annotated[Path | None, typer.Option(help=HELP["cache"])]
Long = Annotated[str, typer.Option(help=HELP["long"])]
Removal = Annotated[str, typer.Option(help=HELP["removal"])]
Runtime = Annotated[
    str, typer.Option(help="What runs the model: torch, torch-int8, onnx, openvino … (see docs).")
]
TextColumn = Annotated[str, typer.Option(help="The column with the texts.")]
LabelColumn = Annotated[str, typer.Option(help="The column with the labels.")]
Split = Annotated[str | None, typer.Option(help="Only rows of this split.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Page = Annotated[Path | None, typer.Option("--html", help="Write a standalone page here.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Write a figure here (png, svg, pdf).")]
Out = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "-o",
        help="Write the result here, as the suffix says: .html, .png, .svg, .pdf, .json, and of "
        "one explanation .csv or .parquet. May be given more than once.",
    ),
]


@dataclass(frozen=True)
class PromptOptions:
    """A language model as a classifier: its prompt and labels, and its server, if it has one."""

    prompt: Annotated[
        str | None,
        typer.Option(
            help="For a language model: a text with fields in braces, as 'Review: {text} "
            "Sentiment:', a file with one, or a .json file with messages of a chat."
        ),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(
            help="For a language model: what it chooses from, as positive,negative, or JSON "
            'with wordings, as {"positive": ["good", "great"], "negative": ["bad"]}.'
        ),
    ] = None
    hypothesis: Annotated[
        str | None,
        typer.Option(
            help="For a model of entailment with --labels: the statement that is judged, as "
            "'This text is about {}.'."
        ),
    ] = None
    few_shot: Annotated[
        str | None,
        typer.Option(
            help="For a language model: inputs with their labels, shown before the text, as JSON, "
            '[["Superb.", "positive"], …], or a file with it.'
        ),
    ] = None
    pinned: Annotated[
        str | None, typer.Option(help="Parts of a prompt that are never removed, with commas.")
    ] = None
    free: Annotated[
        str | None,
        typer.Option(help="Parts that may be removed, though usually not: system,examples."),
    ] = None
    content_free: Annotated[
        str | None,
        typer.Option(help='A text without content, as "N/A", whose answer is subtracted.'),
    ] = None
    served_model: Annotated[
        str | None, typer.Option(help="The model's name on the server that --model names.")
    ] = None
    max_requests: Annotated[
        int | None, typer.Option(help="Send a server no more requests than this.")
    ] = None
    max_tokens: Annotated[
        int | None, typer.Option(help="Use no more tokens of a server than this.")
    ] = None
    concurrency: Annotated[
        int | None, typer.Option(help="Requests to a server at a time; default: 8.")
    ] = None
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait for a server; default: 60.")
    ] = None


NO_PROMPT = PromptOptions()
