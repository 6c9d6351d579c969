"""Starting the server: where it listens, who may reach it, how long a request may take to come."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from piste.engine.progress import Progress
from piste.errors import PisteError, need
from piste.serve.request_limits import Limits
from piste.serve.security import Message, Receive, Scope, SecurityMiddleware, Send, answer

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


_LOADING = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="1">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Piste</title>
<link rel="icon" href="data:,">
</head>
<body style="font: 16px/1.55 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto">
<p role="status"><b>Piste</b> is {stage} … This page opens by itself.</p>
</body>
</html>
"""
_LOOK = 0.05
"""Seconds between two looks at whether models are loaded."""


class LoadingApp:
    """The app from the first second on. While models load, the page says so, and others wait.

    ``make`` makes the app in a thread of its own; it is given a function to tell its stages to.
    """

    def __init__(self, make: Callable[[Callable[[str], None]], Any], **checks: Any) -> None:
        self._make = make
        self._app: Any = None
        self._stage = "starting"
        self._secured = SecurityMiddleware(self._answer, **checks)
        self._stopped = False
        self.problem: BaseException | None = None
        """Why the app could not be made."""
        self.on_problem: Callable[[], None] = lambda: None
        self.state = self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await (self._app or self._secured)(scope, receive, send)

    def stop(self) -> None:
        """End what is under way."""
        self._stopped = True
        if self._app is not None:
            self._app.state.stop()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        threading.Thread(target=self._load, name="piste-loading", daemon=True).start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self._app is not None:
            await asyncio.to_thread(self._app.state.close)
        await send({"type": "lifespan.shutdown.complete"})

    def _load(self) -> None:
        try:
            with Progress() as shown:

                def tell(stage: str) -> None:
                    self._stage = stage
                    shown.stage(stage)

                self._app = self._make(tell)
        except BaseException as problem:  # raised again where the server was started
            self.problem = problem
            self.on_problem()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/":
            page = _LOADING.format(stage=escape(self._stage)).encode()
            kind = [(b"content-type", b"text/html; charset=utf-8")]
            start: Message = {"type": "http.response.start", "status": 200, "headers": kind}
            await send(start)
            await send({"type": "http.response.body", "body": page})
            return
        while self._app is None and self.problem is None and not self._stopped:
            await asyncio.sleep(_LOOK)
        if self._app is None:
            await answer(send, 503, "The models could not be loaded: see the server's log.")
        else:
            await self._app(scope, receive, send)


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

    def end(self) -> None:
        """Stop serving."""
        self.should_exit = True

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
    prepare: Callable[[], object] = lambda: None,
) -> None:
    """Serve the page until it is stopped; ``ready`` is told the address.

    Models load in the background, after a call of ``prepare``; until then the page says so.
    Elsewhere than on this machine alone only with a ``token``; ``names`` are further names by
    which clients reach the machine; ``loading`` holds options of :func:`piste.load`, such as
    prompt and labels.
    """
    if find_spec("fastapi") is None:  # imported later
        need("fastapi", "serve", "`piste serve`")
    check_place(host, token)
    if not 0 <= port <= 65535:
        raise PisteError(f"--port: expected a number from 0 (any free port) to 65535, got {port}.")
    hosts = (*LOOPBACK, f"[{host}]" if ":" in host else host, *names)
    checks: Any = {"limits": limits or Limits(), "hosts": hosts, "token": token}

    def make(tell: Callable[[str], None]) -> Any:
        tell("importing torch and transformers")
        prepare()
        from piste.serve.app import create_app

        return create_app(
            models, results=results, runtime=runtime, loading=loading, tell=tell, **checks
        )

    listening = _listen(host, port)
    try:
        place = f"[{host}]" if ":" in host else host
        end = "/" if token is None else f"/?token={token}"
        ready(f"http://{place}:{listening.getsockname()[1]}{end}")
        app = LoadingApp(make, **checks)
        server = Server(app)
        app.on_problem = server.end
        server.run(sockets=[listening])
        if app.problem is not None:
            raise app.problem
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
