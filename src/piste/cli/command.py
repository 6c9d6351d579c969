"""How a command runs: its options, consoles, progress, and the files it writes."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, get_type_hints

from rich.console import Console

from piste.cli.options import PromptOptions
from piste.cli.prompt_values import read_examples, read_label_option, read_prompt
from piste.engine.progress import Progress
from piste.errors import PisteError

# What is printed is data: no sign in it is markup or the name of an emoji.
out = Console(markup=False, emoji=False)
err = Console(markup=False, emoji=False, stderr=True)


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


def loading(given: PromptOptions) -> dict[str, Any]:
    """What was given of a prompt and a server, as :func:`piste.load` takes it."""
    found = {
        "prompt": None if given.prompt is None else read_prompt(given.prompt),
        "labels": None if given.labels is None else read_label_option(given.labels),
        "hypothesis": given.hypothesis,
        "examples": None if given.few_shot is None else read_examples(given.few_shot),
        "pinned": names(given.pinned),
        "free": names(given.free),
        "content_free": given.content_free,
        "model": given.served_model,
        "max_requests": given.max_requests,
        "max_tokens": given.max_tokens,
        "concurrency": given.concurrency,
        "timeout": given.timeout,
    }
    return {name: value for name, value in found.items() if value is not None}


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
    >>> with_samples(["explain", "--samples=50", "--", "--samples"], 200)
    ['explain', '--samples', '200', '--', '--samples']
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept: list[str] = []
    for before, one in zip(["", *arguments], arguments[:end], strict=False):
        if before != "--samples" and one != "--samples" and not one.startswith("--samples="):
            kept.append(one)
    return [*kept, "--samples", str(samples), *arguments[end:]]


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
