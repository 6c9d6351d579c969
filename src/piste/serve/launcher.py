"""Starting the server: where it listens, who may reach it, how long a request may take to come."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from piste.errors import PisteError, need
from piste.serve.request_limits import Limits

CONNECTIONS = 400
"""Beyond these, requests are answered 503; beyond twice as many, connections are closed."""
ARRIVAL_SECONDS = 30.0
"""For a request to arrive, from its first byte or from the connection. More than
``Limits.body_seconds`` (:mod:`piste.serve.request_limits`), after which a body that is read is
refused with a reason."""


class TimeoutProtocol(H11Protocol):
    """One connection. It is closed if no complete request comes in time.

    The library ends only connections that are silent after an answer.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > 2 * CONNECTIONS:
            transport.abort()
        else:
            self._start_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel_timer()

    def _start_timer(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._cancel_timer()  # all of it came
        elif self._timer is None:
            self._timer = self.loop.call_later(ARRIVAL_SECONDS, self.transport.abort)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Server(uvicorn.Server):
    """A server that stops its app first: streams of events end by themselves then."""

    def __init__(self, app: Any) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=TimeoutProtocol,
                ws="none",
                log_level="error",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=CONNECTIONS,
                timeout_keep_alive=20,
                timeout_graceful_shutdown=3,
            )
        )
        self._stop = app.state.stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stop()
        await super().shutdown(sockets)


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
    loading: Mapping[str, Any] = MappingProxyType({}),
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the page until it is stopped; ``ready`` is told the address.

    Elsewhere than on this machine alone only with a ``token``; ``names`` are further names by
    which clients reach the machine; ``loading`` holds options of :func:`piste.load`, such as
    prompt and labels.
    """
    for library in ("uvicorn", "fastapi"):
        need(library, "serve", "`piste serve`")
    from piste.serve.app import create_app
    from piste.serve.launcher import Server

    check_place(host, token)
    if not 0 <= port <= 65535:
        raise PisteError(f"--port: expected a number from 0 (any free port) to 65535, got {port}.")
    hosts = (*LOOPBACK, f"[{host}]" if ":" in host else host, *names)
    listening = _listen(host, port)
    try:
        app = create_app(
            models, results=results, hosts=hosts, token=token, limits=limits, runtime=runtime,
            loading=loading,
        )  # fmt: skip
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
