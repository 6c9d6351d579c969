"""What the commands share: consoles, options, inputs, and how files are written."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from rich.console import Console

from piste.engine.progress import Progress
from piste.errors import PisteError, shorten
from piste.options import HELP
from piste.validation import MOST_CHARACTERS

if TYPE_CHECKING:
    from piste.classifiers import Classifier
    from piste.subject import Input


# What is printed is data: no sign in it is markup or the name of an emoji.
out = Console(markup=False, emoji=False)
err = Console(markup=False, emoji=False, stderr=True)

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

    def loading(self) -> dict[str, Any]:
        """What was given, as :func:`piste.load` takes it."""
        given = {
            "prompt": None if self.prompt is None else read_prompt(self.prompt),
            "labels": None if self.labels is None else read_label_option(self.labels),
            "hypothesis": self.hypothesis,
            "examples": None if self.few_shot is None else read_examples(self.few_shot),
            "pinned": names(self.pinned),
            "free": names(self.free),
            "content_free": self.content_free,
            "model": self.served_model,
            "max_requests": self.max_requests,
            "max_tokens": self.max_tokens,
            "concurrency": self.concurrency,
            "timeout": self.timeout,
        }
        return {name: value for name, value in given.items() if value is not None}


NO_PROMPT = PromptOptions()


def read_prompt(given: str) -> Any:
    """A prompt from a file or as it stands; JSON is a list of messages."""
    text = _or_file(given)
    if not text.lstrip().startswith("["):
        return text.removesuffix("\n") if text is not given else text
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        raise PisteError(
            f"--prompt: expected a text or JSON with messages, got {shorten(text)} ({problem})."
        ) from problem


def read_examples(given: str) -> Any:
    """Inputs with their labels, from JSON or a file with it.

    >>> read_examples('[["Superb.", "positive"]]')
    [['Superb.', 'positive']]
    """
    text = _or_file(given)
    try:
        found = json.loads(text)
    except json.JSONDecodeError as problem:
        found = problem
    if not isinstance(found, list):
        raise PisteError(
            f'--few-shot: expected JSON such as [["Superb.", "positive"]], got {shorten(text)}.'
        )
    return found


def _or_file(given: str) -> str:
    """What the file holds, if it names one."""
    try:
        path = Path(given).expanduser()
        return path.read_text(encoding="utf-8") if path.is_file() else given
    except (OSError, ValueError):
        return given  # a long text is no name of a file


def read_label_option(given: str) -> Any:
    """Names with commas, or JSON.

    >>> read_label_option("good, bad"), read_label_option('{"good": ["great"], "bad": "bad"}')
    (['good', 'bad'], {'good': ['great'], 'bad': 'bad'})
    """
    if not given.lstrip().startswith(("{", "[")):
        return [name.strip() for name in given.split(",")]
    try:
        return json.loads(given)
    except json.JSONDecodeError as problem:
        raise PisteError(
            f"--labels: expected names with commas or JSON, got {shorten(given)} ({problem})."
        ) from problem


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command some of whose parameters are dataclasses of options; each field is an option.

    Options come in the order of the parameters and of their fields, with the fields' defaults; one
    without a default must be given.
    """
    groups: dict[str, Any] = {}
    options: dict[str, Parameter] = {}
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in signature(command).parameters.items():
        group = hints[name]
        if not is_dataclass(group):
            options[name] = parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=group)
            continue
        groups[name] = group
        types = get_type_hints(group, include_extras=True)
        for one in fields(group):
            assert one.name not in options, f"two options are called {one.name}"
            options[one.name] = Parameter(
                one.name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if one.default is MISSING else one.default,
                annotation=types[one.name],
            )

    @wraps(command)
    def run(**given: Any) -> None:
        grouped = {
            name: group(**{one.name: given.pop(one.name) for one in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **grouped)

    run.__signature__ = Signature(list(options.values()))  # type: ignore[attr-defined]  # as the inspect module reads it
    run.__annotations__ = {name: one.annotation for name, one in options.items()}
    del run.__wrapped__  # or its parameters would be read as well
    return run


def start() -> Any:
    """The library, imported only by commands that need it, with transformers kept quiet."""
    import transformers

    import piste

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return piste


@contextmanager
def working(*, as_json: bool = False) -> Iterator[Progress]:
    """The progress of a whole command, from the import of the libraries on.

    With --json there is no bar; what answers will cost is said all the same.
    """
    with Progress((lambda done, total: None) if as_json else None) as shown:
        shown.stage("importing torch and transformers")
        start()
        shown.stage("loading the model")
        yield shown


def names(text: str | None) -> list[str] | None:
    """Names with commas between them, or None."""
    from piste.options import split_names

    return None if text is None else split_names(text)


def read_options(given: list[str]) -> dict[str, Any]:
    """``name=value`` pairs; a value is read as JSON if it is, else as text."""
    found: dict[str, Any] = {}
    for pair in given:
        name, sign, value = pair.partition("=")
        if not sign or not name.isidentifier():
            raise PisteError(f"--option: expected name=value, such as steps=100, got {pair!r}.")
        try:
            found[name] = json.loads(value.lower() if value in ("True", "False") else value)
        except json.JSONDecodeError:
            found[name] = value
    return found


def read_samples(samples: str | None) -> Any:
    """A whole number, auto, or None for the method's own choice."""
    if samples is None or samples == "auto":
        return samples
    if not (samples.isascii() and samples.isdigit()):
        raise PisteError(f"--samples: expected a whole number or auto, got {samples!r}.")
    return int(samples)


def offer(samples: int | None) -> None:
    """Print the same command with more questions, where an explanation should have more."""
    if samples is not None:
        command = with_samples(sys.argv[1:], samples)
        out.print(f"Next: {shlex.join(['piste', *command])}", soft_wrap=True)


def with_samples(arguments: Sequence[str], samples: int) -> list[str]:
    """Arguments of a command with another number of questions.

    >>> with_samples(["explain", "Bad.", "--samples", "50"], 200)
    ['explain', 'Bad.', '--samples', '200']
    """
    kept: list[str] = []
    for before, one in zip(["", *arguments], arguments, strict=False):
        if before != "--samples" and not one.startswith("--samples"):
            kept.append(one)
    return [*kept, "--samples", str(samples)]


def written(path: Path | None, write: Callable[[Path], object]) -> None:
    """Write a file if one was asked for, and say so."""
    if path is not None:
        with Progress() as shown:
            shown.stage(f"writing {path}")
            write(path)
        _say(path)


WAYS: Mapping[str, str] = {
    ".html": "to_html",
    ".json": "to_json",
    ".csv": "to_csv",
    ".parquet": "to_parquet",
    ".png": "plot",
    ".svg": "plot",
    ".pdf": "plot",
}
"""The method that writes a result, by suffix."""


def check_outs(outs: Sequence[Path] | None, *, tables: bool) -> list[Path]:
    """The files to write; one that no way leads to is refused before the work."""
    known = [suffix for suffix in WAYS if tables or suffix not in (".csv", ".parquet")]
    for path in outs or ():
        if path.suffix.lower() not in known:
            raise PisteError(
                f"--out {str(path)!r} can't be written: its suffix must be {', '.join(known)}."
            )
    return list(outs or ())


def write_outs(outs: Sequence[Path], result: Any) -> None:
    """Write a result to every file, as its suffix says."""

    def write(path: Path) -> None:
        getattr(result, WAYS[path.suffix.lower()])(path=path)

    for path in outs:
        written(path, write)


def _say(path: Path) -> None:
    err.print(f"written: {path}", highlight=False)


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
