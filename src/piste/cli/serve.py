"""The command ``piste serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from piste.cli import command, options


@command.with_options
def serve(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="A bundled name, a folder, a hub id or a server's URL; may be given repeatedly.",
        ),
    ] = None,
    prompted: options.PromptOptions = options.NO_PROMPT,
    results: Annotated[
        list[Path] | None,
        typer.Option(
            help="Results to browse: the folder of a corpus run or of an evaluation, a vocabulary, "
            "a concept report, a comparison or an explanation; may be given repeatedly."
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 is any free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="PISTE_TOKEN",
            help="What clients must send; needed if other machines can reach the address.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="Another name of this machine; may be given repeatedly."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long one explanation may take.")] = 120.0,
    runtime: options.Runtime = "torch",
) -> None:
    """Open a web page to type texts, drop images, remove words and compare methods."""
    from piste.errors import PisteError, need

    need("uvicorn", "serve", "`piste serve`")
    if not 0 < seconds < float("inf"):
        raise PisteError(f"--seconds: expected a number above 0, got {seconds}.")
    loading = command.loading(prompted)
    if loading and not model:
        raise PisteError("--prompt and --labels are for a language model: name it with --model.")
    from piste.serve import Limits
    from piste.serve.launcher import serve as start

    def ready(address: str) -> None:
        command.err.print(f"Piste is at {address}  (stop it with Ctrl + C)", highlight=False)

    start(
        model or ["piste:reviews", "piste:reviews-gpt", "piste:fashion"],
        results=results or (),
        host=host,
        port=port,
        token=token,
        names=name or (),
        limits=Limits(seconds=seconds),
        runtime=runtime,
        loading=loading,
        ready=ready,
        prepare=command.start,
    )
