"""Checks on every request (host, origin, token, size), and headers on every answer.

Another page open in a client's browser must not reach a server on the same machine. Its requests
carry a foreign ``Origin`` or ``Sec-Fetch-Site``, or (after a name was bound to another address) a
foreign ``Host``; all three are refused. A body must be JSON, which no form can send.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException

from piste.serve.request_limits import INTERNAL_ERROR, Limits

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "piste-token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src-elem 'self'; "
    "style-src-attr 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "frame-src 'none'"
)
"""Scripts and sheets come from here only; words may have a colour of their own."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class _RefusedError(HTTPException):
    """Also raised while the app reads a body; of all exceptions, it lets only this kind through."""


class SecurityMiddleware:
    """Refuses requests that must not reach the app."""

    def __init__(self, app: App, limits: Limits, hosts: Sequence[str], token: str | None) -> None:
        self.app, self.limits, self.token = app, limits, token
        self.hosts = {host.lower() for host in hosts}
        self.arriving = 0
        """Bytes of all requests that are being read or answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            else:  # there are no web sockets here
                await send({"type": "websocket.close", "code": 1008})
            return
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                own = {name for name, _ in message.setdefault("headers", [])}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in HEADERS.items()
                        if name.encode() not in own
                    ),
                ]
            await send(message)

        try:
            headers = {
                name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
            }
            self._check_host(headers)
            self._check_origin(scope["method"], headers)
            if await self._check_token(scope, headers, send_with_headers):
                return
            self._check_body(scope["method"], headers)
            body = _Body(self, receive)
            try:
                await self.app(scope, body.receive, send_with_headers)
            finally:
                self.arriving -= body.size
        except _RefusedError as refused:
            if not begun:
                await answer(send_with_headers, refused.status_code, refused.detail)
        except Exception:
            traceback.print_exc()  # for the server's log; the client is told no more
            if not begun:
                await answer(send_with_headers, 500, INTERNAL_ERROR)

    def _check_host(self, headers: dict[str, str]) -> None:
        host = name_of(headers.get("host", ""))
        # An address can't be bound to another machine without the client's knowledge; a name can.
        if host not in self.hosts and not _is_address(host):
            raise _RefusedError(
                421, "This server is not called by that name: use the address it printed."
            )

    def _check_origin(self, method: str, headers: dict[str, str]) -> None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        foreign = origin is not None and origin.partition("://")[2] != headers.get("host")
        if foreign or (site not in ("same-origin", "none") and method != "GET"):
            raise _RefusedError(403, "Only this server's own page may ask it from a browser.")
        if site == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            raise _RefusedError(403, "Only this server's own page may ask it from a browser.")

    async def _check_token(self, scope: Scope, headers: dict[str, str], send: Send) -> bool:
        """Whether the request is answered already: a token in the address becomes a cookie."""
        if self.token is None:
            return False
        if scope["path"] == "/" and scope["method"] == "GET":
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if self._token_matches(given):
                # A strict cookie would not be sent on to the page after a link in a mail.
                cookie = f"{COOKIE}={self.token}; HttpOnly; SameSite=Lax; Path=/"
                start: Message = {
                    "type": "http.response.start",
                    "status": 303,
                    "headers": [(b"location", b"/"), (b"set-cookie", cookie.encode())],
                }
                await send(start)
                await send({"type": "http.response.body", "body": b""})
                return True
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._token_matches(bearer.strip()):
            return False
        # Other servers of this machine may have set cookies that no parser likes: only ours counts.
        for cookie in headers.get("cookie", "").split(";"):
            name, _, value = cookie.strip().partition("=")
            if name == COOKIE and self._token_matches(value):
                return False
        raise _RefusedError(
            401,
            "A token is required: add ?token=… to the address, or send a bearer token.",
        )

    def _token_matches(self, given: str) -> bool:
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())

    def _check_body(self, method: str, headers: dict[str, str]) -> None:
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise _RefusedError(400, "The content-length is no number: send the size of the body.")
        if len(length) > 18 or int(length) > self.limits.body:
            raise _RefusedError(413, self.limits.too_large)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if method == "POST" and kind != "application/json":
            raise _RefusedError(415, "Expected a JSON body, with content-type application/json.")


class _Body:
    """One body, counted as it comes; one that doesn't come in time is not waited for."""

    def __init__(self, middleware: SecurityMiddleware, receive: Receive) -> None:
        self.size = 0
        self._middleware, self._receive, self._ended = middleware, receive, False
        self._until = time.monotonic() + middleware.limits.body_seconds

    async def receive(self) -> Message:
        if self._ended:  # from here on only a disconnect is waited for
            return await self._receive()
        limits = self._middleware.limits
        try:
            message = await asyncio.wait_for(
                self._receive(), max(self._until - time.monotonic(), 0.001)
            )
        except asyncio.TimeoutError as late:
            raise _RefusedError(408, "The request did not arrive in time.") from late
        if message["type"] == "http.request":
            came = len(message.get("body", b""))
            self.size += came
            self._middleware.arriving += came
            self._ended = not message.get("more_body", False)
            if self.size > limits.body:
                raise _RefusedError(413, limits.too_large)
            if self._middleware.arriving > limits.arriving:
                raise _RefusedError(503, "Too much is being sent at once: try again in a moment.")
        return message


def name_of(host: str) -> str:
    """The name in a Host header, without its port.

    >>> name_of("localhost:8000"), name_of("[::1]:8000")
    ('localhost', '[::1]')
    """
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


async def answer(send: Send, status: int, problem: str) -> None:
    """A refusal in the form that all have."""
    body = json.dumps({"problem": problem}, ensure_ascii=False).encode("utf-8", "replace")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
