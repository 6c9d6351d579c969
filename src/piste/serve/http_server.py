"""The HTTP server, less patient than the library's own with those who only hold connections."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 400
"""Beyond these, requests are told to come later; beyond twice as many, nobody is let in."""
ARRIVAL_SECONDS = 30.0
"""For a request to arrive, from its first byte or from the connection. More than
``Limits.body_seconds`` (:mod:`piste.serve.request_limits`), after which a body that is read is
refused with a reason."""


class PatientOnce(H11Protocol):
    """One connection. Without a complete request in time it is closed, so that nobody can hold all.

    The library ends only connections that are silent after an answer.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > 2 * CONNECTIONS:
            transport.abort()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unwatch()

    def _watch(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._unwatch()  # all of it came
        elif self._late is None:
            self._late = self.loop.call_later(ARRIVAL_SECONDS, self.transport.abort)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class Server(uvicorn.Server):
    """A server that stops its app first: streams of events end by themselves then."""

    def __init__(self, app: Any) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=PatientOnce,
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
