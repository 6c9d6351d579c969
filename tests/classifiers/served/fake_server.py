"""A server in this process that speaks as OpenAI-compatible ones do, and fails as they do."""

from __future__ import annotations

import json
import math
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PIECES = re.compile(r"\s?\w{1,8}|\s|[^\w\s]")
GOOD, BAD = ("wonderful", "good", "great"), ("dull", "bad", "slow")
WORDS = (
    "positive", "negative", "good", "bad", "It", "The", "neutral", "mixed", "unforgettable",
    "unremarkable", "very", "Positive", "Negative",
)  # fmt: skip


def tokenize(text: str) -> list[str]:
    """Up to eight letters with the blank before them, or one sign."""
    return PIECES.findall(text)


VOCABULARY = sorted(
    {piece for word in WORDS for text in (word, f" {word}") for piece in tokenize(text)}
    | {f" filler{number}" for number in range(30)}
)
IDS = {piece: number for number, piece in enumerate(VOCABULARY)}


def next_logprobs(text: str) -> dict[str, float]:
    """Of every token, behind a text: praise makes positive ones likelier, repetition repeats."""
    words = re.findall(r"\w+", text.rpartition("Review")[2].lower())
    mood = sum(word in GOOD for word in words) - sum(word in BAD for word in words)
    tokens = tokenize(text)
    logits = {}
    for piece in VOCABULARY:
        base = (sum(piece.encode()) % 17) / 8 + (0.0 if "filler" in piece else 3.0)
        side = piece.strip().lower() in ("positive", "good", "unforget")
        other = piece.strip().lower() in ("negative", "bad", "unremark")
        logits[piece] = base + mood * (0.8 * side - 0.8 * other) + 0.01 * len(words)
    before = tokens[-3:]
    for place in range(len(tokens) - 3):
        if tokens[place : place + 3] == before and tokens[place + 3] in logits:
            logits[tokens[place + 3]] += 9.0
    total = math.log(sum(math.exp(value) for value in logits.values()))
    return {piece: value - total for piece, value in logits.items()}


def forced(text: str, answer: str) -> float:
    """The log-probability of an answer behind a text, token by token."""
    total, sofar = 0.0, text
    for piece in tokenize(answer):
        total += next_logprobs(sofar)[piece]
        sofar += piece
    return total


def rendered(messages: list[dict[str, str]], *, open_end: bool) -> str:
    """Messages as one text, as a chat template makes it."""
    text = "".join(f"<{one['role']}>{one['content']}" for one in messages)
    return text if open_end else f"{text}<assistant>"


@dataclass
class FakeServer:
    """What the server does; ``behave`` says what goes wrong with the request of a number."""

    max_top: int = 20
    logprobs: bool = True
    prompt_logprobs: bool = False
    echo: bool | str = False
    """True, False (ignored, as by llama.cpp), or "empty": accepted without log-probs."""
    token_ids: bool = False
    chat_only: bool = False
    prefill: bool = True
    wrong_prompt_logprobs: bool = False
    usage: bool = True
    refused: str | None = None
    """Prompts with this word are refused, in a sentence that repeats the key."""
    behave: Callable[[int], str | None] = lambda number: None
    url: str = ""
    received: int = 0
    paid: Counter[str] = field(default_factory=Counter)
    """How often each request was answered whole."""
    keys: set[str | None] = field(default_factory=set)
    waiting: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    most_at_once: int = 0
    at_once: int = 0

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        chat = path.endswith("/chat/completions")
        if not chat and self.chat_only:
            return 404, {"error": {"message": "no such endpoint"}}
        top = body.get("top_logprobs" if chat else "logprobs") or 0
        if top > self.max_top and not body.get("logprob_token_ids"):
            return 400, {"error": {"message": f"top_logprobs must be at most {self.max_top}"}}
        text = body.get("prompt", "")
        if self.refused and self.refused in json.dumps(body):
            return 400, {"error": {"message": "not this text, KEY"}}
        if chat:
            messages = body["messages"]
            begun = messages[-1]["role"] == "assistant"
            if begun and body.get("continue_final_message") and not self.prefill:
                begun = False
            text = rendered(messages, open_end=begun)
        found: dict[str, Any] = {"choices": [self._choice(chat, text, body, top)]}
        if self.prompt_logprobs and body.get("prompt_logprobs") is not None:
            own = self._prompt(text)
            if chat:
                found["prompt_logprobs"] = own
            else:
                found["choices"][0]["prompt_logprobs"] = own
        if self.usage:
            found["usage"] = {"total_tokens": len(tokenize(text)) + 1}
        return 200, found

    def _choice(self, chat: bool, text: str, body: dict[str, Any], top: int) -> dict[str, Any]:
        steps, sofar = [], text
        for _ in range(max(body.get("max_tokens", 1), 1)):
            ranked = sorted(next_logprobs(sofar).items(), key=lambda one: -one[1])
            steps.append((ranked[0], ranked))
            sofar += ranked[0][0]
        if not self.logprobs:
            return {"text": "x", "logprobs": None}
        if body.get("echo") and self.echo and not chat:
            if self.echo == "empty":
                return {"text": text, "logprobs": None}
            own = self._given(text)
            tokens, numbers = [one[0] for one in own], [one[1] for one in own]
            return {"text": text, "logprobs": {"tokens": tokens, "token_logprobs": numbers}}
        wanted = body.get("logprob_token_ids") if self.token_ids else None
        content = []
        for (token, logprob), ranked in steps:
            shown = ranked[:top]
            if wanted:
                shown = [(f"token_id:{n}", dict(ranked)[VOCABULARY[n]]) for n in wanted]
                token = f"token_id:{IDS[token]}"
            likely = [{"token": t, "bytes": list(t.encode()), "logprob": v} for t, v in shown]
            content.append({"token": token, "logprob": logprob, "top_logprobs": likely})
        if chat:
            return {"message": {"content": "x"}, "logprobs": {"content": content}}
        return {
            "text": "x",
            "logprobs": {
                "tokens": [one["token"] for one in content],
                "token_logprobs": [one["logprob"] for one in content],
                "top_logprobs": [
                    {other["token"]: other["logprob"] for other in one["top_logprobs"]}
                    for one in content
                ],
            },
        }

    def _given(self, text: str) -> list[tuple[str, float | None]]:
        found: list[tuple[str, float | None]] = []
        sofar = ""
        for piece in tokenize(text):
            known = next_logprobs(sofar).get(piece, -20.0)
            number = -0.5 if self.wrong_prompt_logprobs else known
            found.append((piece, number if found else None))
            sofar += piece
        return found

    def _prompt(self, text: str) -> list[Any]:
        return [
            None
            if number is None
            else {str(IDS.get(piece, 999)): {"logprob": number, "decoded_token": piece}}
            for piece, number in self._given(text)
        ]


@contextmanager
def serving(server: FakeServer | None = None, port: int = 0) -> Iterator[FakeServer]:
    """The server on a free port of this machine, until the block ends."""
    fake = server or FakeServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            with fake.lock:
                number = fake.received
                fake.received += 1
                fake.at_once += 1
                fake.most_at_once = max(fake.most_at_once, fake.at_once)
            try:
                self._answered(number)
            finally:
                with fake.lock:
                    fake.at_once -= 1

        def _answered(self, number: int) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            fake.keys.add(self.headers.get("Authorization"))
            trouble = fake.behave(number)
            if trouble == "drop":
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if trouble == "slow":
                fake.waiting.wait(300)
                self.close_connection = True
                return
            if trouble and trouble[:3].isdigit():
                status, _, wish = trouble.partition(":")
                headers = {"Retry-After": wish} if wish else {}
                told = f"no, {self.headers.get('Authorization')} is not enough"
                self._send(int(status), json.dumps({"error": {"message": told}}), headers)
                return
            if trouble == "garbage":
                self._send(200, "<html>busy</html>", {})
                return
            status, found = fake.answer(self.path, json.loads(content))
            text = json.dumps(found).replace("KEY", str(self.headers.get("Authorization")))
            if trouble == "half":
                self._send(200, text[: len(text) // 2], {})
                return
            if trouble == "none":
                self._send(200, json.dumps({"choices": [{"text": "x"}]}), {})
                return
            if trouble == "half a character":
                half = {"text": "\N{REPLACEMENT CHARACTER}", "logprobs": None}
                self._send(200, json.dumps({"choices": [half]}), {})
                return
            if status == 200:
                with fake.lock:
                    fake.paid[content.decode()] += 1
            self._send(status, text, {})

        def _send(self, status: int, text: str, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            return

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            return

    http = Quiet(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    fake.url = f"http://127.0.0.1:{http.server_port}/v1"
    try:
        yield fake
    finally:
        fake.waiting.set()
        http.shutdown()
        http.server_close()
        thread.join()
