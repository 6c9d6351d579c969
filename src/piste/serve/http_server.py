"""The HTTP server, with a time limit on connections that send no complete request."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

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
