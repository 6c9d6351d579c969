"""Who may ask, what may be sent, and what every answer carries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from piste.serve import create_app
from piste.serve.launcher import LOOPBACK
from piste.serve.request_limits import INTERNAL_ERROR, Limits
from piste.serve.security import COOKIE, HEADERS, SecurityMiddleware

TOKEN = "abcdefghijkl123"
SMALL = Limits(image_bytes=300, characters=10, body_seconds=300, arriving=40_000)
HURRIED = replace(SMALL, body_seconds=0.05)
Header = tuple[str, str]


def ask(
    headers: Sequence[Header],
    *,
    method: str = "GET",
    path: str = "/api/models",
    query: str = "",
    body: Sequence[bytes] = (b"",),
    token: str | None = None,
    limits: Limits = SMALL,
    hosts: Sequence[str] = LOOPBACK,
    middleware: SecurityMiddleware | None = None,
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer to a request whose body comes in these pieces.

    Behind it stands an app that repeats the body; after the last piece nothing comes, as if it
    were never sent, unless the piece is empty.
    """
    sent: list[Any] = []
    pieces = list(body)

    async def receive() -> Any:
        if not pieces:
            await asyncio.sleep(1e6)
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": piece != b""}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
    }
    asyncio.run(
        (middleware or SecurityMiddleware(repeat, limits, hosts, token))(scope, receive, send)
    )
    start, *rest = sent
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], found, b"".join(one["body"] for one in rest)


async def repeat(scope: Any, receive: Any, send: Any) -> None:
    body = b""
    while True:
        message = await receive()
        body += message["body"]
        if not message["more_body"]:
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def status(*headers: Header, **how: Any) -> int:
    return ask(headers, **how)[0]


HOST = ("host", "localhost:8000")


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8000", "LocalHost:1", "127.0.0.1:8000", "[::1]:8000", "[::1]",
     "192.168.1.7:8000", "[fe80::1]:80", "0.0.0.0"],
)  # fmt: skip
def test_own_names_and_addresses_are_let_in(host):
    assert status(("host", host)) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "localhost.evil.example", "evil.localhost", "localhost.",
     "127.0.0.1.evil.example", "evil@127.0.0.1", "", ":8000", "[evil]", "[]", "127.1",
     "2130706433", "0x7f.0.0.1", "localhost evil.example", "\xe9"],
)  # fmt: skip
def test_foreign_names_are_refused(host):
    code, _, body = ask([("host", host)])
    assert code == 421
    assert "not called by that name" in json.loads(body)["problem"]


def test_a_missing_host_is_refused():
    assert status() == 421


def test_a_name_given_by_whoever_runs_it_is_let_in():
    assert status(("host", "box.lan:80"), hosts=(*LOOPBACK, "Box.lan")) == 200
    assert status(("host", "other.lan:80"), hosts=(*LOOPBACK, "Box.lan")) == 421


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    ("origin", "fine"),
    [("http://localhost:8000", True), ("http://localhost:3000", False), ("http://localhost", False),
     ("http://evil.example", False), ("http://evil.example:8000", False), ("null", False),
     ("", False), ("http://127.0.0.1:8000", False), ("http://localhost:8000.evil", False)],
)  # fmt: skip
def test_origins(origin, fine, method):
    headers = [HOST, ("origin", origin), ("content-type", "application/json")]
    assert status(*headers, method=method) == (200 if fine else 403)


@pytest.mark.parametrize(
    ("site", "mode", "method", "fine"),
    [("same-origin", "cors", "POST", True), ("none", "navigate", "GET", True),
     ("same-site", "no-cors", "POST", False), ("cross-site", "no-cors", "POST", False),
     ("cross-site", "navigate", "POST", False), ("cross-site", "no-cors", "DELETE", False),
     ("cross-site", "no-cors", "GET", False), ("cross-site", "navigate", "GET", True)],
)  # fmt: skip
def test_pages_elsewhere_may_link_but_not_ask(site, mode, method, fine):
    headers = [("sec-fetch-site", site), ("sec-fetch-mode", mode)]
    headers.append(("content-type", "application/json"))
    assert status(HOST, *headers, method=method) == (200 if fine else 403)


@pytest.mark.parametrize(
    ("kind", "fine"),
    [("application/json", True), ("Application/JSON; charset=utf-8", True), ("text/plain", False),
     ("application/x-www-form-urlencoded", False), ("multipart/form-data; boundary=x", False),
     ("", False), ("application/jsonp", False), ("text/plain; application/json", False)],
)  # fmt: skip
def test_a_post_must_be_json_which_no_form_can_send(kind, fine):
    assert status(HOST, ("content-type", kind), method="POST") == (200 if fine else 415)


JSON = [HOST, ("content-type", "application/json")]


def test_a_body_of_the_right_size_arrives_as_it_was_sent():
    code, _, body = ask(JSON, method="POST", body=[b"one ", b"two", b""])
    assert (code, body) == (200, b"one two")


@pytest.mark.parametrize(
    ("length", "code"),
    [(str(SMALL.body), 200), (str(SMALL.body + 1), 413), ("9" * 30, 413), ("9" * 5000, 413),
     ("-1", 400), ("1e3", 400), ("\xb2", 400), ("", 400)],
)  # fmt: skip
def test_declared_sizes(length, code):
    assert status(*JSON, ("content-length", length), method="POST") == code


def test_a_body_that_is_larger_than_it_said_is_cut_off():
    pieces = [b"x" * 10_000] * (SMALL.body // 10_000 + 1) + [b""]
    code, _, body = ask(JSON, method="POST", body=pieces)
    assert code == 413
    assert f"{SMALL.body:,} bytes" in json.loads(body)["problem"]


def test_a_body_that_does_not_come_is_not_waited_for():
    assert status(*JSON, method="POST", body=[b"some"], limits=HURRIED) == 408


def test_all_bodies_together_are_bounded_and_counted_down_again():
    patient = Limits(body_seconds=300, arriving=25_000)
    middleware = SecurityMiddleware(repeat, patient, LOOPBACK, None)
    for _ in range(3):
        assert status(*JSON, method="POST", body=[b"x" * 20_000, b""], middleware=middleware) == 200
        middleware.limits = replace(patient, body_seconds=0.05)
        assert status(*JSON, method="POST", body=[b"x" * 20_000], middleware=middleware) == 408
        middleware.limits = patient
    assert (
        status(
            *JSON, method="POST", body=[b"x" * 20_000, b"y" * 10_000, b""], middleware=middleware
        )
        == 503
    )
    assert middleware.arriving == 0


def test_without_a_token_nobody_comes_in():
    code, headers, body = ask([HOST], token=TOKEN)
    assert (code, headers["www-authenticate"]) == (401, "Bearer")
    assert "token" in json.loads(body)["problem"]
    assert TOKEN not in body.decode()


@pytest.mark.parametrize(
    ("header", "fine"),
    [(("authorization", f"Bearer {TOKEN}"), True), (("authorization", f"bearer  {TOKEN} "), True),
     (("authorization", f"Bearer {TOKEN}x"), False), (("authorization", "Bearer "), False),
     (("authorization", "Bearer"), False), (("authorization", f"Basic {TOKEN}"), False),
     (("authorization", "Bearer \xff\xfe"), False), (("authorization", TOKEN), False),
     (("cookie", f"{COOKIE}={TOKEN}"), True), (("cookie", f"a=b; {COOKIE}={TOKEN}; c=d"), True),
     (("cookie", f'other={{"a": [1, 2]}}; {COOKIE}={TOKEN}'), True),
     (("cookie", f"\xff=; ;;=\"; bad name=x; {COOKIE}={TOKEN}"), True),
     (("cookie", f"{COOKIE}=wrong; {COOKIE}={TOKEN}"), True), (("cookie", f"{COOKIE}="), False),
     (("cookie", f"{COOKIE}={TOKEN}x"), False), (("cookie", f"x{COOKIE}={TOKEN}"), False),
     (("cookie", COOKIE), False), (("cookie", ";" * 1000), False),
     (("cookie", "\xe9=\xe9"), False)],
)  # fmt: skip
def test_tokens_in_headers(header, fine):
    assert status(HOST, header, token=TOKEN) == (200 if fine else 401)


def test_a_token_in_the_address_becomes_a_cookie():
    code, headers, _ = ask([HOST], path="/", query=f"token={TOKEN}", token=TOKEN)
    assert (code, headers["location"]) == (303, "/")
    cookie, *flags = headers["set-cookie"].split("; ")
    assert cookie == f"{COOKIE}={TOKEN}"
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} == set(flags)
    assert status(HOST, ("cookie", cookie), token=TOKEN) == 200


@pytest.mark.parametrize(
    "query", ["token=", "token=wrong", "token=%ED%A0%80", "token", "x=%ff", "&"]
)
def test_a_wrong_token_in_the_address(query):
    code, headers, _ = ask([HOST], path="/", query=query, token=TOKEN)
    assert code == 401
    assert "set-cookie" not in headers


def test_the_address_opens_the_page_only():
    assert status(HOST, path="/api/models", query=f"token={TOKEN}", token=TOKEN) == 401
    assert status(HOST, path="/", query=f"token={TOKEN}", token=TOKEN, method="POST") == 401


def test_a_foreign_page_is_refused_before_its_token_is_looked_at():
    bearer = ("authorization", f"Bearer {TOKEN}")
    assert status(("host", "evil.example"), bearer, token=TOKEN) == 421
    assert status(HOST, ("origin", "http://evil.example"), bearer, token=TOKEN) == 403


def test_what_nobody_foresaw_is_logged_and_tells_the_visitor_nothing(capfd):
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("/a/secret/path")

    code, headers, body = ask([HOST], middleware=SecurityMiddleware(broken, SMALL, LOOPBACK, None))
    assert (code, json.loads(body)) == (500, {"problem": INTERNAL_ERROR})
    assert HEADERS.items() <= headers.items()
    assert "/a/secret/path" in capfd.readouterr().err


@pytest.fixture(scope="module")
def client(reviews: Any) -> Iterator[TestClient]:
    with TestClient(
        create_app([reviews], limits=SMALL), base_url="http://localhost", follow_redirects=False
    ) as one:
        yield one


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("GET", "/", 200), ("GET", "/assets/piste.js", 200), ("GET", "/api/models", 200),
     ("GET", "/api/openapi.json", 200), ("GET", "/nowhere", 404), ("GET", "/assets/nothing", 404),
     ("GET", "/api/explanations/nothing", 404), ("GET", "/docs", 404), ("PUT", "/api/models", 405),
     ("POST", "/api/explanations", 415), ("OPTIONS", "/api/explanations", 405)],
)  # fmt: skip
def test_every_answer_carries_the_headers(client, method, path, code):
    answer = client.request(method, path)
    assert answer.status_code == code
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    if code >= 400:
        assert set(answer.json()) == {"problem"}


def test_refusals_carry_the_headers_too(client):
    answers = [
        client.get("/", headers={"host": "evil.example"}),
        client.get("/", headers={"origin": "http://evil.example"}),
        client.post("/api/explanations", json={"text": "x" * SMALL.body}),
        client.post("/api/explanations", json={"wrong": 1}),
        client.post("/api/explanations", content="{", headers={"content-type": "application/json"}),
    ]
    assert [one.status_code for one in answers] == [421, 403, 413, 422, 422]
    for answer in answers:
        assert HEADERS.items() <= dict(answer.headers).items()
        assert answer.headers["content-type"] == "application/json"


def test_a_body_in_pieces_that_is_too_large_is_refused_by_the_whole_app(client):
    def pieces() -> Iterator[bytes]:
        for _ in range(SMALL.body // 1000 + 1):
            yield b" " * 1000

    kind = {"content-type": "application/json"}
    answer = client.post("/api/explanations", content=pieces(), headers=kind)
    assert answer.status_code == 413
    assert f"{SMALL.body:,} bytes" in answer.json()["problem"]


def test_there_are_no_web_sockets(client):
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/"):
        pass
