"""The commands ``piste explain`` and ``piste compare``."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from piste.cli import command, options
from piste.errors import PisteError, shorten
from piste.validation import MOST_CHARACTERS

if TYPE_CHECKING:
    from piste.classifiers import Classifier
    from piste.subject import Input

Answer = Annotated[
    str | None,
    typer.Option(help="A language model without labels: the answer; default: its own."),
]
Against = Annotated[
    str | None, typer.Option(help="Explain how much likelier the answer is than this one.")
]


@command.with_options
def explain(
    text: options.Text = None,
    file: options.File = None,
    image: options.Image = None,
    pair: options.Pair = None,
    model: options.Model = "piste:reviews",
    prompted: options.PromptOptions = options.NO_PROMPT,
    method: Annotated[str, typer.Option(help="See `piste methods`.")] = "slalom",
    units: options.Units = None,
    phrases: options.Phrases = None,
    target: options.Target = None,
    samples: options.Samples = None,
    seed: options.Seed = 0,
    runtime: options.Runtime = "torch",
    cache: options.Cache = None,
    long: options.Long = "error",
    removal: options.Removal = "delete",
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
    as_json: options.AsJson = False,
    html: options.Page = None,
    plot: options.Plot = None,
    out: options.Out = None,
) -> None:
    """Explain one decision: which words, or parts of an image, speak for it, and how much."""
    given = InputArguments(text, file, image, pair)
    outs = command.check_outs(out, tables=True)
    chosen: dict[str, Any] = {"form": form, "sampler": sampler, "solver": solver}
    chosen |= {"share": share, "seconds": seconds}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    chosen |= command.read_options(option or [])
    # Names are checked inside, with a sentence for the user.
    chosen |= {"units": units, "phrases": phrases or None, "long": long, "removal": removal}
    with command.working(as_json=as_json) as shown:
        from piste.classifiers import load
        from piste.pipeline import explain as explain_input

        classifier = load(model, runtime=runtime, **command.loading(prompted))
        explanation = explain_input(
            classifier,
            given.read(classifier),
            method=method,
            target=target,
            samples=command.read_samples(samples),
            seed=seed,
            cache=cache,
            answer=answer,
            against=against,
            progress=shown,
            **chosen,
        )
    if as_json:
        typer.echo(explanation.to_json())
    else:
        command.out.print(explanation)
        command.offer(explanation.more_samples)
    command.written(html, explanation.to_html)
    command.written(plot, lambda path: explanation.plot(path=path))
    command.write_outs(outs, explanation)


@command.with_options
def compare(
    text: options.Text = None,
    file: options.File = None,
    image: options.Image = None,
    pair: options.Pair = None,
    model: options.Model = "piste:reviews",
    prompted: options.PromptOptions = options.NO_PROMPT,
    methods: Annotated[
        str | None, typer.Option(help="Names with commas; see `piste methods`.")
    ] = None,
    units: options.Units = None,
    phrases: options.Phrases = None,
    target: options.Target = None,
    samples: Annotated[int | None, typer.Option(help="How many questions each may ask.")] = None,
    seed: options.Seed = 0,
    runtime: options.Runtime = "torch",
    cache: options.Cache = None,
    long: options.Long = "error",
    removal: options.Removal = "delete",
    answer: Answer = None,
    against: Against = None,
    as_json: options.AsJson = False,
    html: options.Page = None,
    plot: options.Plot = None,
    out: options.Out = None,
) -> None:
    """Explain one decision by several methods, side by side, and say how faithful each is."""
    given = InputArguments(text, file, image, pair)
    outs = command.check_outs(out, tables=False)
    how: dict[str, Any] = {"units": units, "phrases": phrases or None}
    how |= {"long": long, "removal": removal}
    with command.working(as_json=as_json) as shown:
        from piste.classifiers import load
        from piste.comparison import compare as compare_methods

        classifier = load(model, runtime=runtime, **command.loading(prompted))
        comparison = compare_methods(
            classifier,
            given.read(classifier),
            command.names(methods),
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
        command.out.print(comparison)
    command.written(html, comparison.to_html)
    command.written(plot, comparison.plot)
    command.write_outs(outs, comparison)


IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
"""Suffixes by which an argument is known as an image's path."""


@dataclass(frozen=True)
class InputArguments:
    """What the command line gave; exactly one of the first three, checked before any work."""

    text: str | None
    file: Path | None
    image: Path | None
    pair: str | None

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.text, self.file, self.image)) != 1:
            raise PisteError(
                "Give either a text, the path of an image, - for standard input, --file or "
                "--image with a path."
            )
        for path in (self.file, self.image, self._named):
            if path is not None and not _is_file(path):
                is_folder = path is not self._named and path.is_dir()
                other = ": it is a folder, give a file in it" if is_folder else ""
                raise PisteError(f"There is no file {str(path)!r}{other}.")

    @property
    def _named(self) -> Path | None:
        """The argument as an image's path, if it is one; a sentence may end in .png, too."""
        if self.text is None or Path(self.text).suffix.lower() not in IMAGES:
            return None
        path = Path(self.text).expanduser()
        return path if _is_file(path) or len(self.text.split()) == 1 else None

    def read(self, classifier: Classifier) -> Input:
        """The input in the form the classifier reads, or a refusal that says what it reads."""
        if classifier.reads == "images":
            return self._image(classifier.name)
        image = self.image or self._named
        if image is not None:
            raise PisteError(
                f"Expected a text for {classifier.name!r}, got the image {str(image)!r}: give "
                "--model a model that reads images."
            )
        text = _text(self.text, self.file)
        if self.pair is None and hasattr(classifier, "prompt"):
            return _values(text, classifier.prompt)
        return text if self.pair is None else (text, self.pair)

    def _image(self, name: str) -> Input:
        from piste.image import ImageInput

        if self.pair is not None:
            raise PisteError(f"{name!r} reads images one by one: leave --pair out.")
        if self.text == "-":
            from piste.image import MOST_BYTES

            return ImageInput.of(sys.stdin.buffer.read(MOST_BYTES + 1))
        path = self.image or self.file or Path(self.text or "").expanduser()
        if not _is_file(path):
            raise PisteError(
                f"Expected an image for {name!r}, got {shorten(self.text)}, which is no file: give "
                "the path of an image, or --model a model that reads texts."
            )
        return ImageInput.of(path)


def _values(text: str, prompt: Any) -> Any:
    """An input of a language model: JSON for a prompt with several fields, or for messages."""
    fields = prompt.fields if prompt is not None else ()
    looks = text.lstrip()[:1]
    if not (len(fields) > 1 and looks == "{") and not (prompt is None and looks == "["):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        wanted = f"a value for each field ({', '.join(fields)})" if fields else "messages"
        raise PisteError(
            f"Expected JSON with {wanted}, got {shorten(text)} ({problem})."
        ) from problem


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a long text is no name of a file
        return False


_MOST_BYTES = 4 * MOST_CHARACTERS


def _check_bytes(source: str, size: int) -> None:
    """Refuse a file that can't be a text to explain, before it is read."""
    if size > _MOST_BYTES:
        has = "more bytes" if source == "standard input" else f"{size:,} bytes, more"
        raise PisteError(
            f"{source} has {has} than the {_MOST_BYTES:,} that are read of a text: give a part "
            "of it, or a table with a text in every row to `piste corpus`."
        )


def _text(text: str | None, file: Path | None) -> str:
    """The text from the argument, standard input or a file."""
    try:
        if file is not None:
            _check_bytes(repr(str(file)), file.stat().st_size)
            content = file.read_bytes()
        elif text == "-":
            content = sys.stdin.buffer.read(_MOST_BYTES + 1)
            _check_bytes("standard input", len(content))
        else:
            return text or ""
        return content.decode("utf-8").strip("\ufeff\r\n")
    except UnicodeDecodeError as problem:
        source = repr(str(file)) if file else "standard input"
        raise PisteError(
            f"{source} is not UTF-8 text (byte {problem.start}): convert it first, for example "
            "with `iconv -f latin1 -t utf-8`."
        ) from problem
    except OSError as problem:
        raise PisteError(f"{str(file)!r} could not be read: {problem.strerror}.") from problem
