"""Starting the server: where it listens, who may reach it."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from piste.errors import PisteError, need
from piste.serve.request_limits import Limits

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_BACKLOG = 128
"""Connections that may wait while models are loaded."""


def serve(
    models: Sequence[Any] = ("piste:reviews",),
    *,
    results: Sequence[str | Path] = (),
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    names: Sequence[str] = (),
    limits: Limits | None = None,
    runtime: str = "torch",
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the page until it is stopped; ``ready`` is told the address.

    Elsewhere than on this machine alone only with a ``token``; ``names`` are further names by
    which clients reach the machine.
    """
    for library in ("uvicorn", "fastapi"):
        need(library, "serve", "`piste serve`")
    from piste.serve.app import create_app
    from piste.serve.http_server import Server

    check_place(host, token)
    if not 0 <= port <= 65535:
        raise PisteError(f"--port: expected a number from 0 (any free port) to 65535, got {port}.")
    hosts = (*LOOPBACK, f"[{host}]" if ":" in host else host, *names)
    listening = _listen(host, port)
    try:
        app = create_app(
            models, results=results, hosts=hosts, token=token, limits=limits, runtime=runtime
        )
        place = f"[{host}]" if ":" in host else host
        end = "/" if token is None else f"/?token={token}"
        ready(f"http://{place}:{listening.getsockname()[1]}{end}")
        Server(app).run(sockets=[listening])
    finally:
        listening.close()


def check_place(host: str, token: str | None) -> None:
    """Refuse to listen where strangers may come, unless they need a token."""
    if token is not None and (len(token) < 12 or not token.isascii() or not token.isalnum()):
        raise PisteError("A token has 12 or more letters and digits: others can be guessed.")
    try:
        alone = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        alone = False
    if not alone and token is None:
        raise PisteError(
            f"--host {host} can be reached from other machines, so a token is required: give "
            "--token, or set PISTE_TOKEN, to 12 or more letters and digits."
        )


def _listen(host: str, port: int) -> socket.socket:
    """Now, so that a port that is taken is told before models are loaded."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(kind, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_BACKLOG)  # a bound port can still be taken by another that listens first
    except (OSError, ValueError, TypeError) as problem:  # the latter two for no names at all
        listening.close()
        reason = getattr(problem, "strerror", None) or str(problem)
        raise PisteError(
            f"{host}:{port} can't be listened at ({reason}): choose another --port, or 0 for any."
        ) from problem
    return listening
