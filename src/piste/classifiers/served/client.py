"""Requests to a server: kept-alive connections, retries with back-off, counts and caps."""

from __future__ import annotations

import http.client
import json
import os
import queue
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn, TypeVar
from urllib.parse import SplitResult, urlsplit

from piste.errors import PisteError, ServiceError, shorten

Read = TypeVar("Read")

KEYS = ("PISTE_API_KEY", "OPENAI_API_KEY")
"""Environment variables that may hold the key; the first that is set is used."""
TRIES = 8
_FIRST_TRIES = 2  # a server that never answered is more likely named wrongly than busy
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_LONGEST_WISH = 120.0  # seconds a server may ask us to wait
_BUSY = (408, 409, 425, 429)
_ENDPOINTS = ("/chat/completions", "/completions")


class Refused(Exception):  # noqa: N818  # the server works, but does no such thing
    """The server understood a request and does not do what it asks."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"status {status}{said and ': ' + said}")
        self.status = status


class FailedRequestError(ServiceError):
    """The server was reached, but gave no usable answer; ``answered`` if it gave any at all."""

    answered = False


class Unreadable(Exception):  # noqa: N818  # becomes a ServiceError after some tries
    """An answer that is no JSON, is cut off, or lacks what was asked for."""


class Client:
    """Posts JSON to the paths below one address, from any number of threads.

    Answers of the kinds 429, 408 and 5xx, timeouts, dropped connections and unreadable answers are
    tried again, up to :data:`TRIES` times, after pauses that double (or as long as the server's
    ``Retry-After`` says). The key comes from the environment with every request and is kept
    nowhere.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 60.0,
        max_requests: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._parts = _checked(url)
        self.url = f"{self._parts.scheme}://{self._parts.netloc}{self._parts.path}"
        self.max_requests, self.max_tokens = max_requests, max_tokens
        self.requests = 0
        """How many were sent, those that failed included."""
        self.tokens = 0
        """How many the server counted, in prompts and answers."""
        self.stopping = threading.Event()
        self._timeout = timeout
        self._idle: queue.LifoQueue[http.client.HTTPConnection] = queue.LifoQueue()
        self._lock = threading.Lock()
        self._reached = False
        self._random = random.Random()  # for pauses only: no result depends on it

    def post(self, path: str, body: dict[str, Any], read: Callable[[Any], Read]) -> Read:
        """What ``read`` makes of the answer; it raises :class:`Unreadable` if that can't be."""
        content = json.dumps(body, ensure_ascii=False).encode()
        tried = 0
        while True:
            tried += 1
            self._count_request()
            problem, pause, answered = "", None, False
            try:
                status, headers, answer = self._send(path, content)
                self._reached = answered = True
                if status == 200:
                    return self._understood(answer, read)
                said = _message(answer)
                if status not in _BUSY and status < 500:
                    self._refuse(status, said)
                problem = f"status {status}{said and ': ' + said}"
                pause = _wished(headers.get("Retry-After"))
            except Unreadable as unreadable:
                problem = str(unreadable)
            except TimeoutError:
                problem = f"no answer within {self._timeout:g} s"
            except (OSError, http.client.HTTPException) as broken:
                problem = f"the connection failed ({type(broken).__name__})"
            most = TRIES if self._reached else _FIRST_TRIES
            if tried >= most or self.stopping.is_set() or (pause or 0.0) > _LONGEST_WISH:
                failed = FailedRequestError(self._given_up(tried, self._clean(problem), pause))
                failed.answered = answered
                raise failed
            self._wait(self._pause(tried) if pause is None else pause)

    def _understood(self, answer: bytes, read: Callable[[Any], Read]) -> Read:
        try:
            content = json.loads(answer)
        except ValueError as problem:
            raise Unreadable("the answer is no JSON, or only half of one") from problem
        try:
            found = read(content)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as problem:
            raise Unreadable(f"the answer lacks {shorten(str(problem))}") from problem
        usage = content.get("usage") or {}
        with self._lock, suppress(TypeError, ValueError):
            self.tokens += int(usage.get("total_tokens") or 0)
        return found

    def _send(self, path: str, content: bytes) -> tuple[int, http.client.HTTPMessage, bytes]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key := api_key():
            headers["Authorization"] = f"Bearer {key}"
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            secure = self._parts.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            host = str(self._parts.hostname)
            connection = kind(host, self._parts.port, timeout=self._timeout)
        try:
            connection.request("POST", f"{self._parts.path}{path}", content, headers)
            response = connection.getresponse()
            answer = response.read()
        except BaseException:
            connection.close()
            raise
        self._idle.put(connection)  # opens itself again if the server closed it
        return response.status, response.headers, answer

    def _refuse(self, status: int, said: str) -> NoReturn:
        said = self._clean(said)
        if status in (401, 403):
            where = " or ".join(KEYS)
            raise ServiceError(
                f"{self.url} refuses the key (status {status}): put a valid one into the "
                f"environment variable {where}."
            )
        if 300 <= status < 400:
            raise ServiceError(f"{self.url} is somewhere else (status {status}): give that URL.")
        raise Refused(status, said)

    def _wait(self, seconds: float) -> None:
        self.stopping.wait(seconds)

    def _pause(self, tried: int) -> float:
        longest = min(_FIRST_PAUSE * 2 ** (tried - 1), _LONGEST_PAUSE)
        return longest * self._random.uniform(0.5, 1.0)

    def _given_up(self, tried: int, problem: str, wish: float | None) -> str:
        times = "once" if tried == 1 else f"{tried} times"
        later = "run it again later with the same cache to go on."
        if (wish or 0.0) > _LONGEST_WISH:
            return f"{self.url} asks to wait for {wish:.0f} s ({problem}): {later}"
        if not self._reached:
            return f"{self.url} can't be reached ({problem}): start the server, or check the URL."
        return f"{self.url} was asked {times} and gave no usable answer ({problem}): {later}"

    def _count_request(self) -> None:
        with self._lock:
            if self.max_requests is not None and self.requests >= self.max_requests:
                raise ServiceError(
                    f"max_requests={self.max_requests} requests were sent: raise the cap to go on; "
                    "what was answered is in the cache, if one was given."
                )
            if self.max_tokens is not None and self.tokens >= self.max_tokens:
                raise ServiceError(
                    f"max_tokens={self.max_tokens} tokens were used: raise the cap to go on; what "
                    "was answered is in the cache, if one was given."
                )
            self.requests += 1

    @staticmethod
    def _clean(text: str) -> str:
        """Without the key, which some servers repeat."""
        key = api_key()
        return text.replace(key, "…") if key else text

    def __repr__(self) -> str:
        return f"<Client {self.url}: {self.requests} requests, {self.tokens} tokens>"


def api_key() -> str | None:
    """The key in the environment, if there is one; it is never repeated, not in a refusal either.

    White space around it, a line's end for example, is no part of it.
    """
    for name in KEYS:
        key = os.environ.get(name, "").strip()
        if key and not (key.isascii() and key.isprintable()):
            raise ServiceError(
                f"The environment variable {name} holds no key that can be sent: expected letters, "
                "digits and signs of ASCII on one line."
            )
        if key:
            return key
    return None


def _checked(url: str) -> SplitResult:
    """The address without an endpoint's name; one with credentials is refused and not repeated."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as problem:
        raise PisteError(f"Expected a URL such as http://127.0.0.1:8080/v1 ({problem}).") from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise PisteError(
            "Expected a URL without user, password or query, such as http://127.0.0.1:8080/v1: put "
            f"the key into the environment variable {KEYS[0]}."
        )
    if not parts.hostname or port == 0:
        raise PisteError(f"Expected a URL such as http://127.0.0.1:8080/v1, got {shorten(url)}.")
    path = parts.path.rstrip("/")
    for ending in _ENDPOINTS:
        path = path.removesuffix(ending)
    return parts._replace(path=path)


def _message(answer: bytes) -> str:
    """What a server says of a failure, short."""
    try:
        content = json.loads(answer)
        said = content.get("error", content.get("message", content.get("detail", "")))
        said = said.get("message", "") if isinstance(said, dict) else said
    except (ValueError, AttributeError):
        said = answer.decode(errors="replace")
    return " ".join(str(said).split())[:200].rstrip(".:")


def _wished(retry_after: str | None) -> float | None:
    """Seconds to wait, from a number or a date."""
    if not retry_after:
        return None
    try:
        return max(float(retry_after), 0.0)
    except ValueError:
        with suppress(ValueError, TypeError):
            return max(parsedate_to_datetime(retry_after).timestamp() - time.time(), 0.0)
    return None
