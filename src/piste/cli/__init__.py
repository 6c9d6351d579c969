"""The command line: one module per command, or per few that belong together.

Nothing is imported here but what a problem is told with, so that Ctrl + C is heard from the start.
"""

from __future__ import annotations

import atexit
import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

__all__ = ["application", "main", "run_command"]

INTERRUPTED = 130
"""The exit code after Ctrl + C, as shells have it."""


def main() -> None:
    """Run the command line."""
    with _few_collections():
        run_command(application)


def application() -> typer.Typer:
    """All commands."""
    import typer

    from piste.cli import concepts, corpus, demo, evaluate, explain, serve, words

    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        show_version: bool = typer.Option(
            False, "--version", help="Say the version and stop.", callback=_version, is_eager=True
        ),
    ) -> None:
        """Piste explains the decisions of transformer classifiers."""

    for command in (
        explain.explain,
        explain.compare,
        evaluate.evaluate,
        concepts.concepts,
        corpus.corpus,
        corpus.query,
        words.words,
        words.diff,
        words.vocabulary,
        serve.serve,
        demo.demo,
        demo.models,
        demo.methods,
        demo.metrics,
    ):
        app.command()(command)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"piste {version('piste')}\n")
        raise SystemExit


@contextmanager
def _few_collections() -> Iterator[None]:
    """Collect garbage rarely, and not at the end.

    Torch and transformers make a million objects that stay; looking through them again and again
    takes a second while they are imported, and another at the end.
    """
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 20)
    atexit.register(_leave)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _leave() -> None:
    if "torch" in sys.modules and "duckdb" not in sys.modules:  # which complains of what is left
        gc.freeze()


def run_command(make: Callable[[], typer.Typer]) -> None:
    """Make an application and run it.

    A problem of the user's is one sentence and exit code 2; Ctrl + C is one line and exit code 130.
    """
    pressed: list[int] = []

    def press(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        with suppress(ValueError):  # not the main thread, which hears no signals
            signal.signal(signal.SIGINT, press)
    try:
        _run(make)
    except KeyboardInterrupt as stop:
        _stop(stop)
    except SystemExit as end:
        if end.code == INTERRUPTED or pressed:
            _stop(end)
        raise
    except Exception as problem:
        if not pressed:  # a library that is interrupted while it is imported may say anything
            raise
        _stop(problem)
    finally:
        if ours:
            with suppress(ValueError):
                signal.signal(signal.SIGINT, signal.default_int_handler)


def _stop(problem: BaseException) -> None:
    """One line, with what the command had to say of its interruption, and the end."""
    told = "stopped."
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt) and cause.args:
            told = str(cause.args[0])
        cause = cause.__cause__ or cause.__context__
    over = "\r" if sys.stderr.isatty() else ""  # over the ^C that a terminal shows
    sys.stderr.write(f"{over}piste: {told}\n")
    raise SystemExit(INTERRUPTED) from None


def _run(make: Callable[[], typer.Typer]) -> None:
    import warnings

    app = make()
    from piste.cli.command import err
    from piste.errors import PisteError

    warnings.showwarning = lambda message, *_, **__: err.print(f"note: {message}", style="yellow")
    try:
        app()
    except PisteError as problem:
        err.print(f"piste: {problem}", style="red", highlight=False, soft_wrap=True)
        sys.exit(2)
    except (OSError, UnicodeError) as problem:  # a full disk, a terminal without these letters
        err.print(f"piste: a file could not be read or written: {problem}", soft_wrap=True)
        sys.exit(2)
